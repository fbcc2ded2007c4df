package oauthclient

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth/internal/fetch"
	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
)

// AuthorizationCode is the grant of a user who logs in with a browser (OAuth 2.1, section 4.1, with
// PKCE S256). The client identifies itself by one of Known, otherwise by MetadataURL, otherwise it
// registers.
type AuthorizationCode struct {
	// Known are the client's existing registrations, each with its issuer.
	Known []Credentials
	// MetadataURL is the https URL of the client's own metadata document. It is the client ID at
	// authorization servers that support such documents. Empty if there is none.
	MetadataURL string
	// Name is what users see when the client registers itself. If empty, the client does not
	// register.
	Name string
	// Browser opens the login page for the user and waits for the result. Required. See [Loopback].
	Browser Browser
}

// A Browser prepares one login. The transport calls it before the client registers, because a
// registration contains the redirect URI.
type Browser func(ctx context.Context, l LoginRequest) (*Login, error)

// A LoginRequest tells a [Browser] which login to prepare.
type LoginRequest struct {
	// Issuer is the authorization server at which the user logs in.
	Issuer string
	// RedirectURI is the redirect URI that the client is registered with at Issuer. Empty if the
	// client is not registered or the registration does not contain it.
	RedirectURI string
	// Distinct reports that the redirect URI must differ from those of all other issuers. It is set
	// if the responses of Issuer do not contain the issuer (RFC 9207), so that only the redirect
	// URI identifies the sender.
	Distinct bool
}

// A Login is one login in progress.
type Login struct {
	// RedirectURI is the redirect URI of the login: https, or http to a loopback address.
	RedirectURI string
	// Visit shows the page to the user and returns the query parameters of the redirect that ends
	// the login. The transport has checked that the page is an https URL, or an http URL of a
	// loopback address if those are allowed. Do not pass the URL to a shell.
	Visit func(ctx context.Context, page string) (url.Values, error)
	// Close releases the resources of the login. Nil if there are none.
	Close func()
}

func (g *AuthorizationCode) issuers() (known []string, others bool) {
	for _, c := range g.Known {
		known = append(known, c.Issuer)
	}
	return known, g.Name != "" || g.MetadataURL != ""
}

func (g *AuthorizationCode) check() error {
	if g.Browser == nil {
		return errors.New("oauthclient: AuthorizationCode needs a Browser, for example Loopback(nil)")
	}
	if known, others := g.issuers(); len(known) == 0 && !others {
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

func (g *AuthorizationCode) get(ctx context.Context, t *Transport, p *discovery, scopes []string) (*issuedToken, error) {
	if !slices.Contains(p.as.CodeChallengeMethodsSupported, "S256") {
		return nil, fmt.Errorf("the authorization server %q does not say that it supports PKCE with S256; MCP clients must refuse it", p.as.Issuer)
	}
	if p.as.AuthorizationEndpoint == "" {
		return nil, fmt.Errorf("the authorization server %q has no authorization endpoint", p.as.Issuer)
	}
	c, err := g.given(p.as)
	if err != nil {
		return nil, err
	}
	request := LoginRequest{Issuer: p.as.Issuer, Distinct: c == nil && !p.as.ISSParameterSupported}
	registered := c
	if c == nil {
		if registered, err = t.registration(ctx, p.as.Issuer); err != nil {
			return nil, err
		}
	}
	if registered != nil {
		request.RedirectURI = registered.RedirectURI
	}
	login, err := g.Browser(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("the redirect from the browser: %w", err)
	}
	if login.Close != nil {
		defer login.Close()
	}
	if err := t.claimRedirect(ctx, p.as, login.RedirectURI); err != nil {
		return nil, err
	}
	switch {
	case c != nil:
	case registered != nil && registered.serves(login.RedirectURI):
		c = registered
	default:
		if c, err = t.register(ctx, p.as, g.Name, login.RedirectURI); err != nil {
			return nil, err
		}
		if err := t.opts.Store.Save(ctx, Key{Issuer: c.Issuer}, &Record{Client: c}); err != nil {
			t.opts.Logger.WarnContext(ctx, "oauthclient: the store did not save the registration; the next login registers again", "issuer", c.Issuer, "error", err)
		}
	}
	if len(scopes) > 0 && slices.Contains(p.as.ScopesSupported, "offline_access") {
		scopes = union(scopes, []string{"offline_access"})
	}
	verifier := oauth2.GenerateVerifier()
	code, err := t.visit(ctx, p, c, login, verifier, scopes)
	if err != nil {
		return nil, err
	}
	form := tokenForm("authorization_code", p, nil)
	form.Set("code", code)
	form.Set("redirect_uri", login.RedirectURI)
	form.Set("code_verifier", verifier)
	answer, err := t.ask(ctx, p.as, c, form)
	if err != nil {
		return nil, err
	}
	return t.tokenOf(answer, p, c, scopes)
}

// visit sends the user to the authorization endpoint and returns the authorization code.
func (t *Transport) visit(ctx context.Context, p *discovery, c *Credentials, login *Login, verifier string, scopes []string) (string, error) {
	if _, err := t.policy.CheckURL(p.as.AuthorizationEndpoint); err != nil {
		return "", err
	}
	state := rand.Text()
	params := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("resource", p.resource)}
	if slices.Contains(scopes, "offline_access") {
		// Otherwise servers must ignore that scope (OpenID Connect Core 1.0, section 11).
		params = append(params, oauth2.SetAuthURLParam("prompt", "consent"))
	}
	if t.opts.DPoP != nil {
		params = append(params, oauth2.SetAuthURLParam("dpop_jkt", t.opts.DPoP.Thumbprint()))
	}
	page := oauth2.Config{
		ClientID: c.ClientID, RedirectURL: login.RedirectURI, Scopes: scopes,
		Endpoint: oauth2.Endpoint{AuthURL: p.as.AuthorizationEndpoint},
	}
	back, err := login.Visit(ctx, page.AuthCodeURL(state, params...))
	if err != nil {
		return "", fmt.Errorf("the login at %q: %w", p.as.Issuer, err)
	}
	return takeCode(back, p.as, state)
}

// takeCode validates the sender of a redirect before it reads the result. Until then even an error
// may be forged.
func takeCode(back url.Values, as *metadata.AuthorizationServer, state string) (string, error) {
	for _, name := range []string{"state", "iss", "code", "error"} {
		if len(back[name]) > 1 {
			return "", fmt.Errorf("the response from %q has more than one %s", as.Issuer, name)
		}
	}
	if subtle.ConstantTimeCompare([]byte(back.Get("state")), []byte(state)) != 1 {
		return "", fmt.Errorf("the response from %q belongs to another login: its state differs", as.Issuer)
	}
	// RFC 9207, section 2.4: compare byte by byte, and require iss if the metadata promises it.
	switch {
	case back.Has("iss") && back.Get("iss") != as.Issuer:
		return "", fmt.Errorf("the response is not from the authorization server %q", as.Issuer)
	case !back.Has("iss") && as.ISSParameterSupported:
		return "", fmt.Errorf("the response has no iss parameter; %q promises one in its metadata", as.Issuer)
	}
	if back.Has("error") {
		return "", &GrantError{Issuer: as.Issuer, Code: back.Get("error"), Description: back.Get("error_description")}
	}
	if back.Get("code") == "" {
		return "", fmt.Errorf("the response from %q has no code", as.Issuer)
	}
	return back.Get("code"), nil
}

// given returns the credentials for a server that knows the client or can read its metadata
// document. It returns nil if the client has to register.
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
		return nil, fmt.Errorf("the authorization server %q does not know the client and has no dynamic registration; "+
			"register it there by hand and put it into AuthorizationCode.Known", as.Issuer)
	}
	return nil, nil
}

// serves reports whether a registration is valid for a redirect URI. Servers compare redirect URIs
// byte by byte.
func (c *Credentials) serves(redirect string) bool {
	return c.RedirectURI == redirect && (c.SecretExpires.IsZero() || time.Now().Before(c.SecretExpires))
}

// registration returns the client's registration at an issuer, or nil if there is none.
func (t *Transport) registration(ctx context.Context, issuer string) (*Credentials, error) {
	r, err := t.load(ctx, Key{Issuer: issuer})
	if r == nil || err != nil || r.Client == nil || r.Client.Issuer != issuer {
		return nil, err
	}
	return r.Client, nil
}

// forget drops a registration that its server does not know any more. The next login registers again.
func (t *Transport) forget(ctx context.Context, c *Credentials) {
	r, err := t.registration(ctx, c.Issuer)
	if r == nil || err != nil || r.ClientID != c.ClientID {
		return
	}
	if err := t.opts.Store.Delete(ctx, Key{Issuer: c.Issuer}); err != nil {
		t.opts.Logger.WarnContext(ctx, "oauthclient: the store did not delete a registration that its server refuses", "issuer", c.Issuer, "error", err.Error())
	}
}

// claimRedirect rejects a redirect URI that another issuer uses, if the responses of this issuer do
// not name it (RFC 9700, section 4.4.2.2). Otherwise an attacker's server could send the user to an
// honest server and receive the code.
func (t *Transport) claimRedirect(ctx context.Context, as *metadata.AuthorizationServer, redirect string) error {
	if as.ISSParameterSupported {
		return nil
	}
	if u, err := url.Parse(redirect); err == nil && u.Scheme == "http" && fetch.IsLoopback(u.Hostname()) {
		u.Host = strings.TrimSuffix(u.Host, ":"+u.Port()) // the port changes with each login
		redirect = u.String()
	}
	key := Key{Resource: redirect}
	r, err := t.load(ctx, key)
	switch {
	case err != nil:
		return err
	case r != nil && r.Client != nil && r.Client.Issuer != as.Issuer:
		return fmt.Errorf("the redirect URI %q is in use for the authorization server %q, and the responses of %q do not name it (RFC 9207); "+
			"use another redirect URI for it", redirect, r.Client.Issuer, as.Issuer)
	case r != nil:
		return nil
	}
	if err := t.opts.Store.Save(ctx, key, &Record{Client: &Credentials{Issuer: as.Issuer, RedirectURI: redirect}}); err != nil {
		t.opts.Logger.WarnContext(ctx, "oauthclient: the store did not save the issuer of a redirect URI", "issuer", as.Issuer, "error", err.Error())
	}
	return nil
}

// register registers the client at an authorization server (RFC 7591).
func (t *Transport) register(ctx context.Context, as *metadata.AuthorizationServer, name, redirect string) (*Credentials, error) {
	u, err := url.Parse(redirect)
	if err != nil {
		return nil, fmt.Errorf("the redirect URI %q is not a URL", redirect)
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
		errorResponse
	}
	status, err := t.post(ctx, as.RegistrationEndpoint, http.Header{"Content-Type": {"application/json"}}, body, &r)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the registration endpoint of %q: %w", as.Issuer, err)
	case status/100 != 2 || r.ClientID == "":
		return nil, fmt.Errorf("registration: %w", r.refusal(as, status))
	}
	c := &Credentials{
		Issuer: as.Issuer, ClientID: r.ClientID, ClientSecret: r.ClientSecret, AuthMethod: r.TokenEndpointAuthMethod, RedirectURI: redirect,
	}
	switch {
	case c.ClientSecret == "":
		c.AuthMethod = AuthNone
	case c.AuthMethod == "":
		c.AuthMethod = doc.TokenEndpointAuthMethod // the response names no other method
	}
	if r.ClientSecretExpiresAt > 0 {
		c.SecretExpires = time.Unix(r.ClientSecretExpiresAt, 0)
	}
	return c, nil
}
