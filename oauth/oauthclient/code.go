package oauthclient

import (
	"cmp"
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
	u, err := url.Parse(g.MetadataURL)
	if g.MetadataURL != "" && (err != nil || u.Scheme != "https" || strings.Trim(u.Path, "/") == "") {
		return fmt.Errorf("oauthclient: the MetadataURL %q must be https and have a path", g.MetadataURL)
	}
	return nil
}

func (g *AuthorizationCode) get(ctx context.Context, q *tokenRequest) (*issuedToken, error) {
	if !slices.Contains(q.as.CodeChallengeMethodsSupported, "S256") {
		return nil, fmt.Errorf("the authorization server %q does not say that it supports PKCE with S256; "+
			"MCP clients must refuse it", q.as.Issuer)
	}
	if q.as.AuthorizationEndpoint == "" {
		return nil, fmt.Errorf("the authorization server %q has no authorization endpoint", q.as.Issuer)
	}
	given, err := g.given(q.as)
	if err != nil {
		return nil, err
	}
	c := given
	if given == nil {
		if c, err = q.t.registration(ctx, q.as.Issuer); err != nil {
			return nil, err
		}
	}
	request := LoginRequest{Issuer: q.as.Issuer, Distinct: given == nil && !q.as.ISSParameterSupported}
	if c != nil {
		request.RedirectURI = c.RedirectURI
	}
	login, err := g.Browser(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("the redirect from the browser: %w", err)
	}
	if login.Close != nil {
		defer login.Close()
	}
	if err := q.t.claimRedirect(ctx, q.as, login.RedirectURI); err != nil {
		return nil, err
	}
	if given == nil && (c == nil || !c.serves(login.RedirectURI)) {
		if c, err = q.t.register(ctx, q.as, g.Name, login.RedirectURI); err != nil {
			return nil, err
		}
		_ = q.t.keep(ctx, Key{Issuer: c.Issuer}, &Record{Client: c}) // else the next login registers again
	}
	if len(q.scopes) > 0 && slices.Contains(q.as.ScopesSupported, "offline_access") {
		q.scopes = union(q.scopes, []string{"offline_access"})
	}
	verifier := oauth2.GenerateVerifier()
	code, err := q.visit(ctx, c, login, verifier)
	if err != nil {
		return nil, err
	}
	form := q.form("authorization_code", nil)
	form.Set("code", code)
	form.Set("redirect_uri", login.RedirectURI)
	form.Set("code_verifier", verifier)
	return q.send(ctx, c, form)
}

// visit sends the user to the authorization endpoint and returns the authorization code.
func (q *tokenRequest) visit(ctx context.Context, c *Credentials, login *Login, verifier string) (string, error) {
	state := rand.Text()
	params := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("resource", q.resource)}
	if slices.Contains(q.scopes, "offline_access") {
		// Otherwise servers must ignore that scope (OpenID Connect Core 1.0, section 11).
		params = append(params, oauth2.SetAuthURLParam("prompt", "consent"))
	}
	if thumbprint := q.t.thumbprint(); thumbprint != "" {
		params = append(params, oauth2.SetAuthURLParam("dpop_jkt", thumbprint))
	}
	page := oauth2.Config{
		ClientID: c.ClientID, RedirectURL: login.RedirectURI, Scopes: q.scopes,
		Endpoint: oauth2.Endpoint{AuthURL: q.as.AuthorizationEndpoint},
	}
	back, err := login.Visit(ctx, page.AuthCodeURL(state, params...))
	if err != nil {
		return "", fmt.Errorf("the login at %q: %w", q.as.Issuer, err)
	}
	return takeCode(back, q.as, state)
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
	if r != nil && err == nil && r.ClientID == c.ClientID {
		_ = t.keep(ctx, Key{Issuer: c.Issuer}, nil)
	}
}

// claimRedirect rejects a redirect URI that another issuer uses, if the responses of this issuer do
// not name it (RFC 9700, section 4.4.2.2). Otherwise an attacker's server could send the user to an
// honest server and receive the code.
func (t *Transport) claimRedirect(ctx context.Context, as *metadata.AuthorizationServer, redirect string) error {
	if as.ISSParameterSupported {
		return nil
	}
	redirect = metadata.WithoutPort(redirect) // which changes with each login
	key := Key{Resource: redirect}
	r, err := t.load(ctx, key)
	switch {
	case err != nil:
		return err
	case r != nil && r.Client != nil && r.Client.Issuer != as.Issuer:
		return fmt.Errorf("the redirect URI %q is in use for the authorization server %q, and the responses of %q "+
			"do not name it (RFC 9207); use another redirect URI for it", redirect, r.Client.Issuer, as.Issuer)
	case r == nil:
		_ = t.keep(ctx, key, &Record{Client: &Credentials{Issuer: as.Issuer, RedirectURI: redirect}})
	}
	return nil
}

// register registers the client at an authorization server (RFC 7591).
func (t *Transport) register(
	ctx context.Context, as *metadata.AuthorizationServer, name, redirect string,
) (*Credentials, error) {
	u, err := url.Parse(redirect)
	if err != nil {
		return nil, fmt.Errorf("the redirect URI %q is not a URL", redirect)
	}
	doc := metadata.Client{
		ClientName: name, RedirectURIs: []string{redirect}, ResponseTypes: []string{"code"},
		GrantTypes: []string{"authorization_code", "refresh_token"}, ApplicationType: "web",
	}
	if u.Scheme != "https" || metadata.IsLoopback(u.Hostname()) {
		doc.ApplicationType = "native"
	}
	for _, m := range []string{AuthPost, AuthBasic, AuthNone} { // the last one is the best
		if slices.Contains(as.TokenEndpointAuthMethodsSupported, m) {
			doc.TokenEndpointAuthMethod = m
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
		Issuer: as.Issuer, ClientID: r.ClientID, ClientSecret: r.ClientSecret, RedirectURI: redirect,
		AuthMethod: cmp.Or(r.TokenEndpointAuthMethod, doc.TokenEndpointAuthMethod),
	}
	if c.ClientSecret == "" {
		c.AuthMethod = AuthNone
	}
	if r.ClientSecretExpiresAt > 0 {
		c.SecretExpires = time.Unix(r.ClientSecretExpiresAt, 0)
	}
	return c, nil
}
