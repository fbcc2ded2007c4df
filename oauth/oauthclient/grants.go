package oauthclient

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
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

// A Grant is a way to get a token: [*AuthorizationCode], [*ClientCredentials], [*EnterpriseManaged]
// or [*WorkloadIdentity].
type Grant interface {
	// issuers returns the authorization servers that the client has credentials for, and whether
	// the client can identify itself to others.
	issuers() (known []string, others bool)
	// check returns an error if the grant is incomplete.
	check() error
	// get requests a token.
	get(ctx context.Context, q *tokenRequest) (*issuedToken, error)
}

// A tokenRequest asks the discovered authorization server for a token with scopes.
type tokenRequest struct {
	t *Transport
	*discovery
	scopes []string
}

// ClientCredentials is the grant of a program that acts for itself, without a user (extension
// io.modelcontextprotocol/oauth-client-credentials). It authenticates with a key or a secret. The
// credentials need an Issuer.
type ClientCredentials struct{ Credentials Credentials }

func (g *ClientCredentials) issuers() ([]string, bool) { return []string{g.Credentials.Issuer}, false }

func (g *ClientCredentials) check() error {
	if g.Credentials.Issuer == "" {
		return errors.New("oauthclient: ClientCredentials needs Credentials.Issuer" + issuerHint)
	}
	if g.Credentials.ClientID == "" || g.Credentials.ClientSecret == "" && g.Credentials.Key == nil {
		return errors.New("oauthclient: ClientCredentials needs a ClientID, and a Key or a ClientSecret")
	}
	return nil
}

func (g *ClientCredentials) get(ctx context.Context, q *tokenRequest) (*issuedToken, error) {
	return q.send(ctx, &g.Credentials, q.form("client_credentials", q.scopes))
}

// sendAssertion requests a token with an assertion.
func (q *tokenRequest) sendAssertion(ctx context.Context, c *Credentials, assertion string) (*issuedToken, error) {
	form := q.form(grantJWT, q.scopes)
	form.Set("assertion", assertion)
	return q.send(ctx, c, form)
}

// issuerHint explains why grants with a secret need an issuer.
const issuerHint = "; without it, any MCP server could name an authorization server of its own and be sent the secret"

// WorkloadIdentity is the grant of a workload whose platform vouches for it with a JWT (RFC 7523,
// section 2.1; SEP-1933). A rejected request is not retried.
type WorkloadIdentity struct {
	// Issuer is the authorization server that knows the workload. Required: assertions are sent to
	// no other server.
	Issuer string
	// ClientID names the client, if the authorization server needs it. It may be empty.
	ClientID string
	// Assertion returns the platform's JWT for an audience.
	Assertion func(ctx context.Context, a Audience) (string, error)
}

// An Audience names the recipient of an assertion. Platforms and drafts differ in which of the two
// fields they use.
type Audience struct{ Issuer, TokenEndpoint string }

func (g *WorkloadIdentity) issuers() ([]string, bool) { return []string{g.Issuer}, false }

func (g *WorkloadIdentity) check() error {
	if g.Assertion == nil {
		return errors.New("oauthclient: WorkloadIdentity needs an Assertion")
	}
	if g.Issuer == "" {
		return errors.New("oauthclient: WorkloadIdentity needs an Issuer" + issuerHint)
	}
	return nil
}

func (g *WorkloadIdentity) get(ctx context.Context, q *tokenRequest) (*issuedToken, error) {
	assertion, err := g.Assertion(ctx, Audience{q.as.Issuer, q.as.TokenEndpoint})
	if err != nil {
		return nil, fmt.Errorf("the workload's assertion: %w", err)
	}
	return q.sendAssertion(ctx, &Credentials{Issuer: q.as.Issuer, ClientID: g.ClientID, AuthMethod: AuthNone}, assertion)
}

// EnterpriseManaged is the grant of a user who is already logged in at an enterprise's identity
// provider (extension io.modelcontextprotocol/enterprise-managed-authorization). The provider
// exchanges the user's token for an assertion (RFC 8693, ID-JAG). The authorization server
// exchanges the assertion for an access token (RFC 7523).
type EnterpriseManaged struct {
	// Credentials identify the client at the authorization server. Their Issuer is required.
	Credentials Credentials
	// Provider holds the client's credentials at the identity provider. ProviderTokenEndpoint is
	// the provider's token endpoint.
	Provider              Credentials
	ProviderTokenEndpoint string
	// Subject returns a token that proves the user's login, and its type, for example
	// [TokenTypeID].
	Subject func(ctx context.Context) (token, tokenType string, err error)
}

func (g *EnterpriseManaged) issuers() ([]string, bool) { return []string{g.Credentials.Issuer}, false }

func (g *EnterpriseManaged) check() error {
	if g.Credentials.ClientID == "" || g.Provider.ClientID == "" || g.ProviderTokenEndpoint == "" || g.Subject == nil {
		return errors.New("oauthclient: EnterpriseManaged needs a ClientID at both servers, " +
			"a ProviderTokenEndpoint and a Subject")
	}
	if g.Credentials.Issuer == "" {
		return errors.New("oauthclient: EnterpriseManaged needs Credentials.Issuer" + issuerHint)
	}
	return nil
}

func (g *EnterpriseManaged) get(ctx context.Context, q *tokenRequest) (*issuedToken, error) {
	if can := q.as.AuthorizationGrantProfilesSupported; len(can) > 0 && !slices.Contains(can, profileIDJAG) {
		return nil, fmt.Errorf("the authorization server %q does not accept assertions of identity providers; it accepts %q",
			q.as.Issuer, can)
	}
	subject, kind, err := g.Subject(ctx)
	if err != nil {
		return nil, fmt.Errorf("the user's login: %w", err)
	}
	form := q.form(grantExchange, q.scopes)
	form.Set("requested_token_type", typeIDJAG)
	form.Set("audience", q.as.Issuer)
	form.Set("subject_token", subject)
	form.Set("subject_token_type", kind)
	idp := &metadata.AuthorizationServer{Issuer: g.Provider.Issuer, TokenEndpoint: g.ProviderTokenEndpoint}
	r, err := q.t.ask(ctx, idp, &g.Provider, form)
	if err != nil {
		return nil, fmt.Errorf("the identity provider: %w", err)
	}
	if r.AccessToken == "" || r.IssuedTokenType != typeIDJAG {
		return nil, fmt.Errorf("the identity provider %q returned a token of type %.100q instead of %s",
			g.Provider.Issuer, r.IssuedTokenType, typeIDJAG)
	}
	return q.sendAssertion(ctx, &g.Credentials, r.AccessToken)
}
