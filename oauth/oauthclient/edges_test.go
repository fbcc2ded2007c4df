package oauthclient_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
)

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
