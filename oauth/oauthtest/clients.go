package oauthtest

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
)

// Authentication methods of clients, and the error code if authentication fails.
const (
	authNone  = "none"
	authBasic = "client_secret_basic"
	authPost  = "client_secret_post"

	codeInvalidClient = metadata.CodeInvalidClient
)

// A Client is registered from the start. Without Secret it is a public client.
type Client struct {
	ID string
	// Secret authenticates the client, by HTTP Basic or in the form.
	Secret string
	// RedirectURIs are the allowed redirect URIs. The port of a loopback address may differ (RFC
	// 8252, section 7.3).
	RedirectURIs []string
}

// A client is a known client: registered, or described by its metadata document.
type client struct {
	id, name  string
	secret    string
	methods   []string // authentication methods
	redirects []string
	grants    []string // nil means all
}

func (c *client) public() bool { return slices.Contains(c.methods, authNone) }

func (c Client) known() (*client, error) {
	k := &client{id: c.ID, name: c.ID, secret: c.Secret, redirects: c.RedirectURIs}
	switch {
	case c.ID == "":
		return nil, errors.New("it needs an ID")
	case c.Secret != "":
		k.methods = []string{authBasic, authPost}
	default:
		k.methods = []string{authNone}
	}
	return k, nil
}

// register registers a client (RFC 7591).
func (s *Server) register(r *http.Request) (any, error) {
	var doc metadata.Client
	body, err := io.ReadAll(r.Body)
	if err = errors.Join(err, jsonx.Unmarshal(body, &doc)); err != nil {
		return nil, refuse("invalid_client_metadata", "the document is invalid: %v", err)
	}
	c, err := clientOf(&doc)
	if err != nil {
		return nil, err
	}
	c.id = "client-" + rand.Text()
	reg := metadata.Registration{Client: doc}
	reg.ClientID, reg.TokenEndpointAuthMethod, reg.GrantTypes = c.id, c.methods[0], c.grants
	if !c.public() {
		c.secret = rand.Text()
		reg.ClientSecret = c.secret
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[c.id] = c
	return reg, nil
}

// clientOf returns the client that a metadata document describes.
func clientOf(doc *metadata.Client) (*client, error) {
	c := &client{name: doc.ClientName, redirects: doc.RedirectURIs, grants: doc.GrantTypes}
	if c.grants == nil {
		c.grants = []string{grantCode} // RFC 7591, section 2
	}
	switch m := doc.TokenEndpointAuthMethod; m {
	case authNone, authBasic, authPost:
		c.methods = []string{m}
	case "":
		c.methods = []string{authBasic}
	default:
		return nil, refuse("invalid_client_metadata", "unknown token_endpoint_auth_method %q", m)
	}
	if len(c.redirects) == 0 && slices.Contains(c.grants, grantCode) {
		return nil, refuse("invalid_redirect_uri", "the client needs redirect_uris")
	}
	for _, raw := range c.redirects {
		if err := checkRedirect(raw, doc.ApplicationType); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// checkRedirect checks a redirect URI: MCP requires https or a loopback address, and OpenID Connect
// Dynamic Client Registration, section 2, restricts it by application type.
func checkRedirect(raw, application string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Fragment != "":
		return refuse("invalid_redirect_uri", "the redirect URI %q is not an absolute URL without a fragment", raw)
	case u.Scheme == "http" && !metadata.IsLoopback(u.Hostname()):
		return refuse("invalid_redirect_uri", "the redirect URI %q must be https, or http with a loopback address", raw)
	case application == "web" && metadata.IsLoopback(u.Hostname()):
		return refuse("invalid_redirect_uri", "the redirect URI %q is not for a web application", raw)
	case u.Scheme == "javascript" || u.Scheme == "data" || u.Scheme == "file":
		return refuse("invalid_redirect_uri", "the redirect URI %q does not lead to a client", raw)
	}
	return nil
}

// find returns the client with an ID: a known client, or the one that its document describes.
func (s *Server) find(ctx context.Context, id string) (*client, error) {
	s.mu.Lock()
	c := s.clients[id]
	s.mu.Unlock()
	if c != nil {
		return c, nil
	}
	u, err := url.Parse(id)
	if err != nil || u.Scheme != "https" || strings.Trim(u.Path, "/") == "" || u.Fragment != "" || u.User != nil {
		return nil, refuse(codeInvalidClient, "unknown client %q", id)
	}
	doc := metadata.Client{TokenEndpointAuthMethod: authNone}
	text, err := s.opts.ClientMetadata(ctx, id)
	if err == nil {
		err = jsonx.Unmarshal(text, &doc)
	}
	switch {
	case err != nil:
		return nil, refuse(codeInvalidClient, "the document of the client %q: %v", id, err)
	case doc.ClientID != id:
		return nil, refuse(codeInvalidClient, "the document at %q describes the client %q", id, doc.ClientID)
	case doc.TokenEndpointAuthMethod != authNone:
		return nil, refuse(codeInvalidClient, "the document at %q names a method with a secret, but documents are public", id)
	}
	if c, err = clientOf(&doc); err == nil {
		c.id = id
	}
	return c, err
}

// authenticate reads the form of a request and returns the client that sends it, or nil if the form
// names none. Only resource and audience may be repeated (RFC 6749, section 3.2).
func (s *Server) authenticate(r *http.Request) (*client, error) {
	if err := r.ParseForm(); err != nil {
		return nil, refuse("invalid_request", "the form cannot be read")
	}
	form := r.PostForm
	for name, values := range form {
		if len(values) > 1 && name != "resource" && name != "audience" {
			return nil, refuse("invalid_request", "%s is repeated", name)
		}
	}
	id, secret, basic := r.BasicAuth()
	post := form.Has("client_secret")
	method := authNone
	switch {
	case basic && post:
		return nil, refuse("invalid_request", "the client authenticates twice")
	case basic:
		method = authBasic
	case post:
		method = authPost
	case !form.Has("client_id"):
		return nil, nil
	}
	if basic {
		var badID, badSecret error
		id, badID = url.QueryUnescape(id)
		secret, badSecret = url.QueryUnescape(secret)
		if badID != nil || badSecret != nil {
			return nil, refuse(codeInvalidClient, "the ID and the secret are not form-encoded (RFC 6749, section 2.3.1)")
		}
	} else {
		id, secret = form.Get("client_id"), form.Get("client_secret")
	}
	c, err := s.find(r.Context(), id)
	switch {
	case err != nil:
		return nil, err
	case form.Has("client_id") && form.Get("client_id") != id:
		return nil, refuse("invalid_request", "the request has two different client IDs")
	case !slices.Contains(c.methods, method):
		return nil, refuse(codeInvalidClient, "the client must authenticate with %s", strings.Join(c.methods, " or "))
	case method != authNone && subtle.ConstantTimeCompare([]byte(c.secret), []byte(secret)) != 1:
		return nil, refuse(codeInvalidClient, "the secret is incorrect")
	}
	return c, nil
}
