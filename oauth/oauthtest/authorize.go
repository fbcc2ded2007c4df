package oauthtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
)

// An Authorization is the request of a client for a user's consent. [Options.Consent] may change
// its fields, except where noted.
type Authorization struct {
	// ClientID, ClientName and RedirectURI describe the client. Changes have no effect.
	ClientID, ClientName, RedirectURI string
	// Resources are the requested resources. Changes have no effect.
	Resources []string
	// Subject is the user. It is "user" unless changed.
	Subject string
	// Scopes are the requested scopes. Remove those that the user does not grant.
	Scopes []string
	// Claims are added to the token. Nil means none.
	Claims map[string]any
}

// A grant is the consent of a user or client. All of its tokens become invalid with it.
type grant struct {
	client    *client // nil if unknown
	subject   string
	scopes    []string
	resources []string
	claims    map[string]any
	jkt       string // thumbprint of the key that refresh tokens are bound to
	ended     bool   // guarded by Server.mu
}

type code struct {
	grant     *grant
	redirect  string
	challenge string
	jkt       string
	expires   time.Time
	used      bool // guarded by Server.mu
}

// authorize is the authorization endpoint.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	q := r.URL.Query()
	c, redirect, err := s.redirectOf(r.Context(), q)
	if err != nil {
		// Users are never redirected to an unregistered URI.
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	back := redirect.Query()
	back.Set("state", q.Get("state"))
	back.Set("iss", s.Issuer)
	if text, err := s.consent(c, q); err != nil {
		e, ok := errors.AsType[*metadata.Refusal](err)
		if !ok {
			e = refuse("access_denied", "%v", err)
		}
		back.Set("error", e.Code)
		back.Set("error_description", e.Description)
	} else {
		back.Set("code", text)
	}
	redirect.RawQuery = back.Encode()
	w.Header().Set("Location", redirect.String())
	w.WriteHeader(http.StatusFound)
}

// redirectOf returns the client and the redirect URI of a request.
func (s *Server) redirectOf(ctx context.Context, q url.Values) (*client, *url.URL, error) {
	if len(q["client_id"]) != 1 || len(q["redirect_uri"]) != 1 {
		return nil, nil, errors.New("the request needs one client_id and one redirect_uri")
	}
	c, err := s.find(ctx, q.Get("client_id"))
	if err != nil {
		return nil, nil, err
	}
	raw := q.Get("redirect_uri")
	if !slices.ContainsFunc(c.redirects, func(known string) bool { return metadata.SameRedirect(known, raw) }) {
		return nil, nil, fmt.Errorf("the client has registered %q, not the redirect URI %q", c.redirects, raw)
	}
	u, err := url.Parse(raw)
	return c, u, err
}

// consent asks the user and returns a code.
func (s *Server) consent(c *client, q url.Values) (string, error) {
	challenge := q.Get("code_challenge")
	switch {
	case q.Get("response_type") != "code":
		return "", refuse("unsupported_response_type", "the response_type must be code")
	case c.grants != nil && !slices.Contains(c.grants, grantCode):
		return "", refuse("unauthorized_client", "the client has not registered for the grant authorization_code")
	case q.Get("code_challenge_method") != "S256" || len(challenge) != 43:
		return "", refuse("invalid_request", "a code_challenge with the method S256 is required")
	}
	a := &Authorization{
		ClientID: c.id, ClientName: c.name, RedirectURI: q.Get("redirect_uri"), Subject: "user",
		Resources: slices.Clone(q["resource"]), Scopes: strings.Fields(q.Get("scope")),
	}
	if err := s.checkTarget(a.Scopes, a.Resources); err != nil {
		return "", err
	}
	if s.opts.Consent != nil {
		if err := s.opts.Consent(a); err != nil {
			return "", err
		}
	}
	text := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.codes[text] = &code{
		grant: &grant{
			client: c, subject: a.Subject, scopes: slices.Clone(a.Scopes), resources: slices.Clone(q["resource"]),
			claims: maps.Clone(a.Claims),
		},
		redirect: q.Get("redirect_uri"), challenge: challenge, jkt: q.Get("dpop_jkt"), expires: time.Now().Add(codeLifetime),
	}
	return text, nil
}

// checkTarget checks that the requested scopes and resources are supported (RFC 6749, section 3.3;
// RFC 8707, section 2).
func (s *Server) checkTarget(scopes, resources []string) error {
	for _, scope := range scopes {
		if s.opts.Scopes != nil && !slices.Contains(s.opts.Scopes, scope) {
			return refuse("invalid_scope", "unknown scope %q", scope)
		}
	}
	for _, raw := range resources {
		u, err := url.Parse(raw)
		if err != nil || !u.IsAbs() || u.Fragment != "" || strings.HasSuffix(raw, "#") {
			return refuse("invalid_target", "the resource %q is not an absolute URI without a fragment", raw)
		}
	}
	return nil
}
