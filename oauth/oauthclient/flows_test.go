package oauthclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
)

func prover(t *testing.T) *oauthclient.Prover {
	p, err := oauthclient.NewProver(nil)
	require.NoError(t, err)
	return p
}

// Servers accept each proof once, so a repeated request needs a new one.
func TestEachRequestIsSignedAgain(t *testing.T) {
	var b book
	as := oauthtest.New(t, &oauthtest.Options{
		Clients: []oauthtest.Client{{ID: "robot", Secret: "secret"}}, RequireDPoP: true,
		Wrap: func(next http.Handler) http.Handler { return b.wrap(demandNonces(next)) },
	})
	s := protect(t, as, func(o *resource.Options) { o.DPoP = &resource.DPoP{Required: true} })
	s.Config.Handler = s.wrap(demandNonces(s.mux))
	g := &oauthclient.ClientCredentials{Credentials: oauthclient.Credentials{Issuer: as.Issuer, ClientID: "robot", ClientSecret: "secret"}}
	tr := connect(t, s.url, g, oauthclient.Options{DPoP: prover(t)})
	_, err := tr.Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "robot may read", says(t, tr, s.url))
	require.Equal(t, "robot may read", says(t, tr, s.url))

	asked := b.at("/token")
	require.Len(t, asked, 2, "the first request has no nonce")
	require.NotEqual(t, asked[0].header.Get("DPoP"), asked[1].header.Get("DPoP"))
	seen := make(map[string]bool)
	for _, r := range s.at("/mcp") {
		if r.header.Get("Authorization") == "" {
			continue
		}
		require.Regexp(t, "^DPoP ", r.header.Get("Authorization"))
		require.False(t, seen[r.header.Get("DPoP")], "a proof was sent twice")
		seen[r.header.Get("DPoP")] = true
	}
	require.Equal(t, 3, len(seen), "one request is repeated with the nonce of the resource")
}

func TestNonceIsRetriedOnce(t *testing.T) {
	refused := 0
	as := oauthtest.New(t, &oauthtest.Options{Wrap: at("/token", func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		refused++
		w.Header().Set("DPoP-Nonce", fmt.Sprint("nonce-", refused))
		w.WriteHeader(http.StatusBadRequest)
		reply(w, `{"error":"use_dpop_nonce"}`)
	})})
	s := protect(t, as, nil)
	tr := connect(t, s.url, new(user).grant(), oauthclient.Options{DPoP: prover(t)})
	_, err := tr.Token(t.Context())
	require.EqualError(t, err, fmt.Sprintf(`oauthclient: the authorization server %q refused with HTTP status 400: "use_dpop_nonce"`, as.Issuer))
	require.Equal(t, 2, refused)
}

const grantJWT = "urn:ietf:params:oauth:grant-type:jwt-bearer"

// accepting returns the grant of an assertion, for a subject.
func accepting(assertion, subject string) map[string]func(url.Values) (*oauthtest.Token, error) {
	return map[string]func(url.Values) (*oauthtest.Token, error){grantJWT: func(form url.Values) (*oauthtest.Token, error) {
		if form.Get("assertion") != assertion {
			return nil, errors.New("who says so?")
		}
		return &oauthtest.Token{Subject: subject, Audience: form["resource"], Scopes: strings.Fields(form.Get("scope"))}, nil
	}}
}

func TestEnterpriseLogin(t *testing.T) {
	var atProvider, atServer book
	answer := `{"access_token":"id-jag","issued_token_type":"urn:ietf:params:oauth:token-type:id-jag","token_type":"N_A"}`
	provider := httptest.NewServer(atProvider.wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.FormValue("subject_token") != "id-token" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"invalid_request"}`)
			return
		}
		_, _ = io.WriteString(w, answer)
	})))
	defer provider.Close()
	as := oauthtest.New(t, &oauthtest.Options{Clients: []oauthtest.Client{{ID: "app", Secret: leaked + "-too"}}, Grants: accepting("id-jag", "ada"), Wrap: atServer.wrap})
	s := protect(t, as, nil)
	grant := func(idToken string) *oauthclient.EnterpriseManaged {
		return &oauthclient.EnterpriseManaged{
			Credentials:           oauthclient.Credentials{Issuer: as.Issuer, ClientID: "app", ClientSecret: leaked + "-too"},
			Provider:              oauthclient.Credentials{Issuer: provider.URL, ClientID: "app", ClientSecret: leaked},
			ProviderTokenEndpoint: provider.URL,
			Subject:               func(context.Context) (string, string, error) { return idToken, oauthclient.TokenTypeID, nil },
		}
	}
	require.Equal(t, "ada may read", says(t, connect(t, s.url, grant("id-token"), oauthclient.Options{}), s.url))
	require.Equal(t, url.Values{
		"grant_type":           {"urn:ietf:params:oauth:grant-type:token-exchange"},
		"requested_token_type": {"urn:ietf:params:oauth:token-type:id-jag"},
		"subject_token":        {"id-token"},
		"subject_token_type":   {"urn:ietf:params:oauth:token-type:id_token"},
		"audience":             {as.Issuer}, "resource": {s.url}, "scope": {"read"},
	}, atProvider.at("/")[0].form)
	require.Empty(t, atServer.at("/authorize"))

	_, err := connect(t, s.url, grant("another"), oauthclient.Options{}).Token(t.Context())
	require.EqualError(t, err, fmt.Sprintf(`oauthclient: the identity provider: the authorization server %q refused with HTTP status 400: "invalid_request"`, provider.URL))
	answer = `{"access_token":"t","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","token_type":"Bearer"}`
	_, err = connect(t, s.url, grant("id-token"), oauthclient.Options{}).Token(t.Context())
	require.EqualError(t, err, fmt.Sprintf(`oauthclient: the identity provider %q returned a token of type "urn:ietf:params:oauth:token-type:access_token" `+
		`instead of urn:ietf:params:oauth:token-type:id-jag`, provider.URL))
}

func TestServerWithoutAssertionSupportIsNotAsked(t *testing.T) {
	var b book
	as := oauthtest.New(t, &oauthtest.Options{Wrap: b.wrap, Metadata: func(m map[string]any) {
		m["authorization_grant_profiles_supported"] = []string{"urn:example:other"}
	}})
	s := protect(t, as, nil)
	_, err := connect(t, s.url, &oauthclient.EnterpriseManaged{
		Credentials: oauthclient.Credentials{Issuer: as.Issuer, ClientID: "app"}, Provider: oauthclient.Credentials{ClientID: "app"}, ProviderTokenEndpoint: as.Endpoint("token"),
		Subject: func(context.Context) (string, string, error) { return "", "", errors.New("nobody is asked") },
	}, oauthclient.Options{}).Token(t.Context())
	require.EqualError(t, err, fmt.Sprintf(`oauthclient: the authorization server %q does not accept assertions of identity providers; it accepts ["urn:example:other"]`, as.Issuer))
	require.Empty(t, b.at("/token"))
}

func TestWorkloadIdentity(t *testing.T) {
	as := oauthtest.New(t, &oauthtest.Options{Grants: accepting("of the platform", "job-7")})
	s := protect(t, as, nil)
	asked := 0
	workload := func(assertion string) *oauthclient.WorkloadIdentity {
		return &oauthclient.WorkloadIdentity{Issuer: as.Issuer, Assertion: func(_ context.Context, a oauthclient.Audience) (string, error) {
			asked++
			require.Equal(t, oauthclient.Audience{Issuer: as.Issuer, TokenEndpoint: as.Endpoint("token")}, a)
			return assertion, nil
		}}
	}
	require.Equal(t, "job-7 may read", says(t, connect(t, s.url, workload("of the platform"), oauthclient.Options{}), s.url))

	asked = 0
	tr := connect(t, s.url, workload("made up"), oauthclient.Options{})
	for range 2 {
		_, err := tr.Token(t.Context())
		require.EqualError(t, err, fmt.Sprintf(`oauthclient: the authorization server %q refused with HTTP status 400: "invalid_grant" ("who says so?")`, as.Issuer))
	}
	require.Equal(t, 1, asked, "a rejected request is not repeated")
}

// The resource moves to another authorization server, which must receive nothing from the first.
func TestTheAuthorizationServerChanges(t *testing.T) {
	var first, second book
	one := oauthtest.New(t, &oauthtest.Options{Wrap: first.wrap})
	two := oauthtest.New(t, &oauthtest.Options{Wrap: second.wrap})
	s := protect(t, one, nil)
	moved, err := resource.New(resource.Options{
		Issuer: two.Issuer, Resource: s.url, Scopes: []string{"read"}, InsecureLoopback: true, Client: two.Client(),
	})
	require.NoError(t, err)
	u := new(user)
	store := oauthclient.NewMemoryStore()
	tr := connect(t, s.url, u.grant(), oauthclient.Options{Store: store})
	require.Equal(t, "user may read", says(t, tr, s.url))
	old, err := store.Load(t.Context(), oauthclient.Key{Issuer: one.Issuer, Resource: s.url})
	require.NoError(t, err)

	mux := http.NewServeMux()
	moved.Mount(mux)
	mux.Handle("/mcp", moved.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "moved") })))
	s.Config.Handler = s.wrap(mux) // no request is in progress
	before := len(first.records)
	require.Equal(t, "moved", says(t, tr, s.url))

	require.Len(t, u.logins(), 2)
	require.Len(t, second.at("/register"), 1)
	require.Len(t, first.records, before, "the first server gets no further requests")
	for _, r := range second.records {
		all := fmt.Sprint(r)
		require.NotContains(t, all, old.Client.ClientID)
		require.NotContains(t, all, old.Token.AccessToken)
		require.NotContains(t, all, old.Token.RefreshToken)
	}
}

// Before 2025-06-18 a server has no metadata of its own, and is its own authorization server.
func TestServersOf20250326(t *testing.T) {
	for name, hasMetadata := range map[string]bool{"with metadata": true, "at fixed paths": false} {
		t.Run(name, func(t *testing.T) {
			mux := http.NewServeMux()
			server := httptest.NewServer(mux)
			t.Cleanup(server.Close)
			as, err := oauthtest.NewHandler(server.URL, nil)
			require.NoError(t, err)
			t.Cleanup(as.Close)
			mux.Handle("/", as)
			if !hasMetadata {
				mux.Handle("/.well-known/", http.NotFoundHandler())
			}
			guard, err := resource.New(resource.Options{Issuer: as.Issuer, Resource: server.URL + "/mcp", JWKS: as.JWKS()})
			require.NoError(t, err)
			guarded := guard.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, oauth.FromContext(r.Context()).Subject)
			}))
			mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
				rec := httptest.NewRecorder() // without its challenges
				guarded.ServeHTTP(rec, r)
				w.WriteHeader(rec.Code)
				_, _ = w.Write(rec.Body.Bytes())
			})
			require.Equal(t, "user", says(t, connect(t, server.URL+"/mcp", new(user).grant(), oauthclient.Options{}), server.URL+"/mcp"))
		})
	}
}

func TestStepUpStopsIfTheUserGrantsFewerScopes(t *testing.T) {
	as := oauthtest.New(t, &oauthtest.Options{Consent: func(a *oauthtest.Authorization) error {
		a.Scopes = []string{"read"}
		return nil
	}})
	s, u, tr := visited(t, as, nil)
	status, _, err := post(t, tr, s.url+"/write")
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, status)
	require.Equal(t, []string{"read", "read write", "read write"}, u.logins())
	require.Equal(t, "user may read", says(t, tr, s.url), "the granted scopes are enough for other calls")
}

func TestDeniedLoginIsNotRetried(t *testing.T) {
	as := oauthtest.New(t, &oauthtest.Options{Consent: func(*oauthtest.Authorization) error { return errors.New("not today") }})
	s, u, tr := visited(t, as, nil)
	want := fmt.Sprintf(`oauthclient: the authorization server %q refused: "access_denied" ("not today")`, as.Issuer)
	for range 2 {
		_, _, err := post(t, tr, s.url)
		require.EqualError(t, err, want)
	}
	require.Len(t, u.logins(), 1)
	require.EqualError(t, tr.Login(t.Context()), want)
	require.Len(t, u.logins(), 2, "Login asks the user again")
}

// The server revokes the grant when a refresh token is used twice.
func TestOneRefreshServesAllRequests(t *testing.T) {
	var b book
	as := oauthtest.New(t, &oauthtest.Options{Wrap: b.wrap, Clients: []oauthtest.Client{guardian}})
	s, u, tr := visited(t, as, introspected(as))
	require.Equal(t, "user may read", says(t, tr, s.url))
	for round := range 3 {
		tok, err := tr.Token(t.Context())
		require.NoError(t, err)
		require.True(t, as.Revoke(tok.AccessToken))
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				if status, body, err := post(t, tr, s.url); err != nil || status != http.StatusOK {
					t.Errorf("got %d %q, %v", status, body, err)
				}
			})
		}
		wg.Wait()
		require.Len(t, b.at("/token"), 2+round)
	}
	require.Len(t, u.logins(), 1)
}

func TestLogoutRevokes(t *testing.T) {
	for _, test := range []struct {
		name      string
		another   bool // whether another run logs out
		noRefresh bool
	}{{name: "in the same run"}, {name: "in the next run", another: true}, {name: "without a refresh token", noRefresh: true}} {
		t.Run(test.name, func(t *testing.T) {
			var b book
			as := oauthtest.New(t, &oauthtest.Options{Wrap: b.wrap, NoRefresh: test.noRefresh})
			s := protect(t, as, nil)
			u, store := new(user), oauthclient.NewMemoryStore()
			tr := connect(t, s.url, u.grant(), oauthclient.Options{Store: store})
			require.NoError(t, tr.Logout(t.Context()), "there is no token to remove")
			require.Empty(t, b.at("/revoke"))
			tok, err := tr.Token(t.Context())
			require.NoError(t, err)
			if test.another {
				tr = connect(t, s.url, u.grant(), oauthclient.Options{Store: store})
			}
			require.NoError(t, tr.Logout(t.Context()))
			require.False(t, as.Revoke(tok.AccessToken), "the token is no longer valid")
			require.Len(t, b.at("/revoke"), 1)
			r, err := store.Load(t.Context(), oauthclient.Key{Issuer: as.Issuer, Resource: s.url})
			require.NoError(t, err)
			require.Nil(t, r)
			require.Equal(t, "user may read", says(t, tr, s.url))
			require.Len(t, u.logins(), 2)
		})
	}
}

func TestLogoutWithoutRevocationRemovesTheToken(t *testing.T) {
	as := oauthtest.New(t, &oauthtest.Options{Wrap: at("/revoke", unavailable)})
	s := protect(t, as, nil)
	store := oauthclient.NewMemoryStore()
	tr := connect(t, s.url, new(user).grant(), oauthclient.Options{Store: store})
	require.NoError(t, tr.Login(t.Context()))
	require.EqualError(t, tr.Logout(t.Context()), fmt.Sprintf("oauthclient: the authorization server %q refused with HTTP status 503", as.Issuer))
	r, err := store.Load(t.Context(), oauthclient.Key{Issuer: as.Issuer, Resource: s.url})
	require.NoError(t, err)
	require.Nil(t, r)
}

func TestLoginContinuesAfterItsRequestIsCancelled(t *testing.T) {
	as := oauthtest.New(t, nil)
	s := protect(t, as, nil)
	asked, agree := make(chan struct{}), make(chan struct{})
	tr := connect(t, s.url, visiting(func(ctx context.Context, page string) (url.Values, error) {
		close(asked)
		<-agree
		return oauthtest.Visit(ctx, page)
	}), oauthclient.Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	impatient := errors.New("I have no more time")
	go func() {
		<-asked
		cancel(impatient)
	}()
	require.ErrorIs(t, tr.Login(ctx), impatient)
	close(agree)
	require.Equal(t, "user may read", says(t, tr, s.url))
}

func TestCloseAndLogoutEndALogin(t *testing.T) {
	for name, end := range map[string]func(tr *oauthclient.Transport) error{
		"Close":  func(tr *oauthclient.Transport) error { return tr.Close() },
		"Logout": func(tr *oauthclient.Transport) error { return tr.Logout(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			as := oauthtest.New(t, nil)
			s := protect(t, as, nil)
			asked := make(chan struct{}, 1)
			tr := connect(t, s.url, visiting(func(ctx context.Context, _ string) (url.Values, error) {
				asked <- struct{}{}
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}), oauthclient.Options{})
			ended := make(chan error, 1)
			go func() { ended <- tr.Login(t.Context()) }() // ends with Close or Logout
			<-asked
			require.NoError(t, end(tr))
			if name == "Close" {
				require.ErrorIs(t, <-ended, oauthclient.ErrClosed)
				require.ErrorIs(t, tr.Login(t.Context()), oauthclient.ErrClosed)
			} else {
				require.EqualError(t, <-ended, fmt.Sprintf("oauthclient: the login at %q: logged out during the login", as.Issuer))
			}
		})
	}
}

func TestURLsContainNoSecrets(t *testing.T) {
	var b book
	as := oauthtest.New(t, &oauthtest.Options{Wrap: b.wrap, Clients: []oauthtest.Client{guardian, {ID: "app", Secret: leaked, RedirectURIs: []string{"http://127.0.0.1:1/callback"}}}})
	s := protect(t, as, introspected(as))
	for _, method := range []string{oauthclient.AuthBasic, oauthclient.AuthPost} {
		u := new(user)
		g := &oauthclient.AuthorizationCode{Browser: u.browser, Known: []oauthclient.Credentials{{Issuer: as.Issuer, ClientID: "app", ClientSecret: leaked, AuthMethod: method}}}
		tr := connect(t, s.url, g, oauthclient.Options{})
		require.Equal(t, "user may read", says(t, tr, s.url))
		tok, err := tr.Token(t.Context())
		require.NoError(t, err)
		as.Revoke(tok.AccessToken)
		require.Equal(t, "user may read", says(t, tr, s.url))
		require.NoError(t, tr.Logout(t.Context()))
		secrets := []string{leaked, tok.AccessToken, tok.RefreshToken}
		for _, r := range b.at("/token") {
			if v := r.form.Get("code_verifier"); v != "" {
				require.Len(t, v, 43)
				secrets = append(secrets, v)
			}
		}
		require.Greater(t, len(secrets), 3)
		for _, r := range append(b.records, s.records...) {
			for _, secret := range secrets {
				require.NotContains(t, r.url, secret)
				require.NotContains(t, r.header.Get("Referer"), secret)
			}
		}
	}
}

func TestRedirectsCarryNoTokens(t *testing.T) {
	var other atomic.Value
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { other.Store(r.Header.Clone()) }))
	defer elsewhere.Close()
	w := newWorld(t)
	tr := w.transport(t, oauthclient.Options{})
	_, _, err := post(t, tr, w.URL+"/mcp")
	require.NoError(t, err)
	w.Config.Handler = http.RedirectHandler(elsewhere.URL+"/mcp", http.StatusTemporaryRedirect)
	c := &http.Client{Transport: tr}
	resp, err := c.Post(w.URL+"/mcp", "text/plain", strings.NewReader("hello"))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Empty(t, other.Load().(http.Header).Values("Authorization"))
}

func TestRegistrationMetadata(t *testing.T) {
	for redirect, want := range map[string]string{
		"http://127.0.0.1:1/callback": "native", "http://localhost:3000/callback": "native", "http://[::1]:1/callback": "native",
		"https://app.example/callback": "web",
	} {
		var got metadata.Registration
		as := oauthtest.New(t, &oauthtest.Options{Wrap: at("/register", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			rec := httptest.NewRecorder()
			next.ServeHTTP(rec, r)
			decode(t, rec.Body.Bytes(), &got)
			w.WriteHeader(rec.Code)
			_, _ = w.Write(rec.Body.Bytes())
		})})
		s := protect(t, as, nil)
		g := &oauthclient.AuthorizationCode{Name: "test", Browser: func(context.Context, oauthclient.LoginRequest) (*oauthclient.Login, error) {
			return &oauthclient.Login{RedirectURI: redirect, Visit: oauthtest.Visit}, nil
		}}
		require.Equal(t, "user may read", says(t, connect(t, s.url, g, oauthclient.Options{}), s.url))
		require.Equal(t, want, got.ApplicationType)
		require.Equal(t, []string{"authorization_code", "refresh_token"}, got.GrantTypes)
		require.Equal(t, "none", got.TokenEndpointAuthMethod)
		require.Equal(t, []string{redirect}, got.RedirectURIs)
	}
}

func TestInvalidTokenResponsesAreRejected(t *testing.T) {
	for _, test := range []struct {
		name, body string
		status     int
		err        string // {} stands for the issuer
	}{
		{"no type", `{"access_token":"t"}`, 200, `the authorization server "{}" returned a token of type "" instead of Bearer`},
		{"another type", `{"access_token":"t","token_type":"mac"}`, 200, `the authorization server "{}" returned a token of type "mac" instead of Bearer`},
		{"no token", `{"token_type":"Bearer"}`, 200, `the authorization server "{}" returned no token that is valid in a header`},
		{"a token of two lines", `{"access_token":"a\r\nX-Evil: 1","token_type":"Bearer"}`, 200, `the authorization server "{}" returned no token that is valid in a header`},
		{"a token of other letters", `{"access_token":"ä","token_type":"Bearer"}`, 200, `the authorization server "{}" returned no token that is valid in a header`},
		{"nothing", ``, 200, `the authorization server "{}" returned a token of type "" instead of Bearer`},
		{"no JSON", `<html>`, 200, `the token endpoint of "{}": the response is not the expected JSON`},
		{"names twice", `{"access_token":"t","access_token":"u","token_type":"Bearer"}`, 200, `the token endpoint of "{}": the response is not the expected JSON`},
		{"an error with status 200", `{"error":"invalid_grant"}`, 200, `the authorization server "{}" refused with HTTP status 200: "invalid_grant"`},
		{"an error in HTML", `<html>`, 400, `the authorization server "{}" refused with HTTP status 400`},
		{"a terminal's commands", `{"error":"x\u001b[2J"}`, 400, `the authorization server "{}" refused with HTTP status 400: "x\x1b[2J"`},
		{"too much", `"` + strings.Repeat("x", 1<<20) + `"`, 200, `the token endpoint of "{}": the response is larger than 1048576 bytes`},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newAuthority(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			})
			_, _, err := a.token(t, &oauthclient.ClientCredentials{Credentials: oauthclient.Credentials{Issuer: a.URL, ClientID: "me", ClientSecret: leaked}}, oauthclient.Options{})
			require.EqualError(t, err, "oauthclient: "+strings.ReplaceAll(test.err, "{}", a.URL))
		})
	}
}
