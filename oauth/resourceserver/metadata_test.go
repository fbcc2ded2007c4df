package resourceserver_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/resourceserver"
)

func TestMetadataStandsAtBothWellKnownPaths(t *testing.T) {
	guard, err := resourceserver.New(resourceserver.Options{Resource: resource, AuthorizationServers: []string{issuer},
		Verifier: verifierFunc(func(string) (*oauth.Principal, error) { return nil, nil }), Scopes: []string{"a"}, Name: "Notes"})
	require.NoError(t, err)
	mux := http.NewServeMux()
	guard.Mount(mux)
	for _, path := range []string{"/.well-known/oauth-protected-resource/api/mcp", "/.well-known/oauth-protected-resource"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		require.Equal(t, http.StatusOK, w.Code)
		require.Equal(t, "application/json", w.Header().Get("Content-Type"))
		require.JSONEq(t, `{"resource":"https://mcp.example.com/api/mcp","authorization_servers":["https://login.example.com"],
			"scopes_supported":["a"],"bearer_methods_supported":["header"],"resource_name":"Notes"}`, w.Body.String())
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/.well-known/oauth-protected-resource", nil))
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
}

func TestMistakesInOptionsAreSaidAtOnce(t *testing.T) {
	_, err := resourceserver.New(resourceserver.Options{Resource: "/mcp", Scopes: []string{`a"b`}, RequireDPoP: true})
	require.EqualError(t, err, `resourceserver: Verifier is nil; see package jwtverify
resourceserver: AuthorizationServers is empty; name the issuer at which clients get tokens
resourceserver: RequireDPoP without DPoP
resourceserver: "a\"b" is no scope: a scope is one word without quotes
resourceserver: resource "/mcp" is no absolute https URL`)
}

func TestMetadataIsForEveryPageAndForReading(t *testing.T) {
	guard, err := resourceserver.New(resourceserver.Options{Resource: "https://mcp.example.com", AuthorizationServers: []string{issuer},
		Verifier: verifierFunc(func(string) (*oauth.Principal, error) { return nil, nil }), ScopesSupported: []string{"a", "b"}, Scopes: []string{"a"},
		Documentation: "https://example.com/docs", Policy: "https://example.com/policy", Terms: "https://example.com/terms"})
	require.NoError(t, err)
	require.Equal(t, []string{"/.well-known/oauth-protected-resource"}, guard.MetadataPaths())
	require.Equal(t, "https://mcp.example.com/.well-known/oauth-protected-resource", guard.MetadataURL())
	for verb, status := range map[string]int{http.MethodGet: 200, http.MethodHead: 200, http.MethodOptions: 204, http.MethodPost: 405, http.MethodPut: 405, http.MethodDelete: 405} {
		w := httptest.NewRecorder()
		guard.Metadata().ServeHTTP(w, httptest.NewRequest(verb, "/", nil))
		require.Equal(t, status, w.Code, verb)
		require.Equal(t, "*", w.Header().Get("Access-Control-Allow-Origin"))
		require.Equal(t, status == 405, w.Header().Get("Allow") == "GET, HEAD, OPTIONS", verb)
		if verb == http.MethodGet {
			require.JSONEq(t, `{"resource":"https://mcp.example.com","authorization_servers":["https://login.example.com"],"scopes_supported":["a","b"],
				"bearer_methods_supported":["header"],"resource_documentation":"https://example.com/docs","resource_policy_uri":"https://example.com/policy",
				"resource_tos_uri":"https://example.com/terms"}`, w.Body.String())
			require.Equal(t, "public, max-age=300", w.Header().Get("Cache-Control"))
		}
	}
}
