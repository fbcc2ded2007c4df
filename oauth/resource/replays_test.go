package resource_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
)

// The thief of a bound token can sign any number of proofs with another key.
func TestProofsByAnotherKeyAreNotRemembered(t *testing.T) {
	m := newMatrix(t)
	guard := m.guard(func(o *resource.Options) { o.DPoP = resource.LimitedDPoP(4, 4) })
	send := func(p *oauthclient.Prover) (status int, body string) {
		w := httptest.NewRecorder()
		guard.ServeHTTP(w, m.dpopAsk(m.proof(p, "POST", endpoint, m.boundToken, "")))
		return w.Code, w.Body.String()
	}
	for range 8 {
		status, body := send(m.stranger)
		require.Equal(t, http.StatusUnauthorized, status, body)
		require.Contains(t, body, "the token is bound to another key")
	}
	status, body := send(m.prover)
	require.Equal(t, http.StatusOK, status, body)
}

func TestEachKeyHasAShareOfTheReplayStore(t *testing.T) {
	m := newMatrix(t)
	guard := m.guard(func(o *resource.Options) { o.DPoP = resource.LimitedDPoP(8, 4) })
	token := map[*oauthclient.Prover]string{m.prover: m.boundToken, m.stranger: m.token(claims{"cnf": claims{"jkt": m.stranger.Thumbprint()}})}
	send := func(p *oauthclient.Prover) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		guard.ServeHTTP(w, m.boundAsk(token[p], m.proof(p, "POST", endpoint, token[p], "")))
		return w
	}
	for range 4 {
		require.Equal(t, http.StatusOK, send(m.stranger).Code)
	}
	for range 8 {
		w := send(m.stranger)
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		require.Equal(t, "60", w.Header().Get("Retry-After"))
		require.JSONEq(t, `{"error":"temporarily_unavailable","error_description":"too many requests by this key; try again later"}`, w.Body.String())
		require.Empty(t, w.Header()["Www-Authenticate"], "another token would not help")
	}
	for range 4 {
		require.Equal(t, http.StatusOK, send(m.prover).Code)
	}
}
