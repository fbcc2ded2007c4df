package oauthclient_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
)

// An authority responds to token requests as the test wants, and records them.
type authority struct {
	*httptest.Server
	answer func(w http.ResponseWriter, r *http.Request)
	forms  []url.Values
	basic  string
}

func newAuthority(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) *authority {
	a := &authority{answer: answer}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/oauth-protected-resource":
			reply(w, `{"resource":%q,"authorization_servers":[%q],"scopes_supported":["a","b"]}`, a.URL, a.URL)
		case "/.well-known/openid-configuration":
			reply(w, `{"issuer":%q,"token_endpoint":%q}`, a.URL, a.URL+"/token")
		case "/token":
			_ = r.ParseForm()
			a.forms = append(a.forms, r.PostForm)
			id, secret, _ := r.BasicAuth()
			a.basic = id + ":" + secret
			a.answer(w, r)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *authority) token(t *testing.T, g oauthclient.Grant, opts oauthclient.Options) (*oauthclient.Transport, *oauthclient.Token, error) {
	opts.InsecureLoopback = true
	tr, err := oauthclient.New(a.URL+"/mcp", g, &opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tr.Close()) })
	tok, err := tr.Token(t.Context())
	return tr, tok, err
}

func bearer(w http.ResponseWriter, _ *http.Request) {
	reply(w, `{"access_token":"t","token_type":"Bearer","expires_in":3600}`)
}

func TestClientCredentialsByBasic(t *testing.T) {
	a := newAuthority(t, bearer)
	_, tok, err := a.token(t, &oauthclient.ClientCredentials{Credentials: oauthclient.Credentials{Issuer: a.URL, ClientID: "a b", ClientSecret: "c:d"}}, oauthclient.Options{})
	require.NoError(t, err)
	require.Equal(t, "t", tok.AccessToken)
	require.Equal(t, "a+b:c%3Ad", a.basic, "both are form-encoded")
	require.Equal(t, []url.Values{{"grant_type": {"client_credentials"}, "resource": {a.URL}, "scope": {"a b"}}}, a.forms)
}

func TestAssertionsAreForOneRequestToTheIssuer(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	a := newAuthority(t, bearer)
	robot := oauthclient.Credentials{Issuer: a.URL, ClientID: "robot", Key: key, KeyID: "1"}
	ids := map[string]bool{}
	for i := range 2 {
		_, _, err = a.token(t, &oauthclient.ClientCredentials{Credentials: robot}, oauthclient.Options{})
		require.NoError(t, err)
		require.Equal(t, "urn:ietf:params:oauth:client-assertion-type:jwt-bearer", a.forms[i].Get("client_assertion_type"))
		require.Empty(t, a.forms[i].Get("client_id"))
		assertion, err := jwt.ParseSigned(a.forms[i].Get("client_assertion"), []jose.SignatureAlgorithm{jose.ES256})
		require.NoError(t, err)
		require.Equal(t, "1", assertion.Headers[0].KeyID)
		var c jwt.Claims
		require.NoError(t, assertion.Claims(key.Public(), &c))
		require.Equal(t, []any{"robot", "robot", jwt.Audience{a.URL}}, []any{c.Issuer, c.Subject, c.Audience})
		require.WithinDuration(t, time.Now().Add(time.Minute), c.Expiry.Time(), 30*time.Second)
		ids[c.ID] = true
	}
	require.Len(t, ids, 2)
}

func TestLifetimesMayBeText(t *testing.T) {
	for lifetime, want := range map[string]time.Duration{`3600`: time.Hour, `"3600"`: time.Hour, `null`: 0, `1e400`: 10 * 365 * 24 * time.Hour} {
		a := newAuthority(t, func(w http.ResponseWriter, _ *http.Request) {
			reply(w, `{"access_token":"t","token_type":"Bearer","expires_in":%s}`, lifetime)
		})
		_, tok, err := a.token(t, &oauthclient.ClientCredentials{Credentials: oauthclient.Credentials{Issuer: a.URL, ClientID: "me", ClientSecret: "secret"}}, oauthclient.Options{})
		require.NoError(t, err, lifetime)
		if want == 0 {
			require.Zero(t, tok.Expires)
			continue
		}
		require.WithinDuration(t, time.Now().Add(want), tok.Expires, time.Minute, lifetime)
	}
}

func TestCredentialsAreSentToTheirIssuerOnly(t *testing.T) {
	a := newAuthority(t, bearer)
	_, _, err := a.token(t, &oauthclient.ClientCredentials{Credentials: oauthclient.Credentials{Issuer: "https://as.example", ClientID: "me", ClientSecret: leaked}}, oauthclient.Options{})
	require.EqualError(t, err, fmt.Sprintf(`oauthclient: the client is known to ["https://as.example"]; the resource accepts tokens of [%q]`, a.URL))
	require.Empty(t, a.forms)
}

func TestUnboundTokensAreRejectedWithDPoP(t *testing.T) {
	prover, err := oauthclient.NewProver(nil)
	require.NoError(t, err)
	a := newAuthority(t, bearer)
	_, _, err = a.token(t, &oauthclient.ClientCredentials{Credentials: oauthclient.Credentials{Issuer: a.URL, ClientID: "me", ClientSecret: leaked}}, oauthclient.Options{DPoP: prover})
	require.EqualError(t, err, fmt.Sprintf(`oauthclient: the authorization server %q returned a token of type "Bearer" instead of DPoP`, a.URL))
}

func TestTokenRequestsAreNotRedirected(t *testing.T) {
	var a *authority
	a = newAuthority(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, a.URL+"/token", http.StatusTemporaryRedirect)
	})
	_, _, err := a.token(t, &oauthclient.ClientCredentials{Credentials: oauthclient.Credentials{Issuer: a.URL, ClientID: "me", ClientSecret: leaked}}, oauthclient.Options{})
	refusal, ok := errors.AsType[*oauthclient.GrantError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, http.StatusTemporaryRedirect, refusal.Status)
	require.Len(t, a.forms, 1)
	require.NotContains(t, err.Error(), leaked)
}

// An HTTP/2 connection does not fail with a net.Error.
func TestBrokenConnectionsAreRetried(t *testing.T) {
	as := oauthtest.New(t, nil)
	s := protect(t, as, nil)
	lost := errors.New("http2: client connection lost")
	fetch := &broken{paths: []string{"/register", "/token"}, err: lost, next: as.Client().Transport}
	tr := connect(t, s.url, new(user).grant(), oauthclient.Options{Fetch: fetch})
	for range 2 {
		_, _, err := post(t, tr, s.url)
		require.ErrorIs(t, err, lost)
	}
	require.Equal(t, "user may read", says(t, tr, s.url))
}

// A broken transport fails the first request for each path.
type broken struct {
	mu    sync.Mutex
	paths []string // guarded by mu
	err   error
	next  http.RoundTripper
}

func (b *broken) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.paths, r.URL.Path); i >= 0 {
		b.paths = slices.Delete(b.paths, i, i+1)
		return nil, b.err
	}
	return b.next.RoundTrip(r)
}
