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
	"github.com/go-jose/go-jose/v4/jwt"
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
func newProduct(t *testing.T, path, keysPath string, key map[string]any, more ...any) *product {
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
	reply(strings.TrimSuffix(path, "/")+"/.well-known/openid-configuration", map[string]any{"issuer": p.issuer, "jwks_uri": p.server.URL + keysPath})
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
	text, err := jwt.Signed(signer).Claims(all).Serialize()
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
func serveFor(t *testing.T, file string, p *product) (url string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "auth", file))
	require.NoError(t, err)
	text := string(raw)
	found := regexp.MustCompile(`(?m)^  issuer: (https://[^/\s]+)(\S*)`).FindStringSubmatch(text)
	require.Len(t, found, 3, file)
	require.Equal(t, strings.TrimPrefix(p.issuer, p.server.URL), found[2], "the path of the issuer is the one of the page")
	text = strings.Replace(text, found[1], p.server.URL, 1)
	text = strings.Replace(text, "127.0.0.1:8080", "127.0.0.1:0", 1) + "  insecureLoopback: true\n"
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

// Tokens of products that are as their vendors document them get the principal that the page
// promises. What no product must send is in the tests of package resource.
//
//   - Keycloak: https://www.keycloak.org/securing-apps/oidc-layers and
//     https://www.keycloak.org/securing-apps/mcp-authz-server. It takes the audience from mappers and
//     not from the parameter resource, and publishes a key for encryption.
//   - Auth0: https://auth0.com/docs/secure/tokens/access-tokens/access-token-profiles and
//     https://auth0.com/docs/get-started/apis/enable-role-based-access-control-for-apis.
//   - Entra ID: https://learn.microsoft.com/entra/identity-platform/access-token-claims-reference. The
//     type is always JWT, keys have no alg, and scopes are in scp.
//   - oidc-provider: https://github.com/panva/node-oidc-provider/blob/main/docs/README.md,
//     resourceIndicators with the format jwt.
func TestTokensOfAuthorizationServers(t *testing.T) {
	const realm, tenant = "/realms/acme", "11111111-2222-3333-4444-555555555555"
	alg := map[string]any{"alg": "RS256"}
	for _, test := range []struct {
		file, path, keys  string // of the configuration, the issuer and the keys
		key               map[string]any
		more              []any // further keys
		typ, tool         string
		claims            map[string]any
		subject, clientID string
		scopes            []string
		foreign           map[string]any // claims that make it a token for another server
	}{
		{"keycloak.yaml", realm, realm + "/protocol/openid-connect/certs", alg, []any{encryptionKey()}, "at+jwt", "write", map[string]any{
			"jti": "onrtac:0c1f2e9a", "sub": "f2a1c7e0-43a5-4ea1-9d7b-4f4ef5ea3d1c", "aud": []string{resource, "account"}, "typ": "Bearer", "azp": "notes-cli",
			"sid": "b1a6", "acr": "1", "scope": "openid profile notes:read", "preferred_username": "ann",
			"realm_access":    map[string]any{"roles": []string{"default-roles-acme", "editor"}},
			"resource_access": map[string]any{"account": map[string]any{"roles": []string{"view-profile"}}},
		}, "f2a1c7e0-43a5-4ea1-9d7b-4f4ef5ea3d1c", "notes-cli", []string{"openid", "profile", "notes:read"}, map[string]any{"aud": "account"}},
		{"auth0.yaml", "/", "/.well-known/jwks.json", alg, nil, "at+jwt", "write", map[string]any{
			"sub": "auth0|123456", "aud": []string{resource, "https://acme.example/userinfo"}, "client_id": "my_client_id", "jti": "73WakrfVbNJBaAmhQtEeDv",
			"scope": "openid profile notes:read", "permissions": []string{"notes:read", "notes:write"},
		}, "auth0|123456", "my_client_id", []string{"openid", "profile", "notes:read"}, map[string]any{"aud": "https://acme.example/userinfo"}},
		{"entra.yaml", "/" + tenant + "/v2.0", "/" + tenant + "/discovery/v2.0/keys", nil, nil, "JWT", "read", map[string]any{
			"aud": "66666666-7777-8888-9999-000000000000", "sub": "AAAAAAAAAAAAAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ", "tid": tenant,
			"oid": "690222be-ff1a-4d56-abd1-7e4f7d38e474", "azp": "aaaaaaaa-0000-1111-2222-bbbbbbbbbbbb", "azpacr": "0",
			"scp": "notes.read notes.write", "ver": "2.0", "name": "Ann", "uti": "x", "rh": "0.x",
		}, "AAAAAAAAAAAAAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ", "aaaaaaaa-0000-1111-2222-bbbbbbbbbbbb", []string{"notes.read", "notes.write"},
			map[string]any{"aud": "00000003-0000-0000-c000-000000000000"}},
		{"oidc-provider.yaml", "", "/jwks", alg, nil, "at+jwt", "write", map[string]any{
			"jti": "x", "sub": "ann", "scope": "notes:read", "client_id": "app", "aud": resource,
		}, "ann", "app", []string{"notes:read"}, map[string]any{"aud": "https://other.example.com"}},
	} {
		t.Run(test.file, func(t *testing.T) {
			p := newProduct(t, test.path, test.keys, test.key, test.more...)
			url := serveFor(t, test.file, p)
			who, err := whoami(t, url, test.tool, p.token(t, test.typ, test.claims, nil))
			require.NoError(t, err)
			require.Equal(t, []string{p.issuer, test.subject, test.clientID}, []string{who.Issuer, who.Subject, who.ClientID})
			require.Equal(t, test.scopes, who.Scopes, "roles and permissions are not scopes")
			_, err = whoami(t, url, test.tool, p.token(t, test.typ, test.claims, test.foreign))
			require.ErrorContains(t, err, "401")
		})
	}
}

// encryptionKey returns the key for encryption that Keycloak publishes beside those for signatures.
func encryptionKey() any {
	return jose.JSONWebKey{Key: rsaKeys()[1].Public(), KeyID: "e1", Use: "enc", Algorithm: "RSA-OAEP"}
}
