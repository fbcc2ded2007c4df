package oauth_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth"
)

func TestDifferentPrincipalsHaveDifferentKeys(t *testing.T) {
	require.Empty(t, (*oauth.Principal)(nil).Key())
	seen := map[string]*oauth.Principal{}
	parts := []string{"", "a", "b", "a b", "a\x00b", "\x00", "\x01", "\x01-", "\x01\x01", "\x00\x01", "a\x00", "\x00b", "-", "\x00\x00", "\x01\x00"}
	for _, issuer := range parts {
		for _, subject := range parts {
			for _, client := range parts {
				p := &oauth.Principal{Issuer: issuer, Subject: subject, ClientID: client}
				require.NotEmpty(t, p.Key(), "only a nil principal has no key")
				require.Nil(t, seen[p.Key()], "%q and %q", p, seen[p.Key()])
				seen[p.Key()] = p
			}
		}
	}
	p := &oauth.Principal{Subject: "s", Issuer: "i", ClientID: "c", Scopes: []string{"x"}}
	require.Equal(t, p.Key(), (&oauth.Principal{Subject: "s", Issuer: "i", ClientID: "c"}).Key(), "scopes are not part of the key")
}

func TestNilPrincipalHasNoScopes(t *testing.T) {
	require.False(t, (*oauth.Principal)(nil).Has("a"))
	require.True(t, (*oauth.Principal)(nil).Has())
	p := &oauth.Principal{Scopes: []string{"a", "b"}}
	require.True(t, p.Has("b", "a"))
	require.True(t, p.Has("x|b", "a"))
	for _, scope := range []string{"", "x|y", "A", "a b", "a*", "*", "ab"} {
		require.False(t, p.Has("a", scope), scope)
	}
}

func TestNewContextReplacesThePrincipal(t *testing.T) {
	require.Nil(t, oauth.FromContext(t.Context()))
	require.False(t, oauth.AuthenticationDecided(t.Context()))
	p := &oauth.Principal{Subject: "a"}
	ctx := oauth.NewContext(t.Context(), p)
	require.Same(t, p, oauth.FromContext(ctx))
	require.True(t, oauth.AuthenticationDecided(ctx))
	require.Nil(t, oauth.FromContext(oauth.NewContext(ctx, nil)), "the nil principal replaces the other")
	require.True(t, oauth.AuthenticationDecided(oauth.NewContext(t.Context(), nil)), "authentication is decided")
}

func TestScopeDemandCollectsScopesOnce(t *testing.T) {
	require.False(t, oauth.DemandScopes(t.Context(), "a"), "the context has no demand")
	ctx, demand := oauth.WithScopeDemand(t.Context())
	require.Nil(t, demand.Scopes())
	require.True(t, oauth.DemandScopes(ctx, "a", "b"))
	require.True(t, oauth.DemandScopes(ctx, "b", "c"))
	require.Equal(t, []string{"a", "b", "c"}, demand.Scopes())
	demand.Scopes()[0] = "changed"
	require.Equal(t, []string{"a", "b", "c"}, demand.Scopes(), "it is a copy")
}

// All calls on a WebSocket share the demand of the request that opened it.
func TestScopeDemandIsLimited(t *testing.T) {
	ctx, demand := oauth.WithScopeDemand(t.Context())
	for i := range 1000 {
		require.True(t, oauth.DemandScopes(ctx, fmt.Sprint("note:", i)))
	}
	require.Len(t, demand.Scopes(), 100)
	require.Equal(t, "note:99", demand.Scopes()[99])
}

func TestErrorsNameTheMissingScopes(t *testing.T) {
	err := &oauth.InsufficientScopeError{Scopes: []string{"a", "b"}}
	require.EqualError(t, err, "oauth: insufficient scope; needed: a b")
	require.Equal(t, []string{"a", "b"}, err.NeededScopes())
	require.EqualError(t, &oauth.TokenError{Reason: "it is old"}, "oauth: the token is rejected: it is old")
}

func TestContextExpiresWithTheCredential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			p    *oauth.Principal
			ends bool
		}{
			{&oauth.Principal{Subject: "ann", Expires: time.Now().Add(time.Minute)}, true},
			{&oauth.Principal{Subject: "ann"}, false},
			{nil, false},
		} {
			ctx, cancel := oauth.WithExpiry(oauth.NewContext(t.Context(), test.p))
			time.Sleep(time.Minute - time.Nanosecond)
			require.NoError(t, ctx.Err())
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			require.Equal(t, test.ends, ctx.Err() != nil)
			cancel()
			require.Error(t, ctx.Err())
		}
	})
}
