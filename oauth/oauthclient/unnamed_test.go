package oauthclient

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// A server that requires a token but supports no OAuth leads to an error that says what to do.
func TestServerThatNamesNoAuthorizationServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/mcp" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	transport, err := New(server.URL+"/mcp", &AuthorizationCode{Browser: Loopback(nil), Name: "test"}, &Options{InsecureLoopback: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, transport.Close()) })
	resp, err := (&http.Client{Transport: transport}).Post(server.URL+"/mcp", "application/json", http.NoBody)
	if err == nil {
		resp.Body.Close()
	}
	require.ErrorContains(t, err, "oauthclient: the server requires authentication but names no authorization server (neither WWW-Authenticate nor metadata), "+
		"and is not one itself; send a token in the header Authorization instead: ")
}
