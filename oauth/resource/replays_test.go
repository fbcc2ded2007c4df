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
	guard := m.guard(func(o *resource.Options) { o.DPoP = resource.LimitedDPoP(4) })
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
