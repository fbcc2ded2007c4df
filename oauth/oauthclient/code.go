package oauthclient

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth/internal/fetch"
	"github.com/mcpkit/mcpkit-go/oauth/metadata"
)

// AuthorizationCode is the grant of a user who logs in with a browser (OAuth 2.1, section 4.1, with PKCE S256). The client
// is one of Known, or else introduces itself by MetadataURL, or else registers.
type AuthorizationCode struct {
	// Known are the registrations that the client has already, each at its issuer.
	Known []Credentials
	// MetadataURL is the https URL of the client's own metadata document, which is its client ID where an authorization
	// server takes such. Empty for none.
	MetadataURL string
	// Name is what users see of a client that registers.
	Name string
	// Browser takes the user to the authorization server and back; see [Loopback].
	Browser Browser
}

// A Browser prepares one login. It is called before the client registers, so that the redirect URI can be registered.
type Browser func(ctx context.Context, l LoginRequest) (*Login, error)

// A LoginRequest is what a [Browser] may want to know to choose where the user comes back to.
type LoginRequest struct {
	// Issuer is the authorization server at which the user logs in.
	Issuer string
	// RedirectURI is what the client is registered with at Issuer. Empty when it is not registered yet, or when the
	// registration does not say.
	RedirectURI string
	// Distinct says that the redirect URI has to be one that no other issuer has: the answers of Issuer do not name it
	// (RFC 9207), so the address at which they arrive is all that tells whose they are.
	Distinct bool
}

// A Login is one login: the way to the authorization server, and back.
type Login struct {
	// RedirectURI is where the user comes back to: https, or http to a loopback address.
	RedirectURI string
	// Go takes the user to a page and returns the query that they come back with. The URL has been checked: it is https,
	// or http to a loopback address where that is allowed. It must not be given to a shell.
	Visit func(ctx context.Context, page string) (url.Values, error)
	// Close ends the visit; nil where there is nothing to end.
	Close func()
}

func (g *AuthorizationCode) issuers() []string { return issuersOf(g.Known...) }

// introduces: who has registrations but no name to register by is known to those servers alone.
func (g *AuthorizationCode) introduces() bool { return g.Name != "" || g.MetadataURL != "" }

func (g *AuthorizationCode) check() error {
	if g.Browser == nil {
		return errors.New("oauthclient: AuthorizationCode needs a Browser, for example Loopback(nil)")
	}
	if len(g.Known) == 0 && !g.introduces() {
		return errors.New("oauthclient: AuthorizationCode needs Known, a MetadataURL or a Name")
	}
	for _, c := range g.Known {
		if c.Issuer == "" || c.ClientID == "" {
			return errors.New("oauthclient: each of AuthorizationCode.Known needs an Issuer and a ClientID")
		}
	}
	if u, err := url.Parse(g.MetadataURL); g.MetadataURL != "" && (err != nil || u.Scheme != "https" || strings.Trim(u.Path, "/") == "") {
		return fmt.Errorf("oauthclient: the MetadataURL %q must be https and have a path", g.MetadataURL)
	}
	return nil
}

func (g *AuthorizationCode) get(ctx context.Context, t *Transport, p *place, scopes []string) (*Token, *Credentials, error) {
	if !slices.Contains(p.as.CodeChallengeMethodsSupported, "S256") {
		return nil, nil, fmt.Errorf("the authorization server %q does not say that it supports PKCE with S256; MCP clients must refuse it", p.as.Issuer)
	}
	if p.as.AuthorizationEndpoint == "" {
		return nil, nil, fmt.Errorf("the authorization server %q has no authorization endpoint", p.as.Issuer)
	}
	c, err := g.given(p.as)
	if err != nil {
		return nil, nil, err
	}
	request := LoginRequest{Issuer: p.as.Issuer, Distinct: c == nil && !p.as.ISSParameterSupported}
	registered := c
	if c == nil {
		if registered, err = t.registration(ctx, p.as.Issuer); err != nil {
			return nil, nil, err
		}
	}
	if registered != nil {
		request.RedirectURI = registered.RedirectURI
	}
	login, err := g.Browser(ctx, request)
	if err != nil {
		return nil, nil, fmt.Errorf("the way back from the browser: %w", err)
	}
	if login.Close != nil {
		defer login.Close()
	}
	if err := t.claimRedirect(ctx, p.as, login.RedirectURI); err != nil {
		return nil, nil, err
	}
	switch {
	case c != nil:
	case registered != nil && registered.serves(login.RedirectURI):
		c = registered
	default:
		if c, err = t.register(ctx, p.as, g.Name, login.RedirectURI); err != nil {
			return nil, nil, err
		}
		t.keepRegistration(ctx, c)
	}
	if len(scopes) > 0 && slices.Contains(p.as.ScopesSupported, "offline_access") {
		scopes = union(scopes, []string{"offline_access"})
	}
	var answer *tokenResponse
	err = withVerifier(func(verifier []byte) error {
		code, err := t.visit(ctx, p, c, login, verifier, scopes)
		if err != nil {
			return err
		}
		form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {login.RedirectURI}, "resource": {p.resource}}
		answer, err = t.askWith(ctx, p.as, c, form, verifier)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	tok, err := t.tokenOf(answer, p, scopes)
	return tok, c, err
}

// withVerifier calls use with a new verifier of PKCE (RFC 7636, section 4.1), of 43 letters, and wipes it.
func withVerifier(use func(verifier []byte) error) error {
	var secret [32]byte
	verifier := make([]byte, base64.RawURLEncoding.EncodedLen(len(secret)))
	defer func() {
		clear(secret[:])
		clear(verifier)
	}()
	_, _ = rand.Read(secret[:]) // which never fails
	base64.RawURLEncoding.Encode(verifier, secret[:])
	return use(verifier)
}

// visit sends the user to the authorization endpoint and returns the code that they come back with.
func (t *Transport) visit(ctx context.Context, p *place, c *Credentials, login *Login, verifier []byte, scopes []string) (string, error) {
	page, err := t.policy.CheckURL(p.as.AuthorizationEndpoint)
	if err != nil {
		return "", err
	}
	state := rand.Text()
	challenge := sha256.Sum256(verifier)
	q := page.Query()
	for name, value := range map[string]string{
		"response_type": "code", "client_id": c.ClientID, "redirect_uri": login.RedirectURI, "state": state, "resource": p.resource,
		"code_challenge": base64.RawURLEncoding.EncodeToString(challenge[:]), "code_challenge_method": "S256",
	} {
		q.Set(name, value)
	}
	if len(scopes) > 0 {
		q.Set("scope", strings.Join(scopes, " "))
	}
	if slices.Contains(scopes, "offline_access") {
		q.Set("prompt", "consent") // else servers must ignore that scope (OpenID Connect Core 1.0, section 11)
	}
	if t.prover != nil {
		q.Set("dpop_jkt", t.prover.Thumbprint())
	}
	page.RawQuery = q.Encode()
	back, err := login.Visit(ctx, page.String())
	if err != nil {
		return "", fmt.Errorf("the login at %q: %w", p.as.Issuer, err)
	}
	return takeCode(back, p.as, state)
}

// takeCode checks who answered before it looks at the answer: until then even an error is a stranger's.
func takeCode(back url.Values, as *metadata.AuthorizationServer, state string) (string, error) {
	for _, name := range []string{"state", "iss", "code", "error"} {
		if len(back[name]) > 1 {
			return "", fmt.Errorf("the answer from %q has more than one %s", as.Issuer, name)
		}
	}
	if subtle.ConstantTimeCompare([]byte(back.Get("state")), []byte(state)) != 1 {
		return "", fmt.Errorf("the answer from %q is not to this login: its state is another", as.Issuer)
	}
	// RFC 9207, section 2.4: compared as it stands, and demanded where it was promised.
	switch {
	case back.Has("iss") && back.Get("iss") != as.Issuer:
		return "", fmt.Errorf("the answer is from another authorization server than %q", as.Issuer)
	case !back.Has("iss") && as.ISSParameterSupported:
		return "", fmt.Errorf("the answer does not say that it is from %q, which says it in all of its answers", as.Issuer)
	}
	if back.Has("error") {
		return "", &GrantError{Issuer: as.Issuer, Code: back.Get("error"), Description: back.Get("error_description")}
	}
	if back.Get("code") == "" {
		return "", fmt.Errorf("the answer from %q has no code", as.Issuer)
	}
	return back.Get("code"), nil
}

// given is who the client is to a server that knows it, or can read its document; nil when it has to register.
func (g *AuthorizationCode) given(as *metadata.AuthorizationServer) (*Credentials, error) {
	for i := range g.Known {
		if g.Known[i].Issuer == as.Issuer {
			return &g.Known[i], nil
		}
	}
	if g.MetadataURL != "" && as.ClientIDMetadataDocumentSupported {
		return &Credentials{Issuer: as.Issuer, ClientID: g.MetadataURL, AuthMethod: AuthNone}, nil
	}
	if g.Name == "" || as.RegistrationEndpoint == "" {
		return nil, fmt.Errorf("the authorization server %q does not know the client and lets none register; "+
			"register it there by hand and put it into AuthorizationCode.Known", as.Issuer)
	}
	return nil, nil
}

// serves reports whether a registration is good for a redirect URI. Servers compare those as they stand.
func (c *Credentials) serves(redirect string) bool {
	return c.RedirectURI == redirect && (c.SecretExpires.IsZero() || time.Now().Before(c.SecretExpires))
}

// registration is who the client registered as at an issuer, nil if it did not.
func (t *Transport) registration(ctx context.Context, issuer string) (*Credentials, error) {
	t.mu.Lock()
	c := t.registered
	t.mu.Unlock()
	if c != nil && c.Issuer == issuer {
		return c, nil
	}
	r, err := t.load(ctx, Key{Issuer: issuer})
	if r == nil || err != nil || r.Client == nil || r.Client.Issuer != issuer {
		return nil, err
	}
	return r.Client, nil
}

// keepRegistration keeps a registration for later logins, also if the store does not.
func (t *Transport) keepRegistration(ctx context.Context, c *Credentials) {
	t.mu.Lock()
	t.registered = c
	t.mu.Unlock()
	if err := t.store.Save(ctx, Key{Issuer: c.Issuer}, &Record{Client: c}); err != nil {
		t.logger.WarnContext(ctx, "oauthclient: the store did not keep the registration; the next run registers again", "issuer", c.Issuer, "error", err.Error())
	}
}

// claimRedirect refuses a redirect URI that another issuer has, where the answers of this one do not say whose they are
// (RFC 9700, section 4.4.2.2): an attacker's server could have the user log in at an honest one, and be sent the code.
func (t *Transport) claimRedirect(ctx context.Context, as *metadata.AuthorizationServer, redirect string) error {
	if as.ISSParameterSupported {
		return nil
	}
	if u, err := url.Parse(redirect); err == nil && u.Scheme == "http" && fetch.IsLoopback(u.Hostname()) {
		u.Host = strings.TrimSuffix(u.Host, ":"+u.Port()) // which is another one each time
		redirect = u.String()
	}
	key := Key{Resource: redirect}
	r, err := t.load(ctx, key)
	switch {
	case err != nil:
		return err
	case r != nil && r.Client != nil && r.Client.Issuer != as.Issuer:
		return fmt.Errorf("the redirect URI %q serves the authorization server %q already, and the answers of %q do not say whose they are (RFC 9207); "+
			"use another redirect URI for it", redirect, r.Client.Issuer, as.Issuer)
	case r != nil:
		return nil
	}
	if err := t.store.Save(ctx, key, &Record{Client: &Credentials{Issuer: as.Issuer, RedirectURI: redirect}}); err != nil {
		t.logger.WarnContext(ctx, "oauthclient: the store did not keep which authorization server a redirect URI serves", "issuer", as.Issuer, "error", err.Error())
	}
	return nil
}

// register introduces the client (RFC 7591).
func (t *Transport) register(ctx context.Context, as *metadata.AuthorizationServer, name, redirect string) (*Credentials, error) {
	u, err := url.Parse(redirect)
	if err != nil {
		return nil, fmt.Errorf("the redirect URI %q is no URL", redirect)
	}
	doc := metadata.Client{
		ClientName: name, RedirectURIs: []string{redirect}, ResponseTypes: []string{"code"},
		GrantTypes: []string{"authorization_code", "refresh_token"}, ApplicationType: "web",
	}
	if u.Scheme != "https" || fetch.IsLoopback(u.Hostname()) {
		doc.ApplicationType = "native"
	}
	can := as.TokenEndpointAuthMethodsSupported
	for _, m := range []string{AuthNone, AuthBasic, AuthPost} {
		if slices.Contains(can, m) {
			doc.TokenEndpointAuthMethod = m
			break
		}
	}
	body, err := jsonx.Marshal(doc)
	if err != nil {
		return nil, err
	}
	var r struct {
		metadata.Registration
		Error            string `json:"error"`
		ErrorDescription string `json:"error_description"`
	}
	status, _, err := t.post(ctx, as.RegistrationEndpoint, http.Header{"Content-Type": {"application/json"}}, &r, body)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the registration endpoint of %q: %w", as.Issuer, err)
	case status/100 != 2 || r.ClientID == "":
		return nil, fmt.Errorf("registration: %w", &GrantError{Issuer: as.Issuer, Code: r.Error, Description: r.ErrorDescription, Status: status})
	}
	c := &Credentials{
		Issuer: as.Issuer, ClientID: r.ClientID, ClientSecret: r.ClientSecret, AuthMethod: r.TokenEndpointAuthMethod, RedirectURI: redirect,
	}
	switch {
	case c.ClientSecret == "":
		c.AuthMethod = AuthNone
	case c.AuthMethod == "":
		c.AuthMethod = doc.TokenEndpointAuthMethod // it did not say that it wants another
	}
	if r.ClientSecretExpiresAt > 0 {
		c.SecretExpires = time.Unix(r.ClientSecretExpiresAt, 0)
	}
	return c, nil
}
