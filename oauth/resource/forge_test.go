package resource_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
)

const (
	endpoint = "https://mcp.example.com/api/mcp"
	issuer   = "https://login.example.com"
)

type claims = map[string]any

// forge has the keys of an issuer and of an attacker.
type forge struct {
	t          testing.TB
	rsa, other *rsa.PrivateKey
	ec         *ecdsa.PrivateKey
	jwks       []byte
	used       []string // every token and proof of the test
}

func newForge(t testing.TB) *forge {
	t.Helper()
	f := &forge{t: t, rsa: resource.RSAKeys()[0], other: resource.RSAKeys()[1]}
	var err error
	f.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	f.jwks, err = jsonx.Marshal(map[string]any{"keys": []any{
		claims{"kty": "nonsense"},
		jose.JSONWebKey{Key: f.rsa.Public(), KeyID: "r", Algorithm: "RS256", Use: "sig"},
		jose.JSONWebKey{Key: f.ec.Public(), KeyID: "e"},
		jose.JSONWebKey{Key: f.other.Public(), KeyID: "enc", Use: "enc"},
		jose.JSONWebKey{Key: []byte("0123456789abcdef0123456789abcdef"), KeyID: "sym"},
	}})
	require.NoError(t, err)
	return f
}

// sign returns a JWT of the type at+jwt, unless header has another type.
func (f *forge) sign(alg jose.SignatureAlgorithm, key any, header claims, payload string) string {
	text := resource.Sign(f.t, alg, key, header, payload)
	f.used = append(f.used, text)
	return text
}

// payload returns the claims of a valid token with changes. A nil value removes a claim.
func payload(change claims) string {
	all := claims{"iss": issuer, "aud": endpoint, "sub": "ann", "client_id": "app", "scope": "notes:read", "exp": time.Now().Add(time.Hour).Unix()}
	text, _ := jsonx.Marshal(resource.With(all, change))
	return string(text)
}

func (f *forge) token(change claims) string {
	return f.sign(jose.RS256, f.rsa, claims{"kid": "r", "typ": "at+jwt"}, payload(change))
}

func (f *forge) headed(alg jose.SignatureAlgorithm, key any, header claims) string {
	return f.sign(alg, key, header, payload(nil))
}

func (f *forge) publicPEM() []byte {
	der, err := x509.MarshalPKIXPublicKey(f.rsa.Public())
	require.NoError(f.t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// symmetricProof returns a proof with a public symmetric key.
func (f *forge) symmetricProof() string {
	header := claims{"typ": "dpop+jwt", "jwk": jose.JSONWebKey{Key: f.ec.Public()}}
	return f.sign(jose.HS256, []byte("0123456789abcdef0123456789abcdef"), header, `{}`)
}

// headOf returns the first part of a token.
func headOf(header string) string { return base64.RawURLEncoding.EncodeToString([]byte(header)) }

func unsigned(text string) string {
	enc := base64.RawURLEncoding.EncodeToString
	return enc([]byte(`{"alg":"none","typ":"at+jwt"}`)) + "." + enc([]byte(text)) + "."
}

func ath(token string) string {
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func ask(fields ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/api/mcp", nil)
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	return r
}

func bearer(token string) *http.Request { return ask("Authorization", "Bearer "+token) }

// form returns a request with a form.
func form(body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/api/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

func withQuery(r *http.Request, query string) *http.Request {
	r.URL.RawQuery = query
	return r
}

// verifierFunc is a function as a verifier.
type verifierFunc func(string) (*oauth.Principal, error)

func (f verifierFunc) Verify(_ context.Context, token string) (*oauth.Principal, error) {
	return f(token)
}
