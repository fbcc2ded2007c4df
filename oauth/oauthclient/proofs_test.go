package oauthclient_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
)

// A resource that accepts both schemes sends a challenge for each. A fresh nonce is all that the
// second asks for.
func TestNoncesOfResourcesThatAcceptBothSchemesNeedNoNewToken(t *testing.T) {
	var b book
	as := oauthtest.New(t, &oauthtest.Options{Wrap: func(next http.Handler) http.Handler { return b.wrap(demandNonces(next)) }})
	s := protect(t, as, func(o *resource.Options) { o.DPoP = &resource.DPoP{} })
	s.Config.Handler = s.wrap(demandNonces(s.mux))
	u := new(user)
	tr := connect(t, s.url, u.grant(), oauthclient.Options{DPoP: prover(t)})
	tok, err := tr.Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "user may read", says(t, tr, s.url))
	again, err := tr.Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, tok.AccessToken, again.AccessToken)
	require.Len(t, u.logins(), 1)
}

// No token helps a client whose proofs are refused, for example since its clock is wrong.
func TestRefusedProofsCauseNoLogin(t *testing.T) {
	as := oauthtest.New(t, nil)
	s := protect(t, as, func(o *resource.Options) { o.DPoP = &resource.DPoP{} })
	u := new(user)
	tr := connect(t, s.url, u.grant(), oauthclient.Options{DPoP: prover(t)})
	require.Equal(t, "user may read", says(t, tr, s.url))
	inner := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Method = http.MethodPatch // the proof is for another method
		inner.ServeHTTP(w, r)
	})
	status, _, err := post(t, tr, s.url)
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, status)
	require.Len(t, u.logins(), 1)
}
