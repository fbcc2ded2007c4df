package oauthclient_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
)

// spoil makes a token invalid.
func spoil(t *testing.T, as *oauthtest.Server, tr *oauthclient.Transport) *oauthclient.Token {
	tok, err := tr.Token(t.Context())
	require.NoError(t, err)
	require.True(t, as.Revoke(tok.AccessToken))
	return tok
}

func TestRequestedScopes(t *testing.T) {
	for _, test := range []struct {
		name      string
		scopes    []string // of the authorization server
		required  []string // required by the resource
		supported []string // published by the resource
		want      string
	}{
		{"those of the challenge", nil, []string{"read"}, []string{"read", "write"}, "read"},
		{"without a challenge, all supported", nil, nil, []string{"read", "write"}, "read write"},
		{"none are known", nil, nil, nil, ""},
		{"offline_access is added", []string{"read", "offline_access"}, []string{"read"}, nil, "read offline_access"},
		{"offline_access alone is not requested", []string{"offline_access"}, nil, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var b book
			as := oauthtest.New(t, &oauthtest.Options{Scopes: test.scopes, Wrap: b.wrap})
			s := protect(t, as, func(o *resource.Options) { o.Scopes, o.ScopesSupported = test.required, test.supported })
			u := new(user)
			says(t, connect(t, s.url, u.grant(), oauthclient.Options{}), s.url)
			require.Equal(t, []string{test.want}, u.logins())
			// Authorization servers that follow OpenID Connect ignore offline_access without prompt=consent.
			require.Equal(t, strings.Contains(test.want, "offline_access"), b.at("/authorize")[0].query.Get("prompt") == "consent")
		})
	}
}

func TestFailedRefreshesAreRetried(t *testing.T) {
	var broken atomic.Bool
	as := oauthtest.New(t, &oauthtest.Options{Clients: []oauthtest.Client{guardian}, Wrap: at("/token", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if broken.Load() {
			unavailable(w, r, next)
			return
		}
		next.ServeHTTP(w, r)
	})})
	s, u, tr := visited(t, as, introspected(as))
	require.Equal(t, "user may read", says(t, tr, s.url))
	spoil(t, as, tr)
	broken.Store(true)
	_, _, err := post(t, tr, s.url)
	require.EqualError(t, err, fmt.Sprintf("oauthclient: the authorization server %q refused with HTTP status 503", as.Issuer))
	broken.Store(false)
	require.Equal(t, "user may read", says(t, tr, s.url))
	require.Len(t, u.logins(), 1)
}

func TestExpiredRefreshTokenCausesALogin(t *testing.T) {
	as := oauthtest.New(t, &oauthtest.Options{Clients: []oauthtest.Client{guardian}})
	s, u, tr := visited(t, as, introspected(as))
	require.Equal(t, "user may read", says(t, tr, s.url))
	as.Revoke(spoil(t, as, tr).RefreshToken)
	require.Equal(t, "user may read", says(t, tr, s.url))
	require.Len(t, u.logins(), 2)
}

func TestTokensOfAnotherKeyCauseALogin(t *testing.T) {
	as := oauthtest.New(t, nil)
	s := protect(t, as, func(o *resource.Options) { o.DPoP = &resource.DPoP{Required: true} })
	u, store := new(user), oauthclient.NewMemoryStore()
	same := prover(t)
	for i, p := range []oauthclient.Options{{DPoP: same}, {DPoP: same}, {DPoP: prover(t)}} {
		p.Store = store
		require.Equal(t, "user may read", says(t, connect(t, s.url, u.grant(), p), s.url))
		require.Len(t, u.logins(), []int{1, 1, 2}[i])
	}
	bound, err := store.Load(t.Context(), oauthclient.Key{Issuer: as.Issuer, Resource: s.url})
	require.NoError(t, err)
	status, _, err := post(t, connect(t, s.url, u.grant(), oauthclient.Options{Store: store}), s.url)
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, status, "the resource rejects unbound tokens")
	for _, r := range s.at("/mcp") {
		require.NotEqual(t, "Bearer "+bound.Token.AccessToken, r.header.Get("Authorization"))
	}
}

func TestLogoutEndsARefresh(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	as := oauthtest.New(t, &oauthtest.Options{Clients: []oauthtest.Client{guardian}, Wrap: at("/token", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.FormValue("grant_type") == "refresh_token" {
			close(asked)
			<-answer
		}
		next.ServeHTTP(w, r)
	})})
	s := protect(t, as, introspected(as))
	store := oauthclient.NewMemoryStore()
	tr := connect(t, s.url, new(user).grant(), oauthclient.Options{Store: store})
	require.Equal(t, "user may read", says(t, tr, s.url))
	spoil(t, as, tr)
	refreshed := make(chan error, 1)
	go func() { refreshed <- tr.Login(t.Context()) }() // ends with Logout
	<-asked
	require.NoError(t, tr.Logout(t.Context()))
	require.ErrorContains(t, <-refreshed, "logged out during the login")
	close(answer)
	r, err := store.Load(t.Context(), oauthclient.Key{Issuer: as.Issuer, Resource: s.url})
	require.NoError(t, err)
	require.Nil(t, r)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A server may delay the response headers of a stream.
func TestLoginsDoNotWaitForStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		tr, err := oauthclient.New("http://127.0.0.1:1/mcp", new(user).grant(), &oauthclient.Options{
			InsecureLoopback: true,
			Base: roundTripper(func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}),
		})
		require.NoError(t, err)
		require.ErrorContains(t, tr.Login(t.Context()), "resource metadata: http://127.0.0.1:1/.well-known/oauth-protected-resource/mcp: ")
		require.Equal(t, 10*time.Second, time.Since(began))
		require.NoError(t, tr.Close())
	})
}

// Many authorization servers do not say when tokens expire.
func TestStoredTokensOfUnknownExpiryAreRefreshed(t *testing.T) {
	w := newWorld(t)
	w.refresh = "again"
	store := oauthclient.NewMemoryStore()
	for range 3 {
		status, _, err := post(t, w.transport(t, oauthclient.Options{Store: store}), w.URL+"/mcp")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status)
		w.mu.Lock()
		w.good = "another" // the token expires before the next run
		w.mu.Unlock()
	}
	require.EqualValues(t, 1, w.logins.Load())
}

// An authorization server may forget clients that registered themselves.
func TestForgottenClientsRegisterAgain(t *testing.T) {
	var later atomic.Pointer[oauthtest.Server]
	as := oauthtest.New(t, &oauthtest.Options{Clients: []oauthtest.Client{guardian}, Wrap: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if restarted := later.Load(); restarted != nil {
				restarted.ServeHTTP(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}})
	s := protect(t, as, introspected(as))
	u, store := new(user), oauthclient.NewMemoryStore()
	require.Equal(t, "user may read", says(t, connect(t, s.url, u.grant(), oauthclient.Options{Store: store}), s.url))
	restarted, err := oauthtest.NewHandler(as.Issuer, &oauthtest.Options{Clients: []oauthtest.Client{guardian}})
	require.NoError(t, err)
	t.Cleanup(restarted.Close)
	later.Store(restarted)
	for range 2 {
		require.Equal(t, "user may read", says(t, connect(t, s.url, u.grant(), oauthclient.Options{Store: store}), s.url))
	}
	require.Len(t, u.logins(), 2)
}

// A program may use the token of the login with package oauth2.
func TestTokenSourceOfALogin(t *testing.T) {
	as := oauthtest.New(t, nil)
	s, u, tr := visited(t, as, nil)
	src := tr.TokenSource(t.Context())
	tok, err := src.Token()
	require.NoError(t, err)
	require.True(t, tok.Valid())
	require.Empty(t, tok.RefreshToken, "only the transport refreshes tokens")
	require.Equal(t, "user may read", says(t, &oauth2.Transport{Source: src}, s.url))
	require.Len(t, u.logins(), 1)

	as = oauthtest.New(t, &oauthtest.Options{Consent: func(*oauthtest.Authorization) error { return errors.New("not today") }})
	s = protect(t, as, nil)
	_, err = connect(t, s.url, u.grant(), oauthclient.Options{}).TokenSource(t.Context()).Token()
	require.ErrorContains(t, err, "not today")
}

type source func() (*oauth2.Token, error)

func (s source) Token() (*oauth2.Token, error) { return s() }

// A program may get its tokens with package oauth2.
func TestTokensOfATokenSourceStayAtTheServer(t *testing.T) {
	as := oauthtest.New(t, nil)
	s := protect(t, as, nil)
	src := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: as.Token(oauthtest.Token{Audience: []string{s.url}, Scopes: []string{"read"}})})
	tr, err := oauthclient.FromTokenSource(s.url, src, as.Client().Transport)
	require.NoError(t, err)
	require.Equal(t, "user may read", says(t, tr, s.url))

	var other book
	elsewhere := httptest.NewServer(other.wrap(http.NotFoundHandler()))
	defer elsewhere.Close()
	s.Config.Handler = http.RedirectHandler(elsewhere.URL+"/mcp", http.StatusTemporaryRedirect)
	resp, err := (&http.Client{Transport: tr}).Get(s.url)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Len(t, other.at("/mcp"), 1)
	require.Empty(t, other.at("/mcp")[0].header.Get("Authorization"))

	_, err = oauthclient.FromTokenSource("http://mcp.example/mcp", src, nil)
	require.EqualError(t, err, `oauthclient: tokens to "http://mcp.example/mcp" would be sent unencrypted; use https`)
	tr, err = oauthclient.FromTokenSource(s.url, source(func() (*oauth2.Token, error) { return nil, errors.New("no login") }), nil)
	require.NoError(t, err)
	_, _, err = post(t, tr, s.url)
	require.EqualError(t, err, "no login")
}
