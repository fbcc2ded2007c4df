package config_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/config"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
)

// rsaKeys are generated once, since this takes long. It panics since no test is there that could fail.
var rsaKeys = sync.OnceValue(func() (keys [2]*rsa.PrivateKey) {
	for i := range keys {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		keys[i] = key
	}
	return keys
})

// A product is an authorization server as its vendor documents it. It runs on this machine: its
// metadata, keys and tokens have the documented shape, with the address of the test in them.
type product struct {
	server *httptest.Server
	issuer string
	key    *rsa.PrivateKey
}

// newProduct serves the metadata at the paths that the product has, and nothing else.
func newProduct(t *testing.T, path, keysPath string, metadata map[string]any, key map[string]any, more ...any) *product {
	t.Helper()
	private := rsaKeys()[0]
	mux := http.NewServeMux()
	p := &product{server: httptest.NewServer(mux), key: private}
	t.Cleanup(p.server.Close)
	p.issuer = p.server.URL + path
	raw, err := json.Marshal(jose.JSONWebKey{Key: private.Public(), KeyID: "k1", Use: "sig"})
	require.NoError(t, err)
	published := map[string]any{}
	require.NoError(t, json.Unmarshal(raw, &published))
	maps.Copy(published, key)
	reply := func(path string, body any) {
		text, err := json.Marshal(body)
		require.NoError(t, err)
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(text)
		})
	}
	document := map[string]any{"issuer": p.issuer, "jwks_uri": p.server.URL + keysPath}
	maps.Copy(document, metadata)
	reply(strings.TrimSuffix(path, "/")+"/.well-known/openid-configuration", document)
	reply(keysPath, map[string]any{"keys": append(more, published)})
	return p
}

// token signs a token of a type. Claims that are nil are left out.
func (p *product) token(t *testing.T, typ string, claims, changes map[string]any) string {
	t.Helper()
	all := map[string]any{"iss": p.issuer, "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(all, claims)
	maps.Copy(all, changes)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: p.key, KeyID: "k1"}},
		(&jose.SignerOptions{}).WithType(jose.ContentType(typ)))
	require.NoError(t, err)
	payload, err := json.Marshal(all)
	require.NoError(t, err)
	signed, err := signer.Sign(payload)
	require.NoError(t, err)
	text, err := signed.CompactSerialize()
	require.NoError(t, err)
	return text
}

// A diary says who writes.
type diary struct {
	_ struct {
		Write mcpkit.Tool `scopes:"notes:read"`
		Read  mcpkit.Tool `scopes:"notes.read"` // Entra ID allows no colon in the names of scopes that clients ask for by a URI
	}
}

func (*diary) Write(ctx context.Context) *oauth.Principal { return oauth.FromContext(ctx) }
func (*diary) Read(ctx context.Context) *oauth.Principal  { return oauth.FromContext(ctx) }

// serveFor serves with a file of docs/howto/protect-a-server.md. Only the addresses of the issuer
// and of the server are those of the test.
func serveFor(t *testing.T, file string, p *product, changes ...string) (url string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "auth", file))
	require.NoError(t, err)
	text := string(raw)
	found := regexp.MustCompile(`(?m)^  issuer: (https://[^/\s]+)(\S*)`).FindStringSubmatch(text)
	require.Len(t, found, 3, file)
	require.Equal(t, strings.TrimPrefix(p.issuer, p.server.URL), found[2], "the path of the issuer is the one of the page")
	text = strings.Replace(text, found[1], p.server.URL, 1)
	text = strings.Replace(text, "127.0.0.1:8080", "127.0.0.1:0", 1) + "  insecureLoopback: true\n" + strings.Join(changes, "")
	base, stop := serveService(t, parsed(t, text), &diary{})
	t.Cleanup(stop)
	return base + "/mcp"
}

// whoami calls a tool with a token, and returns the principal that the server knows.
func whoami(t *testing.T, url, tool, token string) (*oauth.Principal, error) {
	t.Helper()
	c, err := client.Dial(t.Context(), url, client.Header("Authorization", "Bearer "+token))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return client.Call[*oauth.Principal](t.Context(), c, tool, nil)
}

const resource = "https://notes.example.com/mcp"

// The settings that docs/howto/protect-a-server.md shows are valid as they are.
func TestSettingsForAuthorizationServersAreValid(t *testing.T) {
	files, err := filepath.Glob("testdata/auth/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 4)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			c, err := config.Load(file)
			require.NoError(t, err)
			transports, err := c.Transports()
			require.NoError(t, err)
			require.Len(t, transports, 1)
		})
	}
}

// The metadata, the keys and the claims are those of
// https://www.keycloak.org/securing-apps/oidc-layers and
// https://www.keycloak.org/securing-apps/mcp-authz-server, which says that Keycloak takes the audience
// from mappers and not from the parameter resource.
func TestKeycloakTokens(t *testing.T) {
	const realm = "/realms/acme"
	p := newProduct(t, realm, realm+"/protocol/openid-connect/certs", map[string]any{
		"grant_types_supported": []string{"authorization_code", "refresh_token", "client_credentials"},
	}, map[string]any{"alg": "RS256"}, encryptionKey())
	claims := map[string]any{
		"jti": "onrtac:0c1f2e9a", "sub": "f2a1c7e0-43a5-4ea1-9d7b-4f4ef5ea3d1c", "aud": []string{resource, "account"}, "typ": "Bearer", "azp": "notes-cli",
		"sid": "b1a6", "acr": "1", "scope": "openid profile notes:read", "preferred_username": "ann",
		"realm_access":    map[string]any{"roles": []string{"default-roles-acme", "editor"}},
		"resource_access": map[string]any{"account": map[string]any{"roles": []string{"view-profile"}}},
	}
	url := serveFor(t, "keycloak.yaml", p)
	who, err := whoami(t, url, "write", p.token(t, "at+jwt", claims, nil))
	require.NoError(t, err)
	require.Equal(t, claims["sub"], who.Subject)
	require.Equal(t, p.issuer, who.Issuer)
	require.Equal(t, "notes-cli", who.ClientID)
	require.Equal(t, []string{"openid", "profile", "notes:read"}, who.Scopes, "roles are not scopes")
	require.Equal(t, map[string]any{"roles": []any{"default-roles-acme", "editor"}}, who.Claims["realm_access"])

	for reason, token := range map[string]string{
		"no audience mapper":                 p.token(t, "at+jwt", claims, map[string]any{"aud": "account"}),
		"no role and no mapper, so no aud":   p.token(t, "at+jwt", claims, map[string]any{"aud": nil}),
		"the client lacks the at+jwt switch": p.token(t, "JWT", claims, nil),
		"another realm":                      p.token(t, "at+jwt", claims, map[string]any{"iss": p.server.URL + "/realms/other"}),
	} {
		_, err := whoami(t, url, "write", token)
		require.ErrorContains(t, err, "401", reason)
	}
	_, err = whoami(t, url, "write", p.token(t, "at+jwt", claims, map[string]any{"scope": "openid profile"}))
	require.ErrorContains(t, err, "403", "the optional scope was not asked for")

	untyped := serveFor(t, "keycloak.yaml", p, "  allowUntyped: true\n")
	_, err = whoami(t, untyped, "write", p.token(t, "JWT", claims, nil))
	require.NoError(t, err)
}

// encryptionKey returns the key for encryption that Keycloak publishes beside those for signatures.
func encryptionKey() any {
	return jose.JSONWebKey{Key: rsaKeys()[1].Public(), KeyID: "e1", Use: "enc", Algorithm: "RSA-OAEP"}
}

// The profiles are those of
// https://auth0.com/docs/secure/tokens/access-tokens/access-token-profiles, and the claim permissions
// that of https://auth0.com/docs/get-started/apis/enable-role-based-access-control-for-apis.
func TestAuth0Tokens(t *testing.T) {
	p := newProduct(t, "/", "/.well-known/jwks.json", nil, map[string]any{"alg": "RS256"})
	claims := map[string]any{
		"sub": "auth0|123456", "aud": []string{resource, p.issuer + "userinfo"}, "client_id": "my_client_id", "jti": "73WakrfVbNJBaAmhQtEeDv",
		"scope": "openid profile notes:read", "permissions": []string{"notes:read", "notes:write"},
	}
	url := serveFor(t, "auth0.yaml", p)
	who, err := whoami(t, url, "write", p.token(t, "at+jwt", claims, nil))
	require.NoError(t, err)
	require.Equal(t, "auth0|123456", who.Subject)
	require.Equal(t, "my_client_id", who.ClientID)
	require.Equal(t, []string{"openid", "profile", "notes:read"}, who.Scopes, "permissions that the client did not ask for are not scopes")
	require.Equal(t, []any{"notes:read", "notes:write"}, who.Claims["permissions"])

	standard := map[string]any{"azp": "my_client_id", "client_id": nil, "jti": nil, "gty": "authorization_code"}
	for reason, token := range map[string]string{
		"the standard profile":                     p.token(t, "JWT", claims, standard),
		"the issuer without its slash":             p.token(t, "at+jwt", claims, map[string]any{"iss": strings.TrimSuffix(p.issuer, "/")}),
		"without the profile for resource, no API": p.token(t, "at+jwt", claims, map[string]any{"aud": p.issuer + "userinfo"}),
		"an opaque token, which such logins get":   "q5XfBfSxKpXhPOh0zCXFzZXqYAjJCYGC",
	} {
		_, err := whoami(t, url, "write", token)
		require.ErrorContains(t, err, "401", reason)
	}

	untyped := serveFor(t, "auth0.yaml", p, "  allowUntyped: true\n")
	who, err = whoami(t, untyped, "write", p.token(t, "JWT", claims, standard))
	require.NoError(t, err)
	require.Equal(t, "my_client_id", who.ClientID)
}

// The claims are those of
// https://learn.microsoft.com/entra/identity-platform/access-token-claims-reference: typ is always JWT,
// keys have no alg, and version 2.0 has the tenant in iss, the application ID in aud, and scopes in scp,
// or roles if no user takes part.
func TestEntraTokens(t *testing.T) {
	const tenant, application = "11111111-2222-3333-4444-555555555555", "66666666-7777-8888-9999-000000000000"
	p := newProduct(t, "/"+tenant+"/v2.0", "/"+tenant+"/discovery/v2.0/keys", nil, nil)
	claims := map[string]any{
		"aud": application, "sub": "AAAAAAAAAAAAAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ", "oid": "690222be-ff1a-4d56-abd1-7e4f7d38e474", "tid": tenant,
		"azp": "aaaaaaaa-0000-1111-2222-bbbbbbbbbbbb", "azpacr": "0", "scp": "notes.read notes.write", "ver": "2.0", "name": "Ann", "uti": "x", "rh": "0.x",
	}
	url := serveFor(t, "entra.yaml", p)
	who, err := whoami(t, url, "read", p.token(t, "JWT", claims, nil))
	require.NoError(t, err)
	require.Equal(t, claims["sub"], who.Subject)
	require.Equal(t, claims["azp"], who.ClientID)
	require.Equal(t, []string{"notes.read", "notes.write"}, who.Scopes)
	require.Equal(t, tenant, who.Claims["tid"])

	for reason, token := range map[string]string{
		"version 1.0, of another issuer":           p.token(t, "JWT", claims, map[string]any{"iss": p.server.URL + "/" + tenant + "/", "ver": "1.0"}),
		"another tenant":                           p.token(t, "JWT", claims, map[string]any{"iss": p.server.URL + "/99999999-2222-3333-4444-555555555555/v2.0"}),
		"for Microsoft Graph":                      p.token(t, "JWT", claims, map[string]any{"aud": "00000003-0000-0000-c000-000000000000"}),
		"an ID token of an application of its own": p.token(t, "JWT", claims, map[string]any{"aud": claims["azp"], "scp": nil}),
	} {
		_, err := whoami(t, url, "read", token)
		require.ErrorContains(t, err, "401", reason)
	}
	daemon := p.token(t, "JWT", claims, map[string]any{"scp": nil, "roles": []string{"notes.read"}})
	_, err = whoami(t, url, "read", daemon)
	require.ErrorContains(t, err, "unknown tool", "roles are not scopes")
}

// The claims are those of https://github.com/panva/node-oidc-provider/blob/main/docs/README.md,
// resourceIndicators with the format jwt.
func TestOIDCProviderTokens(t *testing.T) {
	p := newProduct(t, "", "/jwks", nil, map[string]any{"alg": "RS256"})
	claims := map[string]any{"jti": "x", "sub": "ann", "scope": "notes:read", "client_id": "app", "aud": resource}
	url := serveFor(t, "oidc-provider.yaml", p)
	who, err := whoami(t, url, "write", p.token(t, "at+jwt", claims, nil))
	require.NoError(t, err)
	require.Equal(t, "ann", who.Subject)
	_, err = whoami(t, url, "write", p.token(t, "at+jwt", claims, map[string]any{"aud": "https://other.example.com"}))
	require.ErrorContains(t, err, "401")
	_, err = whoami(t, url, "write", "vJ1OGYYFmRyRYHkxKx2WkYbTQ3ZSjG_opaque")
	require.ErrorContains(t, err, "401", "without resourceIndicators, tokens are opaque")
}
