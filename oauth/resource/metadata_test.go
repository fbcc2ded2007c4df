package resource_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
)

func TestMetadataIsAtBothWellKnownPaths(t *testing.T) {
	guard, err := resource.New(resource.Options{Issuer: issuer, Resource: endpoint,
		Verifier: verifierFunc(func(string) (*oauth.Principal, error) { return nil, nil }), Scopes: []string{"a"}, Name: "Notes",
		DPoP: &resource.DPoP{Required: true}})
	require.NoError(t, err)
	mux := http.NewServeMux()
	guard.Mount(mux)
	for _, path := range []string{"/.well-known/oauth-protected-resource/api/mcp", "/.well-known/oauth-protected-resource"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		require.Equal(t, http.StatusOK, w.Code)
		require.Equal(t, "application/json", w.Header().Get("Content-Type"))
		require.JSONEq(t, `{"resource":"https://mcp.example.com/api/mcp","authorization_servers":["https://login.example.com"],
			"scopes_supported":["a"],"bearer_methods_supported":["header"],"resource_name":"Notes","dpop_bound_access_tokens_required":true,
			"dpop_signing_alg_values_supported":["ES256","ES384","ES512","EdDSA","PS256","PS384","PS512","RS256","RS384","RS512"]}`, w.Body.String())
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/.well-known/oauth-protected-resource", nil))
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
}

func TestNewReportsEveryMistakeInOptions(t *testing.T) {
	_, err := resource.New(resource.Options{Resource: "/mcp", OtherIssuers: []string{"as"}, Scopes: []string{`a"b`, "offline_access"},
		Algorithms: []string{"HS256", "none", "es256"}})
	require.EqualError(t, err, `resource: issuer "" is not an absolute https URL
resource: issuer "as" is not an absolute https URL
resource: "a\"b" is not a scope: a scope is one word without quotes
resource: "offline_access" is not a scope of a resource: clients request it from the authorization server themselves; leave it out
resource: resource "/mcp" is not an absolute https URL
resource: algorithms ["HS256" "none" "es256"] cannot be used; known are ES256, ES384, ES512, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512`)
}

func TestMetadataIsPublicAndReadOnly(t *testing.T) {
	guard, err := resource.New(resource.Options{Issuer: issuer, Resource: "https://mcp.example.com",
		Verifier: verifierFunc(func(string) (*oauth.Principal, error) { return nil, nil }), ScopesSupported: []string{"a", "b"}, Scopes: []string{"a"}})
	require.NoError(t, err)
	require.Equal(t, []string{"/.well-known/oauth-protected-resource"}, guard.MetadataPaths())
	for verb, status := range map[string]int{http.MethodGet: 200, http.MethodHead: 200, http.MethodOptions: 204, http.MethodPost: 405, http.MethodPut: 405, http.MethodDelete: 405} {
		w := httptest.NewRecorder()
		guard.Metadata().ServeHTTP(w, httptest.NewRequest(verb, "/", nil))
		require.Equal(t, status, w.Code, verb)
		require.Equal(t, "*", w.Header().Get("Access-Control-Allow-Origin"))
		require.Equal(t, status == 405, w.Header().Get("Allow") == "GET, HEAD, OPTIONS", verb)
		if verb == http.MethodGet {
			require.JSONEq(t, `{"resource":"https://mcp.example.com","authorization_servers":["https://login.example.com"],"scopes_supported":["a","b"],
				"bearer_methods_supported":["header"]}`, w.Body.String())
			require.Equal(t, "public, max-age=300", w.Header().Get("Cache-Control"))
		}
	}
}

func TestUnencryptedResourceIsLogged(t *testing.T) {
	for endpoint, warns := range map[string]bool{
		"https://mcp.example.com/mcp": false, "http://localhost:8080/mcp": false, "http://127.0.0.1/mcp": false, "http://[::1]:1/": false,
		"http://mcp.example.com/mcp": true, "http://localhost.example.com/": true, "http://192.168.1.5/mcp": true,
	} {
		var log testkit.Buffer
		_, err := resource.New(resource.Options{Issuer: issuer, Resource: endpoint, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Verifier: verifierFunc(func(string) (*oauth.Principal, error) { return nil, nil })})
		require.NoError(t, err)
		require.Equal(t, warns, strings.Contains(log.String(), "tokens for this resource travel without protection"), endpoint)
	}
}
