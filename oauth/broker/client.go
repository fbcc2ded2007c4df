package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/limits"
	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
)

const (
	registrationLifetime = 365 * 24 * time.Hour
	maxClientBytes       = 1000 // of the name and redirect URIs of a registered client
	maxClientID          = 2000
	maxRedirects         = 10
	maxName              = 60 // characters

	documentLifetime = 10 * time.Minute // of a cached metadata document of a client
	failureLifetime  = time.Minute
	maxDocuments     = 1000 // cached
	maxFetches       = 32   // at a time
)

// everywhere are all networks, for URLs that the operator has chosen.
var everywhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

// A client is what the broker knows of an OAuth client: what it said when it registered, or in its
// metadata document. All clients are public: they have no secret, and prove themselves by PKCE.
type client struct {
	Name      string   `json:"n,omitempty"`
	Redirects []string `json:"r"`
	Grants    []string `json:"g,omitempty"`
	Issued    int64    `json:"t,omitempty"` // of a registration, in Unix seconds

	host string // that vouches for the client; "" if none does
}

// newClient checks what a client says of itself.
func newClient(doc *metadata.Client) (*client, error) {
	c := &client{Name: plainName(doc.ClientName), Redirects: doc.RedirectURIs, Grants: doc.GrantTypes}
	size := len(c.Name)
	for _, raw := range c.Redirects {
		size += len(raw)
		if !allowedRedirect(raw) {
			return nil, refuse("invalid_redirect_uri", "a redirect URI must be https, or http with a loopback "+
				"address, without a user name and a fragment")
		}
	}
	switch {
	case len(c.Redirects) == 0 || len(c.Redirects) > maxRedirects:
		return nil, refuse("invalid_redirect_uri", "a client needs 1 to %d redirect_uris", maxRedirects)
	case size > maxClientBytes:
		return nil, refuse(codeInvalidMetadata, "name and redirect_uris are longer than %d bytes", maxClientBytes)
	case c.Grants != nil && !slices.Contains(c.Grants, grantCode):
		return nil, refuse(codeInvalidMetadata, "the only grant for users is authorization_code")
	case doc.ResponseTypes != nil && !slices.Contains(doc.ResponseTypes, "code"):
		return nil, refuse(codeInvalidMetadata, "the only response type is code")
	}
	c.Grants = []string{grantCode}
	if slices.Contains(doc.GrantTypes, grantRefresh) {
		c.Grants = append(c.Grants, grantRefresh)
	}
	return c, nil
}

// plainName returns a name without characters that change how the page around it looks.
func plainName(name string) string {
	name = strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return -1
		}
		return r
	}, name)
	if runes := []rune(name); len(runes) > maxName {
		name = string(runes[:maxName]) + "…"
	}
	return strings.TrimSpace(name)
}

// plainHost excludes characters that are allowed in URLs but have a meaning in a header or a page.
var plainHost = regexp.MustCompile(`^([a-zA-Z0-9.-]+|\[[0-9a-fA-F:.]+\])(:[0-9]+)?$`)

// allowedRedirect checks a redirect URI as MCP demands: https, or http on this machine.
func allowedRedirect(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && u.User == nil && plainHost.MatchString(u.Host) && !strings.Contains(raw, "#") &&
		!strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }) &&
		(u.Scheme == "https" || u.Scheme == "http" && metadata.IsLoopback(u.Hostname()))
}

// allows reports whether the client has the redirect URI.
func (c *client) allows(redirect string) bool {
	return allowedRedirect(redirect) && slices.ContainsFunc(c.Redirects, func(known string) bool {
		return metadata.SameRedirect(known, redirect)
	})
}

func isLoopback(u *url.URL) bool { return metadata.IsLoopback(u.Hostname()) }

// register is the registration endpoint (RFC 7591). A client ID is the registration itself, sealed, so
// that registrations take no space, and all replicas know them.
func (b *Broker) register(r *http.Request) (any, error) {
	var doc metadata.Client
	body, err := io.ReadAll(r.Body)
	if err = errors.Join(err, jsonx.Unmarshal(body, &doc)); err != nil {
		return nil, refuse(codeInvalidMetadata, "the document is not the JSON of a client")
	}
	c, err := newClient(&doc)
	if err != nil {
		return nil, err
	}
	c.Issued = time.Now().Unix()
	id, err := b.keys.write("client", c)
	if err != nil {
		return nil, err
	}
	return &metadata.Client{
		ClientID: id, ClientName: c.Name, RedirectURIs: c.Redirects, GrantTypes: c.Grants,
		ResponseTypes: []string{"code"}, TokenEndpointAuthMethod: "none",
	}, nil
}

// client returns the client with an ID: a registered one, or the one that the document at its URL
// describes.
func (b *Broker) client(ctx context.Context, id string) (*client, error) {
	if strings.HasPrefix(id, "https://") || strings.HasPrefix(id, "http://") {
		return b.documents.client(ctx, id)
	}
	c := new(client)
	if len(id) > maxClientID || !b.keys.read("client", id, c) {
		return nil, errors.New("the program is not registered here")
	}
	if time.Since(time.Unix(c.Issued, 0)) > registrationLifetime {
		return nil, errors.New("the registration of the program has expired")
	}
	return c, nil
}

// documents fetches client ID metadata documents, and caches them.
type documents struct {
	policy metadata.Policy
	http   *http.Client
	slots  chan struct{} // of running fetches
	cache  *limits.Map[string, document]
}

// A document is the outcome of a fetch.
type document struct {
	client *client
	err    error
}

func newDocuments(policy metadata.Policy) *documents {
	return &documents{
		// A redirect would let an open redirector of a host vouch for a client.
		policy: policy, http: metadata.WithoutRedirects(policy.Client()),
		slots: make(chan struct{}, maxFetches), cache: limits.NewMap[string, document](maxDocuments),
	}
}

// client returns the client that the document at a URL describes.
func (d *documents) client(ctx context.Context, id string) (*client, error) {
	u, err := d.policy.CheckURL(id)
	if err != nil || len(id) > maxClientID || strings.Contains(id, "#") || strings.Trim(u.Path, "/") == "" ||
		!plainHost.MatchString(u.Host) || slices.ContainsFunc(strings.Split(u.Path, "/"), isDots) {
		return nil, errors.New("the ID of the program is not the URL of a metadata document")
	}
	now := time.Now()
	if cached, ok := d.cache.Get(id, now); ok {
		return cached.client, cached.err
	}
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	c, err := d.fetch(ctx, id)
	if ctx.Err() != nil {
		return nil, err // which says nothing about the document
	}
	if err != nil {
		d.cache.Put(id, document{err: err}, now.Add(failureLifetime))
		return nil, err
	}
	c.host = u.Host
	d.cache.Put(id, document{client: c}, now.Add(documentLifetime))
	return c, nil
}

func isDots(segment string) bool { return segment == "." || segment == ".." }

func (d *documents) fetch(ctx context.Context, id string) (*client, error) {
	var doc metadata.Client
	if err := d.policy.Get(ctx, d.http, id, &doc); err != nil {
		return nil, fmt.Errorf("the metadata document of the program cannot be read: %w", err)
	}
	switch {
	case doc.ClientID != id:
		return nil, errors.New("the metadata document of the program describes another program")
	case cmp.Or(doc.TokenEndpointAuthMethod, "none") != "none":
		return nil, errors.New("the program authenticates in a way that is not supported here")
	}
	return newClient(&doc)
}
