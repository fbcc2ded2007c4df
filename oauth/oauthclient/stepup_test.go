package oauthclient_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
)

// A user who does not grant more scopes has not logged out.
func TestDeniedStepUpDoesNotPreventRefreshes(t *testing.T) {
	var deny atomic.Bool
	as := oauthtest.New(t, &oauthtest.Options{Clients: []oauthtest.Client{guardian}, Consent: func(*oauthtest.Authorization) error {
		if deny.Load() {
			return errors.New("not today")
		}
		return nil
	}})
	s, u, tr := visited(t, as, introspected(as))
	require.Equal(t, "user may read", says(t, tr, s.url))
	deny.Store(true)
	for range 2 {
		_, _, err := post(t, tr, s.url+"/write")
		require.ErrorContains(t, err, "not today")
	}
	require.Equal(t, "user may read", says(t, tr, s.url))
	spoil(t, as, tr)
	require.Equal(t, "user may read", says(t, tr, s.url))
	require.Len(t, u.logins(), 2)
}

// A request whose token has expired waits for the login of a request that needs more scopes. It
// needs none of them.
func TestDeniedStepUpDoesNotFailOtherRequests(t *testing.T) {
	asked, deny := make(chan struct{}), make(chan struct{})
	as := oauthtest.New(t, &oauthtest.Options{Clients: []oauthtest.Client{guardian}, Consent: func(a *oauthtest.Authorization) error {
		if !slices.Contains(a.Scopes, "write") {
			return nil
		}
		close(asked)
		<-deny
		return errors.New("not today")
	}})
	s, _, tr := visited(t, as, introspected(as))
	require.Equal(t, "user may read", says(t, tr, s.url))
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, _, err := post(t, tr, s.url+"/write"); err == nil || !strings.Contains(err.Error(), "not today") {
			t.Errorf("got %v", err)
		}
	})
	<-asked
	spoil(t, as, tr)
	before := len(s.at("/mcp"))
	wg.Go(func() {
		if status, body, err := post(t, tr, s.url); err != nil || status != http.StatusOK {
			t.Errorf("got %d %q, %v", status, body, err)
		}
	})
	require.Eventually(t, func() bool { return len(s.at("/mcp")) > before }, time.Minute, time.Millisecond)
	close(deny)
	wg.Wait()
}

// A request may have to wait for several logins that others have begun.
func TestConcurrentStepUpsSucceed(t *testing.T) {
	const requests = 6
	var refused sync.WaitGroup
	refused.Add(requests)
	as := oauthtest.New(t, &oauthtest.Options{Consent: func(a *oauthtest.Authorization) error {
		if len(a.Scopes) == 2 {
			refused.Wait()
		}
		return nil
	}})
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	defer s.Close()
	guard, err := resource.New(resource.Options{
		Issuer: as.Issuer, Resource: s.URL, Scopes: []string{"read"}, InsecureLoopback: true, Client: as.Client(),
	})
	require.NoError(t, err)
	guard.Mount(mux)
	var seen sync.Map
	mux.Handle("/{scope}", guard.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scope := r.PathValue("scope")
		if oauth.FromContext(r.Context()).Has(scope) {
			return
		}
		oauth.DemandScopes(r.Context(), scope)
		w.WriteHeader(http.StatusForbidden)
		if _, again := seen.LoadOrStore(scope, true); !again {
			refused.Done()
		}
	})))
	tr := connect(t, s.URL, new(user).grant(), oauthclient.Options{})
	require.NoError(t, tr.Login(t.Context()))
	var wg sync.WaitGroup
	for i := range requests {
		wg.Go(func() {
			if status, _, err := post(t, tr, fmt.Sprint(s.URL, "/scope", i)); err != nil || status != http.StatusOK {
				t.Errorf("got %d, %v", status, err)
			}
		})
	}
	wg.Wait()
}

func TestAServerThatAlwaysDemandsAnotherScopeOpensFourLoginsAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{Server: &httptest.Server{URL: "https://mcp.example"}, insatiable: true}
		w.issuer, w.authorize, w.iss, w.resource = w.URL, w.URL+"/authorize", w.URL, w.URL+"/mcp"
		web := roundTripper(func(r *http.Request) (*http.Response, error) {
			rec := httptest.NewRecorder()
			w.serve(rec, r)
			return rec.Result(), nil
		})
		tr, err := oauthclient.New(w.resource, visiting(w.visit), &oauthclient.Options{Base: web, Fetch: web})
		require.NoError(t, err)
		defer tr.Close()
		send := func(want int) {
			status, _, err := post(t, tr, w.resource)
			require.NoError(t, err)
			require.Equal(t, want, status)
		}
		for hour := range 3 {
			for range 5 {
				send(http.StatusForbidden)
			}
			require.EqualValues(t, 4*(hour+1), w.logins.Load())
			time.Sleep(time.Hour)
		}
		for range 5 {
			send(http.StatusForbidden)
		}
		require.NoError(t, tr.Login(t.Context()))
		send(http.StatusForbidden)
		require.EqualValues(t, 17, w.logins.Load(), "only the program itself has asked for another")

		w.insatiable = false
		send(http.StatusOK)
		w.insatiable = true
		for range 5 {
			send(http.StatusForbidden)
		}
		require.EqualValues(t, 21, w.logins.Load(), "a request was accepted")
	})
}

// A token that has expired when it arrives leads to a login before the next request is sent.
func TestAServerThatRefusesExpiredTokensOpensFourLoginsAnHour(t *testing.T) {
	as := oauthtest.New(t, &oauthtest.Options{Lifetime: time.Second, NoRefresh: true})
	s := protect(t, as, nil)
	s.Config.Handler = refusing(s.Config.Handler)
	u := new(user)
	tr := connect(t, s.url, u.grant(), oauthclient.Options{})
	for range 5 {
		status, _, err := post(t, tr, s.url)
		require.NoError(t, err)
		require.Equal(t, http.StatusUnauthorized, status)
	}
	require.Len(t, u.logins(), 4)
}

// refusing removes the tokens from requests for the resource.
func refusing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Authorization")
		next.ServeHTTP(w, r)
	})
}

func TestChallengesWithTooManyScopesAreRefused(t *testing.T) {
	for _, test := range []struct {
		status int
		bytes  int
		err    string
	}{
		{http.StatusUnauthorized, 4096, ""},
		{http.StatusUnauthorized, 4097, "oauthclient: the server's challenge has 4097 bytes of scopes; at most 4096 are accepted"},
		{http.StatusForbidden, 4097, "oauthclient: the server's challenge has 4097 bytes of scopes; at most 4096 are accepted"},
	} {
		w := newWorld(t)
		challenge := fmt.Sprintf(`Bearer error="insufficient_scope", resource_metadata="%s/prm", scope=%q`, w.URL, strings.Repeat("s", test.bytes))
		inner, refused := w.Config.Handler, false
		w.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/mcp" && !refused {
				refused = true
				rw.Header().Set("WWW-Authenticate", challenge)
				rw.WriteHeader(test.status)
				return
			}
			inner.ServeHTTP(rw, r)
		})
		tr := w.transport(t, oauthclient.Options{})
		_, _, err := post(t, tr, w.URL+"/mcp")
		if test.err == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, test.err)
		require.Zero(t, w.logins.Load())
		_, _, err = post(t, tr, w.URL+"/mcp")
		require.NoError(t, err, "later challenges are read")
	}
}
