package oauthclient_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth/dpop"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
	"github.com/mcpkit/mcpkit-go/oauth/resourceserver"
)

// A resource that accepts both schemes sends a challenge for each. A fresh nonce is all that the
// second asks for.
func TestNoncesOfResourcesThatAcceptBothSchemesNeedNoNewToken(t *testing.T) {
	var b book
	as := oauthtest.New(t, &oauthtest.Options{Wrap: b.wrap, DPoP: nonces(t)})
	s := protect(t, as, func(o *resourceserver.Options) { o.DPoP = nonces(t) })
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
	var refuse atomic.Bool
	as := oauthtest.New(t, nil)
	s := protect(t, as, func(o *resourceserver.Options) {
		var err error
		o.DPoP, err = dpop.NewVerifier(dpop.Options{Replays: replays(func() bool { return refuse.Load() })})
		require.NoError(t, err)
	})
	u := new(user)
	tr := connect(t, s.url, u.grant(), oauthclient.Options{DPoP: prover(t)})
	require.Equal(t, "user may read", says(t, tr, s.url))
	refuse.Store(true)
	status, _, err := post(t, tr, s.url)
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, status)
	require.Len(t, u.logins(), 1)
}

// replays is a store that says whether each proof was used before.
type replays func() bool

func (r replays) Seen(context.Context, string, [32]byte, time.Time) (bool, error) { return r(), nil }
