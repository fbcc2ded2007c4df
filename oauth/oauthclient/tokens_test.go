package oauthclient_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
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

func TestExpiringTokensAreRefreshedFirst(t *testing.T) {
	var b book
	as := oauthtest.New(t, &oauthtest.Options{Lifetime: 9 * time.Second, Wrap: b.wrap})
	s, u, tr := visited(t, as, nil)
	for range 3 {
		require.Equal(t, "user may read", says(t, tr, s.url))
	}
	require.Len(t, u.logins(), 1)
	require.Len(t, b.at("/token"), 3, "the code, and one refresh for each request that found an old token")
	refused := 0
	for _, r := range s.at("/mcp") {
		if r.header.Get("Authorization") == "" {
			refused++
		}
	}
	require.Equal(t, 1, refused, "the first request had no token")
	_, err := tr.Token(t.Context())
	require.EqualError(t, err, "oauthclient: the authorization server issues tokens that have already expired")
}

func TestOtherErrorResponsesArePassedOn(t *testing.T) {
	as := oauthtest.New(t, nil)
	s, u, tr := visited(t, as, func(o *resource.Options) { o.Policies = []resource.Policy{resource.RequireClaim("groups", "nobody")} })
	status, _, err := post(t, tr, s.url)
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, status)
	require.Len(t, u.logins(), 1, "a login would not help")

	// The body cannot be sent again.
	u = new(user)
	tr = connect(t, s.url, u.grant(), oauthclient.Options{})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, io.MultiReader(strings.NewReader("once")))
	require.NoError(t, err)
	resp, err := tr.RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	require.Empty(t, u.logins())

	// A request with its own token is unchanged.
	req, err = http.NewRequestWithContext(t.Context(), http.MethodGet, s.url, nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer mine")
	resp, err = tr.RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	require.Empty(t, u.logins())
}

func TestChallengesForScopes(t *testing.T) {
	for _, test := range []struct {
		challenge string
		logins    []string
	}{
		{`Bearer error="insufficient_scope", scope="write"`, []string{"read", "read write"}},
		{`bearer scope="write"`, []string{"read", "read write"}},
		{`Basic realm="x", Bearer error="insufficient_scope", scope="write"`, []string{"read", "read write"}},
		{`Bearer error="invalid_token", scope="write"`, []string{"read"}},
		{`Bearer`, []string{"read"}},
		{`Basic realm="x"`, []string{"read"}},
		{``, []string{"read"}},
	} {
		t.Run(test.challenge, func(t *testing.T) {
			as := oauthtest.New(t, nil)
			refused := false
			s := protect(t, as, nil)
			inner := s.Config.Handler
			s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/mcp" && r.Header.Get("Authorization") != "" && !refused {
					refused = true
					w.Header().Set("WWW-Authenticate", test.challenge)
					w.WriteHeader(http.StatusForbidden)
					return
				}
				inner.ServeHTTP(w, r)
			})
			u := new(user)
			status, _, err := post(t, connect(t, s.url, u.grant(), oauthclient.Options{}), s.url)
			require.NoError(t, err)
			require.Equal(t, test.logins, u.logins())
			require.Equal(t, map[int]int{1: http.StatusForbidden, 2: http.StatusOK}[len(test.logins)], status)
		})
	}
}

func TestExpiredRegistrationsAreRenewed(t *testing.T) {
	for name, test := range map[string]struct {
		ends time.Duration // expiry of the secret, from now; 0 means never
		want int
	}{"never": {0, 1}, "later": {time.Hour, 1}, "before": {-time.Hour, 2}} {
		t.Run(name, func(t *testing.T) {
			registered := 0
			var b book
			as := oauthtest.New(t, &oauthtest.Options{
				Clients: []oauthtest.Client{{ID: "given", Secret: leaked, RedirectURIs: []string{"http://127.0.0.1:1/callback"}}},
				Metadata: func(m map[string]any) {
					m["token_endpoint_auth_methods_supported"] = []string{"client_secret_post"}
				},
				Wrap: func(next http.Handler) http.Handler {
					return b.wrap(at("/register", func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
						registered++
						ends := int64(0)
						if test.ends != 0 {
							ends = time.Now().Add(test.ends).Unix()
						}
						w.WriteHeader(http.StatusCreated)
						reply(w, `{"client_id":"given","client_secret":%q,"client_secret_expires_at":%d}`, leaked, ends)
					})(next))
				},
			})
			s, u, tr := visited(t, as, nil)
			for range 2 {
				require.Equal(t, "user may read", says(t, tr, s.url))
				require.NoError(t, tr.Logout(t.Context()))
			}
			require.Equal(t, test.want, registered)
			require.Len(t, u.logins(), 2)
			require.Equal(t, leaked, b.at("/token")[0].form.Get("client_secret"), "the metadata of the server decides")
		})
	}
}

func TestUnsupportedCredentialsAreRejected(t *testing.T) {
	p521, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	require.NoError(t, err)
	p224, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	require.NoError(t, err)
	for _, test := range []struct {
		name   string
		c      oauthclient.Credentials
		change func(map[string]any)
		err    string
	}{
		{"no method with a secret is supported", oauthclient.Credentials{ClientSecret: leaked}, func(m map[string]any) {
			m["token_endpoint_auth_methods_supported"] = []string{"private_key_jwt"}
		},
			`the authorization server "{}" supports none of ["client_secret_basic" "client_secret_post"]; it supports ["private_key_jwt"]`},
		{"no method with a key is supported", oauthclient.Credentials{Key: p521}, func(m map[string]any) { m["token_endpoint_auth_methods_supported"] = []string{"none"} },
			`the authorization server "{}" supports none of ["private_key_jwt"]; it supports ["none"]`},
		{"another algorithm is supported", oauthclient.Credentials{Key: p521, AuthMethod: oauthclient.AuthPrivateKeyJWT}, func(m map[string]any) {
			m["token_endpoint_auth_signing_alg_values_supported"] = []string{"ES256"}
		}, `the client's key signs with ["ES512"]; the authorization server supports ["ES256"]`},
		{"an unsupported key", oauthclient.Credentials{Key: p224, AuthMethod: oauthclient.AuthPrivateKeyJWT}, nil, `the client's key must be an *ecdsa.PrivateKey on P-256, P-384 or P-521, an ed25519.PrivateKey, or an *rsa.PrivateKey of at least 2048 bits, not a *ecdsa.PrivateKey`},
		{"an unknown method", oauthclient.Credentials{ClientSecret: leaked, AuthMethod: "tls_client_auth"}, nil,
			`unknown client authentication method "tls_client_auth"; use one of ["none" "client_secret_basic" "client_secret_post" "private_key_jwt"]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			as := oauthtest.New(t, &oauthtest.Options{Metadata: test.change})
			s := protect(t, as, nil)
			test.c.Issuer, test.c.ClientID = as.Issuer, "robot"
			_, err := connect(t, s.url, &oauthclient.ClientCredentials{Credentials: test.c}, oauthclient.Options{}).Token(t.Context())
			require.EqualError(t, err, "oauthclient: "+strings.ReplaceAll(test.err, "{}", as.Issuer))
		})
	}
}

func TestFilesOfTheStore(t *testing.T) {
	dir := t.TempDir()
	store, err := oauthclient.NewFileStore(dir)
	require.NoError(t, err)
	key := oauthclient.Key{Issuer: "https://as.example", Resource: "https://mcp.example/mcp"}
	file := func() string {
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, files, 1, "no temporary file is left")
		return filepath.Join(dir, files[0].Name())
	}
	load := func() (*oauthclient.Record, error) { return store.Load(t.Context(), key) }

	r, err := load()
	require.NoError(t, err)
	require.Nil(t, r)
	require.NoError(t, store.Delete(t.Context(), key), "there is no token to remove")

	want := &oauthclient.Record{
		Client: &oauthclient.Credentials{Issuer: "https://as.example", ClientID: "me", ClientSecret: "s"},
		Token:  &oauthclient.Token{AccessToken: "t", Type: "Bearer", Issuer: key.Issuer, Resource: key.Resource, Expires: time.Unix(1e9, 0).UTC()},
	}
	// Concurrent writers. A reader always gets a complete token.
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := store.Save(t.Context(), key, want); err != nil {
				t.Error(err)
			}
			if r, err := load(); err != nil || r.Token.AccessToken != "t" {
				t.Errorf("got %v, %v", r, err)
			}
		})
	}
	wg.Wait()
	r, err = load()
	require.NoError(t, err)
	require.Equal(t, want, r)

	other := oauthclient.Key{Issuer: "https://as.example", Resource: "https://mcp.example/other"}
	r, err = store.Load(t.Context(), other)
	require.NoError(t, err)
	require.Nil(t, r)

	name := file()
	for _, broken := range []string{"", "{", `{"key":{"Issuer":"https://evil.example"}}`} {
		require.NoError(t, os.WriteFile(name, []byte(broken), 0o600))
		_, err = load()
		require.EqualError(t, err, fmt.Sprintf(`oauthclient: %s is not a record of "https://as.example"; remove it`, name))
	}
	require.NoError(t, store.Save(t.Context(), key, want), "a broken file is replaced")
	require.NoError(t, os.Rename(name, name+".elsewhere"))
	require.NoError(t, os.Symlink(name+".elsewhere", name))
	_, err = load()
	require.ErrorContains(t, err, "it must be a file that only the user may read", "links are not followed")
	require.NoError(t, store.Delete(t.Context(), key))
	require.FileExists(t, name+".elsewhere", "the target of the link is unchanged")

	_, err = oauthclient.NewFileStore(filepath.Join(name+".elsewhere", "below"))
	require.ErrorContains(t, err, "not a directory")
}

func TestSecretsAreNotLogged(t *testing.T) {
	var b strings.Builder
	log := slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))
	tok := &oauthclient.Token{AccessToken: leaked, RefreshToken: leaked, Type: "Bearer", Issuer: "https://as.example", Resource: "https://mcp.example/mcp"}
	c := &oauthclient.Credentials{ClientID: "me", ClientSecret: leaked, Issuer: "https://as.example"}
	log.Info("got", "token", tok, "value", *tok, "client", c, "credentials", *c)
	require.NotContains(t, b.String(), leaked)
	require.Contains(t, b.String(), `Bearer token of \"https://as.example\" for \"https://mcp.example/mcp\"`)
	require.Contains(t, b.String(), `client \"me\" of \"https://as.example\"`)
}

func TestUnreadableStoreIsRetried(t *testing.T) {
	as := oauthtest.New(t, nil)
	s := protect(t, as, nil)
	store := &flakyStore{Store: oauthclient.NewMemoryStore()}
	store.unreadable.Store(true)
	tr := connect(t, s.url, new(user).grant(), oauthclient.Options{Store: store})
	for range 2 {
		_, _, err := post(t, tr, s.url)
		require.EqualError(t, err, "oauthclient: the disk is gone")
	}
	store.unreadable.Store(false)
	require.Equal(t, "user may read", says(t, tr, s.url))
}
