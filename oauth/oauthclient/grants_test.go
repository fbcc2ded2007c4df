package oauthclient_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth/internal/dpop"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
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

func TestProofsOfEveryKindOfKey(t *testing.T) {
	ec := func(curve elliptic.Curve) crypto.Signer {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		require.NoError(t, err)
		return key
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	v := dpop.NewVerifier(dpop.NewReplays(dpop.MaxReplays))
	for alg, key := range map[string]crypto.Signer{
		"ES256": ec(elliptic.P256()), "ES384": ec(elliptic.P384()), "ES512": ec(elliptic.P521()), "EdDSA": ed, "PS256": rs, "a new key": nil,
	} {
		t.Run(alg, func(t *testing.T) {
			p, err := oauthclient.NewProver(key)
			require.NoError(t, err)
			if key != nil {
				want, err := (&jose.JSONWebKey{Key: key.Public()}).Thumbprint(crypto.SHA256)
				require.NoError(t, err)
				require.Equal(t, base64.RawURLEncoding.EncodeToString(want), p.Thumbprint())
			}
			for range 2 { // each proof is for one request
				text, err := p.Proof("POST", "https://mcp.example.com/mcp?q=1#f", "token", "")
				require.NoError(t, err)
				_, err = v.Verify(t.Context(), text, dpop.Request{Verb: "POST", URL: "https://mcp.example.com/mcp", Token: "token", Thumbprint: p.Thumbprint()})
				require.NoError(t, err)
			}
		})
	}
	_, err = oauthclient.NewProver(ec(elliptic.P224()))
	require.EqualError(t, err, "oauthclient: the key must be an *ecdsa.PrivateKey on P-256, P-384 or P-521, an ed25519.PrivateKey, or an *rsa.PrivateKey of at least 2048 bits, not a *ecdsa.PrivateKey")
}

func TestProofContainsNoPrivateKeyAndNoQuery(t *testing.T) {
	text, err := prover(t).Proof("POST", "https://u:hush@mcp.example.com/mcp?hush#hush", "very-secret-token", "n")
	require.NoError(t, err)
	parts := strings.Split(text, ".")
	header, err := base64.RawURLEncoding.DecodeString(parts[0])
	require.NoError(t, err)
	require.NotContains(t, string(header), `"d"`)
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	require.NoError(t, err)
	require.NotContains(t, string(payload), "hush")
	require.NotContains(t, string(payload), "very-secret-token")
	require.Contains(t, string(payload), `"htu":"https://mcp.example.com/mcp"`)
	require.Contains(t, string(payload), `"nonce":"n"`)
}

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
