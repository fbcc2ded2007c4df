package oauthclient

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mcpkit/mcpkit-go/oauth/metadata"
)

// Names of the parameters of requests.
const (
	grantJWT      = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	grantExchange = "urn:ietf:params:oauth:grant-type:token-exchange"
	typeIDJAG     = "urn:ietf:params:oauth:token-type:id-jag"
	profileIDJAG  = "urn:ietf:params:oauth:grant-profile:id-jag"

	// TokenTypeID is the type of the identity tokens of OpenID Connect.
	TokenTypeID = "urn:ietf:params:oauth:token-type:id_token"
	// TokenTypeSAML2 is the type of SAML 2.0 assertions.
	TokenTypeSAML2 = "urn:ietf:params:oauth:token-type:saml2"
	// TokenTypeRefresh is the type of refresh tokens.
	TokenTypeRefresh = "urn:ietf:params:oauth:token-type:refresh_token"
)

// A Grant is a way to get a token: [*AuthorizationCode], [*ClientCredentials], [*EnterpriseManaged] or
// [*WorkloadIdentity].
type Grant interface {
	// issuers are the authorization servers that know the client already.
	issuers() []string
	// introduces reports whether the client can make itself known to others.
	introduces() bool
	check() error
	// get asks for a token at a place, and says who asked.
	get(ctx context.Context, t *Transport, p *place, scopes []string) (*Token, *Credentials, error)
}

// ClientCredentials is the grant of a program that acts for itself (extension io.modelcontextprotocol/oauth-client-credentials):
// it authenticates by a key or a secret, and nobody logs in. The credentials need an Issuer.
type ClientCredentials struct{ Credentials Credentials }

func (g *ClientCredentials) issuers() []string { return issuersOf(g.Credentials) }
func (g *ClientCredentials) introduces() bool  { return false }

func (g *ClientCredentials) check() error {
	if g.Credentials.Issuer == "" {
		return errors.New("oauthclient: ClientCredentials needs Credentials.Issuer" + issuerHint)
	}
	if g.Credentials.ClientID == "" || g.Credentials.ClientSecret == "" && g.Credentials.Key == nil {
		return errors.New("oauthclient: ClientCredentials need a ClientID, and a Key or a ClientSecret")
	}
	return nil
}

func (g *ClientCredentials) get(ctx context.Context, t *Transport, p *place, scopes []string) (*Token, *Credentials, error) {
	return t.askFor(ctx, p, &g.Credentials, "client_credentials", "", scopes)
}

// askFor asks for a token by a grant with an assertion, "" for none.
func (t *Transport) askFor(ctx context.Context, p *place, c *Credentials, grant, assertion string, scopes []string) (*Token, *Credentials, error) {
	form := tokenForm(grant, p, scopes)
	if assertion != "" {
		form.Set("assertion", assertion)
	}
	r, err := t.ask(ctx, p.as, c, form)
	if err != nil {
		return nil, nil, err
	}
	tok, err := t.tokenOf(r, p, scopes)
	return tok, c, err
}

// issuerHint says why grants that hold a secret need an issuer.
const issuerHint = "; without it, any MCP server could name an authorization server of its own and be sent the secret"

func issuersOf(list ...Credentials) []string {
	var issuers []string
	for _, c := range list {
		if c.Issuer != "" {
			issuers = append(issuers, c.Issuer)
		}
	}
	return issuers
}

// WorkloadIdentity is the grant of a workload that its platform vouches for by a JWT (RFC 7523, section 2.1; SEP-1933).
// It is asked for once: what was refused is not asked again, nor in another way.
type WorkloadIdentity struct {
	// Issuer is the authorization server that the workload is known to. It is needed: assertions go to no other.
	Issuer string
	// ClientID names the client where the authorization server wants that; it may be empty.
	ClientID string
	// Assertion returns the platform's JWT for an audience.
	Assertion func(ctx context.Context, a Audience) (string, error)
}

// An Audience is whom an assertion is for. Platforms and drafts differ in which of them it names.
type Audience struct{ Issuer, TokenEndpoint string }

func (g *WorkloadIdentity) issuers() []string { return issuersOf(Credentials{Issuer: g.Issuer}) }
func (g *WorkloadIdentity) introduces() bool  { return false }

func (g *WorkloadIdentity) check() error {
	if g.Assertion == nil {
		return errors.New("oauthclient: WorkloadIdentity needs an Assertion")
	}
	if g.Issuer == "" {
		return errors.New("oauthclient: WorkloadIdentity needs an Issuer" + issuerHint)
	}
	return nil
}

func (g *WorkloadIdentity) get(ctx context.Context, t *Transport, p *place, scopes []string) (*Token, *Credentials, error) {
	assertion, err := g.Assertion(ctx, Audience{p.as.Issuer, p.as.TokenEndpoint})
	if err != nil {
		return nil, nil, fmt.Errorf("the workload's assertion: %w", err)
	}
	return t.askFor(ctx, p, &Credentials{Issuer: p.as.Issuer, ClientID: g.ClientID, AuthMethod: AuthNone}, grantJWT, assertion, scopes)
}

// EnterpriseManaged is the grant of a user whom an enterprise's identity provider has logged in already (extension
// io.modelcontextprotocol/enterprise-managed-authorization): the provider exchanges what proves that for an assertion
// for the authorization server (RFC 8693, ID-JAG), which gives the token for it (RFC 7523).
type EnterpriseManaged struct {
	// Credentials are those of the client at the authorization server. Their Issuer is needed.
	Credentials Credentials
	// Provider are those of the client at the identity provider, and ProviderTokenEndpoint is where that exchanges tokens.
	Provider              Credentials
	ProviderTokenEndpoint string
	// Subject returns what proves the user's login, and its type, for example [TokenTypeID].
	Subject func(ctx context.Context) (token, tokenType string, err error)
}

func (g *EnterpriseManaged) issuers() []string { return issuersOf(g.Credentials) }
func (g *EnterpriseManaged) introduces() bool  { return false }

func (g *EnterpriseManaged) check() error {
	if g.Credentials.ClientID == "" || g.Provider.ClientID == "" || g.ProviderTokenEndpoint == "" || g.Subject == nil {
		return errors.New("oauthclient: EnterpriseManaged needs a ClientID at both servers, a ProviderTokenEndpoint and a Subject")
	}
	if g.Credentials.Issuer == "" {
		return errors.New("oauthclient: EnterpriseManaged needs Credentials.Issuer" + issuerHint)
	}
	return nil
}

func (g *EnterpriseManaged) get(ctx context.Context, t *Transport, p *place, scopes []string) (*Token, *Credentials, error) {
	if profiles := p.as.AuthorizationGrantProfilesSupported; len(profiles) > 0 && !slices.Contains(profiles, profileIDJAG) {
		return nil, nil, fmt.Errorf("the authorization server %q takes no assertions of identity providers; it takes %q", p.as.Issuer, profiles)
	}
	subject, kind, err := g.Subject(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("the user's login: %w", err)
	}
	form := tokenForm(grantExchange, p, scopes)
	form.Set("requested_token_type", typeIDJAG)
	form.Set("audience", p.as.Issuer)
	form.Set("subject_token", subject)
	form.Set("subject_token_type", kind)
	idp := &metadata.AuthorizationServer{Issuer: g.Provider.Issuer, TokenEndpoint: g.ProviderTokenEndpoint}
	r, err := t.ask(ctx, idp, &g.Provider, form)
	if err != nil {
		return nil, nil, fmt.Errorf("the identity provider: %w", err)
	}
	if r.AccessToken == "" || r.IssuedTokenType != typeIDJAG {
		return nil, nil, fmt.Errorf("the identity provider %q gave a token of type %.100q instead of %s", g.Provider.Issuer, r.IssuedTokenType, typeIDJAG)
	}
	return t.askFor(ctx, p, &g.Credentials, grantJWT, r.AccessToken, scopes)
}
