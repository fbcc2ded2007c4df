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
