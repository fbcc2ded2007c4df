package oauthtest

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/mcpkit/mcpkit-go/oauth/internal/dpop"
	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
)

// Grants.
const (
	grantCode        = "authorization_code"
	grantRefresh     = "refresh_token"
	grantCredentials = "client_credentials"
)

// A refreshToken is replaced when it is used.
type refreshToken struct {
	grant *grant
	used  bool // guarded by Server.mu
}

// A request is an authenticated request to the token endpoint.
type request struct {
	form   url.Values
	client *client // nil if the request names no client
	jkt    string  // thumbprint of the key to bind the token to; "" for none
}

// token is the token endpoint.
func (s *Server) token(r *http.Request) (any, error) {
	jkt, err := s.dpop.VerifyToken(r, s.Endpoint("token"))
	switch {
	case err != nil:
		return nil, err
	case jkt == "" && s.opts.RequireDPoP:
		return nil, refuse("invalid_dpop_proof", "a proof is required")
	}
	c, err := s.authenticate(r)
	if err != nil {
		return nil, err
	}
	asked := &request{form: r.PostForm, client: c, jkt: jkt}
	name := r.PostForm.Get("grant_type")
	if other := s.opts.Grants[name]; other != nil {
		return s.giveOther(asked, other)
	}
	grants := map[string]func(*request) (*metadata.Tokens, error){
		grantCode: s.redeem, grantRefresh: s.renew, grantCredentials: s.forClient,
	}
	give := grants[name]
	switch {
	case give == nil:
		return nil, refuse("unsupported_grant_type", "unknown grant type %q", name)
	case c == nil:
		return nil, refuse(codeInvalidClient, "the request does not name its client")
	case c.grants != nil && !slices.Contains(c.grants, name):
		return nil, refuse("unauthorized_client", "the client has not registered for the grant %s", name)
	}
	return give(asked)
}

// redeem issues tokens for a code. A code that is used twice ends its grant (RFC 6749, section
// 4.1.2).
func (s *Server) redeem(r *request) (*metadata.Tokens, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.codes[r.form.Get("code")]
	switch {
	case c == nil || c.grant.client.id != r.client.id:
		return nil, refuse("invalid_grant", "the client has no such code")
	case c.used:
		c.grant.ended = true
		return nil, refuse("invalid_grant", "the code was used before")
	}
	c.used = true
	switch {
	case !time.Now().Before(c.expires):
		return nil, refuse("invalid_grant", "the code has expired")
	case r.form.Get("redirect_uri") != c.redirect:
		return nil, refuse("invalid_grant", "the redirect_uri differs from that of the code")
	case oauth2.S256ChallengeFromVerifier(r.form.Get("code_verifier")) != c.challenge:
		return nil, refuse("invalid_grant", "the code_verifier does not match the code_challenge")
	case c.jkt != "" && c.jkt != r.jkt:
		return nil, refuse("invalid_dpop_proof", "the code is bound to another key")
	}
	if r.client.public() {
		c.grant.jkt = r.jkt // RFC 9449, section 5: the refresh tokens of others are bound by their authentication
	}
	return s.give(c.grant, r)
}

// renew issues tokens for a refresh token, which it replaces. A refresh token that is used twice
// may be stolen, so it ends its grant (RFC 9700, section 4.14.2).
func (s *Server) renew(r *request) (*metadata.Tokens, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.refresh[r.form.Get("refresh_token")]
	switch {
	case t == nil || t.grant.client.id != r.client.id:
		return nil, refuse("invalid_grant", "the client has no such refresh token")
	case t.grant.ended:
		return nil, refuse("invalid_grant", "the refresh token was revoked")
	case t.used:
		t.grant.ended = true
		return nil, refuse("invalid_grant", "the refresh token was used before")
	case t.grant.jkt != "" && t.grant.jkt != r.jkt:
		return nil, refuse("invalid_dpop_proof", "the refresh token is bound to another key")
	}
	a, err := s.give(t.grant, r)
	t.used = err == nil
	return a, err
}

// give issues the tokens of a grant. The caller holds s.mu. A request may ask for fewer resources than
// the grant allows.
func (s *Server) give(g *grant, r *request) (*metadata.Tokens, error) {
	resources := g.resources
	if asked := r.form["resource"]; len(asked) > 0 {
		if len(resources) > 0 && !contains(resources, asked) {
			return nil, refuse("invalid_target", "only the resources %q were granted", resources)
		}
		resources = asked
	}
	a, err := s.issue(g, g.scopes, resources, r.jkt)
	if err != nil {
		return nil, err
	}
	if !s.opts.NoRefresh && (g.client.grants == nil || slices.Contains(g.client.grants, grantRefresh)) {
		a.RefreshToken = rand.Text()
		s.refresh[a.RefreshToken] = &refreshToken{grant: g}
	}
	return a, nil
}

// issue issues an access token. The caller holds s.mu.
func (s *Server) issue(g *grant, scopes, resources []string, jkt string) (*metadata.Tokens, error) {
	if len(resources) == 0 {
		resources = []string{s.Issuer} // the token has no other use
	}
	return s.answer(&Token{
		Subject: g.subject, ClientID: g.client.id, Audience: resources, Scopes: scopes, Thumbprint: jkt, Claims: g.claims,
	}, g)
}

// answer returns the response with a new access token. The caller holds s.mu.
func (s *Server) answer(t *Token, g *grant) (*metadata.Tokens, error) {
	text, err := s.mint(t, g)
	if err != nil {
		return nil, err
	}
	kind := "Bearer"
	if t.Thumbprint != "" {
		kind = dpop.Scheme
	}
	expires := int64(s.opts.Lifetime.Seconds())
	return &metadata.Tokens{AccessToken: text, TokenType: kind, ExpiresIn: expires, Scope: strings.Join(t.Scopes, " ")}, nil
}

// forClient issues a token to a client that acts for itself.
func (s *Server) forClient(r *request) (*metadata.Tokens, error) {
	if r.client.public() {
		return nil, refuse("unauthorized_client", "a public client cannot act for itself")
	}
	scopes := strings.Fields(r.form.Get("scope"))
	if err := s.checkTarget(scopes, r.form["resource"]); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.issue(&grant{client: r.client, subject: r.client.id}, scopes, r.form["resource"], r.jkt)
}

// giveOther issues the token of one of [Options.Grants].
func (s *Server) giveOther(r *request, give func(url.Values) (*Token, error)) (*metadata.Tokens, error) {
	t, err := give(r.form)
	if err != nil {
		return nil, refuse("invalid_grant", "%v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Thumbprint = r.jkt
	return s.answer(t, nil)
}

// contains reports whether all contains every element of asked.
func contains(all, asked []string) bool {
	return !slices.ContainsFunc(asked, func(one string) bool { return !slices.Contains(all, one) })
}
