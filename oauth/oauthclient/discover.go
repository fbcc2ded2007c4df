package oauthclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
)

const maxAuthorizationServers = 16

// A discovery is a resource with its authorization server.
type discovery struct {
	resource  string   // the resource identifier, unchanged
	supported []string // scopes of the resource
	as        *metadata.AuthorizationServer
	guessed   bool // the server names no authorization server, and has no metadata of its own
}

// discover finds the authorization server of the resource that sent a challenge. The challenge may
// be nil.
func (t *Transport) discover(ctx context.Context, c *metadata.Challenge) (*discovery, error) {
	prm, err := t.protectedResource(ctx, c)
	if err != nil {
		return nil, err
	}
	if prm == nil {
		return t.discoverLegacy(ctx)
	}
	issuer, err := t.chooseIssuer(prm.AuthorizationServers)
	if err != nil {
		return nil, err
	}
	as, err := t.policy.AuthorizationServer(ctx, t.http, issuer)
	if err != nil {
		return nil, err
	}
	return &discovery{resource: prm.Resource, supported: prm.ScopesSupported, as: as}, t.checkEndpoints(as)
}

// protectedResource reads the metadata of the resource at the URL in the challenge, or otherwise at
// the well-known URLs. It returns nil if there is no metadata.
func (t *Transport) protectedResource(ctx context.Context, c *metadata.Challenge) (*metadata.ProtectedResource, error) {
	if c != nil {
		if named := c.Param("resource_metadata"); named != "" {
			prm, err := t.resourceMetadata(ctx, named)
			if err != nil {
				return nil, fmt.Errorf("resource metadata: %w", err)
			}
			return prm, t.checkResource(prm, named)
		}
	}
	urls, err := metadata.ProtectedResourceURLs(t.server.String())
	if err != nil {
		return nil, err
	}
	for _, u := range urls {
		prm, err := t.resourceMetadata(ctx, u)
		if err == nil {
			return prm, t.checkResource(prm, u)
		}
		if !isMissing(err) {
			return nil, fmt.Errorf("resource metadata: %w", err)
		}
	}
	return nil, nil
}

func (t *Transport) resourceMetadata(ctx context.Context, from string) (*metadata.ProtectedResource, error) {
	prm := new(metadata.ProtectedResource)
	return prm, t.policy.Get(ctx, t.http, from, prm)
}

// checkResource rejects metadata of another resource (RFC 9728, section 3.3): a token for that
// resource could be misused there. The document at the root of the well-known path may describe the
// whole origin.
func (t *Transport) checkResource(prm *metadata.ProtectedResource, from string) error {
	if isResource(prm.Resource, t.server) {
		return nil
	}
	origin := &url.URL{Scheme: t.server.Scheme, Host: t.server.Host}
	atRoot := &url.URL{Scheme: origin.Scheme, Host: origin.Host, Path: metadata.PathProtectedResource}
	if isResource(from, atRoot) && isResource(prm.Resource, origin) {
		return nil
	}
	return fmt.Errorf("the resource metadata is for %q, not for %q", prm.Resource, t.server.String())
}

// isMissing reports whether a server said that the document does not exist. A server error does not
// count: the document may exist.
func isMissing(err error) bool {
	status, ok := errors.AsType[*metadata.StatusError](err)
	return ok && status.Status/100 == 4 && status.Status != http.StatusTooManyRequests
}

// isResource reports whether a resource identifier names the resource at a URL. It normalizes only
// what users may type differently: the case of the host, the default port, and the slash of an
// empty path.
func isResource(resource string, at *url.URL) bool {
	u, err := url.Parse(resource)
	if err != nil || u.Opaque != "" || u.User != nil || strings.Contains(resource, "#") {
		return false
	}
	return metadata.Origin(u) == metadata.Origin(at) && cmp.Or(u.EscapedPath(), "/") == cmp.Or(at.EscapedPath(), "/") &&
		u.RawQuery == at.RawQuery && u.ForceQuery == at.ForceQuery
}

// chooseIssuer returns the first issuer that knows the client, or otherwise the first issuer.
func (t *Transport) chooseIssuer(issuers []string) (string, error) {
	if len(issuers) == 0 {
		return "", errors.New("the resource metadata lists no authorization server")
	}
	issuers = issuers[:min(len(issuers), maxAuthorizationServers)]
	known, others := t.grant.issuers()
	for _, issuer := range known {
		if slices.Contains(issuers, issuer) {
			return issuer, nil
		}
	}
	if !others {
		return "", fmt.Errorf("the client is known to %q; the resource accepts tokens of %q", known, issuers)
	}
	return issuers[0], nil
}

// checkEndpoints rejects metadata without a token endpoint or with an endpoint that is not allowed.
func (t *Transport) checkEndpoints(as *metadata.AuthorizationServer) error {
	for _, e := range []struct{ name, url string }{
		{"authorization_endpoint", as.AuthorizationEndpoint},
		{"token_endpoint", as.TokenEndpoint},
		{"registration_endpoint", as.RegistrationEndpoint},
	} {
		if e.url == "" && e.name != "token_endpoint" {
			continue
		}
		if _, err := t.policy.CheckURL(e.url); err != nil {
			return fmt.Errorf("the %s of the authorization server %q: %w", e.name, as.Issuer, err)
		}
	}
	return nil
}

// discoverLegacy implements version 2025-03-26: the origin of the server is its own authorization
// server, with endpoints at fixed paths if it has no metadata.
func (t *Transport) discoverLegacy(ctx context.Context) (*discovery, error) {
	origin := t.server.Scheme + "://" + t.server.Host
	if known, others := t.grant.issuers(); !others && !slices.Contains(known, origin) {
		return nil, fmt.Errorf("the client is known to %q; %q has no resource metadata", known, origin)
	}
	p := &discovery{resource: t.server.String()}
	as := new(metadata.AuthorizationServer)
	err := t.policy.Get(ctx, t.http, origin+metadata.PathAuthorizationServer, as)
	switch {
	case err == nil && strings.TrimSuffix(as.Issuer, "/") != origin:
		// That version defines no comparison. A trailing slash is allowed.
		return nil, fmt.Errorf("the metadata of the authorization server %q names the issuer %q", origin, as.Issuer)
	case err == nil:
		p.as = as
	case isMissing(err):
		p.guessed = true
		p.as = &metadata.AuthorizationServer{
			Issuer:                        origin,
			AuthorizationEndpoint:         origin + "/authorize",
			TokenEndpoint:                 origin + "/token",
			RegistrationEndpoint:          origin + "/register",
			CodeChallengeMethodsSupported: []string{"S256"}, // required by that version
		}
	default:
		return nil, fmt.Errorf("metadata of the authorization server %q: %w", origin, err)
	}
	return p, t.checkEndpoints(p.as)
}
