package oauthclient

import (
	"crypto"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcpkit/mcpkit-go/oauth/internal/keys"
	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
)

// How a client authenticates at a token endpoint (RFC 7591, section 2; OpenID Connect Core 1.0,
// section 9).
const (
	AuthNone          = "none"
	AuthBasic         = "client_secret_basic"
	AuthPost          = "client_secret_post"
	AuthPrivateKeyJWT = "private_key_jwt"
)

const assertionLife = time.Minute

// Credentials identify a client at an authorization server. They print without their secrets.
type Credentials struct {
	// Issuer is the authorization server that the credentials belong to. They are sent to no other
	// server. Issuers are compared byte by byte.
	Issuer string `json:"issuer,omitempty"`
	// ClientID names the client.
	ClientID string `json:"client_id"`
	// ClientSecret is the client's secret. Empty for a public client and for a client with a key.
	ClientSecret string `json:"client_secret,omitempty"`
	// SecretExpires is when the secret expires. Zero means never.
	SecretExpires time.Time `json:"secret_expires,omitzero"`
	// AuthMethod is one of [AuthNone], [AuthBasic], [AuthPost] and [AuthPrivateKeyJWT]. Empty means
	// that the metadata of the authorization server decides.
	AuthMethod string `json:"auth_method,omitempty"`
	// RedirectURI is the redirect URI that the client is registered with. Empty means that the
	// [Browser] decides.
	RedirectURI string `json:"redirect_uri,omitempty"`
	// Key signs assertions for [AuthPrivateKeyJWT]: *ecdsa.PrivateKey, ed25519.PrivateKey or
	// *rsa.PrivateKey.
	Key crypto.Signer `json:"-"`
	// KeyID names the key in assertions. Empty if the key has no name.
	KeyID string `json:"-"`
}

// String returns the client ID and the issuer, without secrets.
func (c Credentials) String() string { return fmt.Sprintf("client %q of %q", c.ClientID, c.Issuer) }

// GoString returns the same as String.
func (c Credentials) GoString() string { return c.String() }

// LogValue returns the same as String.
func (c Credentials) LogValue() slog.Value { return slog.StringValue(c.String()) }

// method returns the authentication method to use at a server.
func (c *Credentials) method(as *metadata.AuthorizationServer) (string, error) {
	can := as.TokenEndpointAuthMethodsSupported
	if c.AuthMethod != "" {
		return c.AuthMethod, nil // a registration takes precedence over the metadata
	}
	var candidates []string
	switch {
	case c.Key != nil:
		candidates = []string{AuthPrivateKeyJWT}
	case c.ClientSecret != "":
		candidates = []string{AuthBasic, AuthPost}
	default:
		return AuthNone, nil // the client has no secret and no key
	}
	for _, m := range candidates {
		// RFC 8414, section 2: without a list, the server supports client_secret_basic. A client
		// with a key has registered the key there.
		if len(can) == 0 || slices.Contains(can, m) {
			return m, nil
		}
	}
	return "", fmt.Errorf("the authorization server %q supports none of %q; it supports %q", as.Issuer, candidates, can)
}

// authenticate adds the credentials to a token request.
func (c *Credentials) authenticate(header http.Header, form url.Values, as *metadata.AuthorizationServer) error {
	method, err := c.method(as)
	if err != nil {
		return err
	}
	switch method {
	case AuthNone:
		if c.ClientID != "" {
			form.Set("client_id", c.ClientID)
		}
	case AuthBasic:
		// RFC 6749, section 2.3.1: both are form-encoded first.
		r := http.Request{Header: header}
		r.SetBasicAuth(url.QueryEscape(c.ClientID), url.QueryEscape(c.ClientSecret))
	case AuthPost:
		form.Set("client_id", c.ClientID)
		form.Set("client_secret", c.ClientSecret)
	case AuthPrivateKeyJWT:
		assertion, err := c.assertion(as)
		if err != nil {
			return err
		}
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		form.Set("client_assertion", assertion)
	default:
		return fmt.Errorf("unknown client authentication method %q; use one of %q", method,
			[]string{AuthNone, AuthBasic, AuthPost, AuthPrivateKeyJWT})
	}
	return nil
}

// assertion signs an assertion for a single request (RFC 7523, section 3). Its audience is the
// issuer, because another server may claim to have the same endpoint.
func (c *Credentials) assertion(as *metadata.AuthorizationServer) (string, error) {
	alg, err := c.algorithm(as.TokenEndpointAuthSigningAlgValuesSupported)
	if err != nil {
		return "", err
	}
	now := time.Now()
	key := jose.JSONWebKey{Key: c.Key, KeyID: c.KeyID}
	signed, err := keys.Sign(key, alg, (&jose.SignerOptions{}).WithType("JWT"), map[string]any{
		"iss": c.ClientID, "sub": c.ClientID, "aud": as.Issuer, "jti": rand.Text(),
		"iat": now.Unix(), "exp": now.Add(assertionLife).Unix(),
	})
	if err != nil {
		return "", fmt.Errorf("the client's key: %w", err)
	}
	return signed, nil
}

// algorithm picks a signature algorithm that fits the key and that the server supports.
func (c *Credentials) algorithm(can []string) (jose.SignatureAlgorithm, error) {
	var algs []jose.SignatureAlgorithm
	if c.Key != nil {
		algs = keys.Algorithms(c.Key.Public())
	}
	if algs == nil {
		return "", fmt.Errorf("the client's key must be %s, not a %T", keys.Supported, c.Key)
	}
	for _, alg := range algs {
		if len(can) == 0 || slices.Contains(can, string(alg)) {
			return alg, nil
		}
	}
	return "", fmt.Errorf("the client's key signs with %q; the authorization server supports %q", algs, can)
}
