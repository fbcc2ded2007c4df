package oauthclient_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
)

// challenger is a TLS server that only sends challenges.
func challenger(t *testing.T, challenge func(self string) string) (*httptest.Server, *http.Transport) {
	var s *httptest.Server
	s = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", challenge(s.URL))
		w.WriteHeader(http.StatusUnauthorized)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // the test provokes handshake errors
	s.StartTLS()
	t.Cleanup(s.Close)
	base := s.Client().Transport.(*http.Transport).Clone()
	t.Cleanup(base.CloseIdleConnections)
	return s, base
}

func TestChallengesCannotNamePrivateAddresses(t *testing.T) {
	for _, test := range []struct{ name, metadata, err string }{
		{"a private network", "https://10.1.2.3/prm", "the address 10.1.2.3 is not public"},
		{"no TLS", "http://as.example/prm", `"http://as.example/prm" is not encrypted; use https`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, base := challenger(t, func(string) string { return fmt.Sprintf(`Bearer resource_metadata=%q`, test.metadata) })
			tr, err := oauthclient.New(s.URL, new(user).grant(), &oauthclient.Options{Base: base})
			require.NoError(t, err)
			defer tr.Close()
			_, _, err = post(t, tr, s.URL)
			require.EqualError(t, err, "oauthclient: resource metadata: "+test.err)
		})
	}
}

func TestLoginOverTLS(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	issuer := "https://" + ln.Addr().String()
	as, err := oauthtest.NewHandler(issuer, nil)
	require.NoError(t, err)
	t.Cleanup(as.Close)
	authority := &httptest.Server{Listener: ln, Config: &http.Server{Handler: as, ErrorLog: log.New(io.Discard, "", 0)}}
	authority.StartTLS()
	t.Cleanup(authority.Close)

	s := protect(t, as, nil)
	trust := authority.Client().Transport.(*http.Transport).TLSClientConfig
	// The user's browser trusts the server, too.
	g := visiting(func(ctx context.Context, page string) (url.Values, error) { return visitOver(ctx, trust, page) })
	tr := connect(t, s.url, g, oauthclient.Options{TLS: trust})
	_, err = tr.Token(t.Context())
	require.NoError(t, err)

	tr = connect(t, s.url, g, oauthclient.Options{})
	_, err = tr.Token(t.Context())
	require.ErrorContains(t, err, "certificate")
}

func visitOver(ctx context.Context, trust *tls.Config, page string) (url.Values, error) {
	c := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: trust, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	back, err := resp.Location()
	if err != nil {
		return nil, err
	}
	return back.Query(), nil
}

// The proxy dials, but the rules for URLs still apply.
func TestFetchMayUseAProxy(t *testing.T) {
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path)
		r.RequestURI = ""
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}))
	defer proxy.Close()
	where, err := url.Parse(proxy.URL)
	require.NoError(t, err)
	fetch := &http.Transport{Proxy: http.ProxyURL(where)}
	defer fetch.CloseIdleConnections()

	as := oauthtest.New(t, nil)
	s := protect(t, as, nil)
	require.Equal(t, "user may read", says(t, connect(t, s.url, new(user).grant(), oauthclient.Options{Fetch: fetch}), s.url))
	require.Equal(t, []string{"GET /.well-known/oauth-protected-resource/mcp", "GET /.well-known/oauth-authorization-server", "POST /register", "POST /token"}, asked)

	challenging, base := challenger(t, func(string) string { return `Bearer resource_metadata="https://10.1.2.3/prm"` })
	tr, err := oauthclient.New(challenging.URL, new(user).grant(), &oauthclient.Options{Base: base, Fetch: fetch})
	require.NoError(t, err)
	defer tr.Close()
	_, _, err = post(t, tr, challenging.URL)
	require.EqualError(t, err, "oauthclient: resource metadata: the address 10.1.2.3 is not public")
}

func TestEndpointsCannotBePrivateAddresses(t *testing.T) {
	for _, test := range []struct{ name, member, value, err string }{
		{"token", "token_endpoint", "https://192.168.0.1/token", `the token_endpoint of the authorization server "{}": the address 192.168.0.1 is not public`},
		{"no token endpoint", "token_endpoint", "", `the token_endpoint of the authorization server "{}": "" is not an absolute https URL`},
		{"registration", "registration_endpoint", "ftp://as.example/register",
			`the registration_endpoint of the authorization server "{}": "ftp://as.example/register" is not an absolute https URL`},
		{"page", "authorization_endpoint", "vbscript:x", `the authorization_endpoint of the authorization server "{}": "vbscript:x" is not an absolute https URL`},
		{"no page", "authorization_endpoint", "", `the authorization server "{}" has no authorization endpoint`},
		{"nobody registers", "registration_endpoint", "",
			`the authorization server "{}" does not know the client and has no dynamic registration; register it there by hand and put it into AuthorizationCode.Known`},
	} {
		t.Run(test.name, func(t *testing.T) {
			as := oauthtest.New(t, &oauthtest.Options{Metadata: func(m map[string]any) { m[test.member] = test.value }})
			s := protect(t, as, nil)
			u := new(user)
			_, _, err := post(t, connect(t, s.url, u.grant(), oauthclient.Options{}), s.url)
			require.EqualError(t, err, "oauthclient: "+strings.ReplaceAll(test.err, "{}", as.Issuer))
			require.Empty(t, u.logins())
		})
	}
}

func TestLoopbackRejectsOtherRequests(t *testing.T) {
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func(method, target, host string) (int, string, http.Header) {
		req, err := http.NewRequestWithContext(t.Context(), method, target, nil)
		require.NoError(t, err)
		if host != "" {
			req.Host = host
		}
		resp, err := c.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(b), resp.Header
	}
	var redirect string
	login, err := oauthclient.Loopback(&oauthclient.LoopbackOptions{Open: func(context.Context, string) error {
		for _, test := range []struct {
			method, target, host string
			status               int
			body                 string
		}{
			{"GET", redirect + "?state=evil&code=evil", "evil.example", 404, "There is nothing here.\n"},
			{"GET", strings.Replace(redirect, "/callback", "/other", 1) + "?state=evil", "", 404, "There is nothing here.\n"},
			{"POST", redirect + "?state=evil&code=evil", "", 405, "Only GET.\n"},
			{"GET", redirect, "", 400, "This is not the response to a login.\n"},
			{"GET", redirect + "?state=evil&code=evil", "", 400, "This is not the response to a login.\n"},
			{"GET", redirect + "?state=&code=evil", "", 400, "This is not the response to a login.\n"},
			{"GET", redirect + "?state=evil&error=access_denied", "", 400, "This is not the response to a login.\n"},
			{"GET", redirect + "?state=<script>&state=evil&code=evil", "", 400, "This is not the response to a login.\n"},
			{"GET", redirect + "?state=<script>&code=1", "", 200, "<!doctype html><title>Login</title><p>You can close this page and go back to the program."},
			{"GET", redirect + "?state=<script>&code=2", "", 200, "<!doctype html><title>Login</title><p>You can close this page and go back to the program."},
		} {
			status, body, header := ask(test.method, test.target, test.host)
			require.Equal(t, test.status, status)
			require.Equal(t, test.body, body)
			require.Equal(t, "no-store", header.Get("Cache-Control"))
			require.Equal(t, "no-referrer", header.Get("Referrer-Policy"))
			require.Equal(t, "default-src 'none'; frame-ancestors 'none'", header.Get("Content-Security-Policy"))
		}
		return nil
	}})(t.Context(), oauthclient.LoginRequest{})
	require.NoError(t, err)
	redirect = login.RedirectURI
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/callback$`, redirect)
	status, _, _ := ask("GET", redirect+"?state=<script>&code=early", "")
	require.Equal(t, http.StatusBadRequest, status, "the login has not begun")
	q, err := login.Visit(t.Context(), "https://as.example/authorize?state=%3Cscript%3E")
	require.NoError(t, err)
	require.Equal(t, url.Values{"state": {"<script>"}, "code": {"1"}}, q)
	login.Close()
	resp, err := c.Get(redirect)
	if err == nil {
		resp.Body.Close()
	}
	require.Error(t, err, "the listener is closed")
}

// A changed redirect URI would need another registration.
func TestLoopbackReusesThePortOfARegistration(t *testing.T) {
	browser := oauthclient.Loopback(nil)
	login := func(registered string) *oauthclient.Login {
		v, err := browser(t.Context(), oauthclient.LoginRequest{RedirectURI: registered})
		require.NoError(t, err)
		return v
	}
	first := login("")
	meanwhile := login(first.RedirectURI)
	require.NotEqual(t, first.RedirectURI, meanwhile.RedirectURI, "concurrent logins use different ports")
	first.Close()
	meanwhile.Close()
	before := meanwhile.RedirectURI
	for range 10 { // another program may take the port
		again := login(before)
		again.Close()
		if again.RedirectURI == before {
			return
		}
		before = again.RedirectURI
	}
	t.Fatal("it moved each time")
}

func TestLoopbackReportsErrors(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	port := ln.Addr().(*net.TCPAddr).Port
	_, err = oauthclient.Loopback(&oauthclient.LoopbackOptions{Port: port})(t.Context(), oauthclient.LoginRequest{})
	require.ErrorContains(t, err, fmt.Sprintf("listen tcp 127.0.0.1:%d: bind", port))

	login, err := oauthclient.Loopback(&oauthclient.LoopbackOptions{Open: func(context.Context, string) error { return fmt.Errorf("no screen") }})(t.Context(), oauthclient.LoginRequest{})
	require.NoError(t, err)
	defer login.Close()
	_, err = login.Visit(t.Context(), "https://as.example/authorize?state=s")
	require.EqualError(t, err, "the browser: no screen")
	_, err = login.Visit(t.Context(), "https://as.example/authorize")
	require.EqualError(t, err, "the page of the authorization server has no state")
}

func TestIncompleteGrantsAreErrors(t *testing.T) {
	browser := oauthclient.Loopback(nil)
	me := oauthclient.Credentials{ClientID: "me", ClientSecret: leaked}
	assertion := func(context.Context, oauthclient.Audience) (string, error) { return leaked, nil }
	subject := func(context.Context) (string, string, error) { return leaked, oauthclient.TokenTypeID, nil }
	const hint = "; without it, any MCP server could name an authorization server of its own and be sent the secret"
	const server = "https://mcp.example/mcp"
	for _, test := range []struct {
		server string
		grant  oauthclient.Grant
		err    string
	}{
		{"http://mcp.example/mcp", nil, `tokens to "http://mcp.example/mcp" would be sent unencrypted; use https`},
		{"/mcp", nil, `the server must be an absolute URL without user and fragment, not "/mcp"`},
		{server, nil, "New needs a grant, for example *AuthorizationCode"},
		{server, &oauthclient.AuthorizationCode{Name: "x"}, "AuthorizationCode needs a Browser, for example Loopback(nil)"},
		{server, &oauthclient.AuthorizationCode{Browser: browser}, "AuthorizationCode needs Known, a MetadataURL or a Name"},
		{server, &oauthclient.AuthorizationCode{Browser: browser, Known: []oauthclient.Credentials{me}}, "each of AuthorizationCode.Known needs an Issuer and a ClientID"},
		{server, &oauthclient.AuthorizationCode{Browser: browser, MetadataURL: "http://app.example/x"}, `the MetadataURL "http://app.example/x" must be https and have a path`},
		{server, &oauthclient.AuthorizationCode{Browser: browser, MetadataURL: "https://app.example/"}, `the MetadataURL "https://app.example/" must be https and have a path`},
		{server, &oauthclient.ClientCredentials{Credentials: oauthclient.Credentials{Issuer: "https://as.example", ClientID: "x"}}, "ClientCredentials needs a ClientID, and a Key or a ClientSecret"},
		{server, &oauthclient.ClientCredentials{Credentials: me}, "ClientCredentials needs Credentials.Issuer" + hint},
		{server, &oauthclient.EnterpriseManaged{}, "EnterpriseManaged needs a ClientID at both servers, a ProviderTokenEndpoint and a Subject"},
		{server, &oauthclient.EnterpriseManaged{Credentials: me, Provider: me, ProviderTokenEndpoint: "https://idp.example/token", Subject: subject}, "EnterpriseManaged needs Credentials.Issuer" + hint},
		{server, &oauthclient.WorkloadIdentity{}, "WorkloadIdentity needs an Assertion"},
		{server, &oauthclient.WorkloadIdentity{Assertion: assertion}, "WorkloadIdentity needs an Issuer" + hint},
	} {
		_, err := oauthclient.New(test.server, test.grant, nil)
		require.EqualError(t, err, "oauthclient: "+test.err)
	}
}

// A silent authorization server does not send iss in its responses.
func silent(t *testing.T, b *book) *oauthtest.Server {
	return oauthtest.New(t, &oauthtest.Options{Wrap: b.wrap, Metadata: func(m map[string]any) { m["authorization_response_iss_parameter_supported"] = false }})
}

// Without iss in the responses, only the redirect URI identifies the issuer (RFC 9700, section
// 4.4.2.2).
func TestIssuersWithoutISSHaveSeparateRedirectURIs(t *testing.T) {
	paths := make(map[string]bool)
	store := oauthclient.NewMemoryStore()
	g := &oauthclient.AuthorizationCode{Name: "test", Browser: oauthclient.Loopback(&oauthclient.LoopbackOptions{Open: oauthtest.Open})}
	for range 2 {
		var b book
		as := silent(t, &b)
		s := protect(t, as, nil)
		for range 2 {
			tr := connect(t, s.url, g, oauthclient.Options{Store: store})
			require.Equal(t, "user may read", says(t, tr, s.url))
			require.NoError(t, tr.Logout(t.Context()))
		}
		asked := b.at("/authorize")
		require.Len(t, asked, 2)
		for _, r := range asked {
			u, err := url.Parse(r.query.Get("redirect_uri"))
			require.NoError(t, err)
			paths[u.Path] = true
		}
	}
	require.Len(t, paths, 2, "one for each issuer: %v", paths)
}

func TestRedirectURIIsBoundToOneIssuerWithoutISS(t *testing.T) {
	store, u := oauthclient.NewMemoryStore(), new(user)
	var first, second book
	honest, other := silent(t, &first), silent(t, &second)
	s := protect(t, honest, nil)
	require.Equal(t, "user may read", says(t, connect(t, s.url, u.grant(), oauthclient.Options{Store: store}), s.url))
	s = protect(t, other, nil)
	_, _, err := post(t, connect(t, s.url, u.grant(), oauthclient.Options{Store: store}), s.url)
	require.EqualError(t, err, fmt.Sprintf("oauthclient: the redirect URI %q is in use for the authorization server %q, and the responses of %q "+
		"do not name it (RFC 9207); use another redirect URI for it", "http://127.0.0.1/callback", honest.Issuer, other.Issuer))
	require.Empty(t, second.at("/authorize"))

	named := oauthtest.New(t, nil)
	s = protect(t, named, nil)
	require.Equal(t, "user may read", says(t, connect(t, s.url, u.grant(), oauthclient.Options{Store: store}), s.url), "issuers that send iss may share a redirect URI")
}

// A flakyStore fails to save and to load on demand.
type flakyStore struct {
	oauthclient.Store
	broken, unreadable atomic.Bool
}

func (s *flakyStore) Load(ctx context.Context, key oauthclient.Key) (*oauthclient.Record, error) {
	if s.unreadable.Load() {
		return nil, errors.New("the disk is gone")
	}
	return s.Store.Load(ctx, key)
}

func (s *flakyStore) Save(ctx context.Context, key oauthclient.Key, r *oauthclient.Record) error {
	if s.broken.Load() {
		return errors.New("the disk is full")
	}
	return s.Store.Save(ctx, key, r)
}

func TestFailedSaveKeepsTheTokenInUse(t *testing.T) {
	var b book
	as := oauthtest.New(t, &oauthtest.Options{Clients: []oauthtest.Client{guardian}, Wrap: b.wrap})
	s := protect(t, as, introspected(as))
	u, store := new(user), &flakyStore{Store: oauthclient.NewMemoryStore()}
	refreshes := func() (n int) {
		for _, r := range b.at("/token") {
			if r.form.Get("grant_type") == "refresh_token" {
				n++
			}
		}
		return n
	}
	var log strings.Builder
	tr := connect(t, s.url, u.grant(), oauthclient.Options{Store: store, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	store.broken.Store(true)
	require.Equal(t, "user may read", says(t, tr, s.url))
	const failed = `msg="oauthclient: the store failed to keep a token or a registration" issuer=%s resource=%s error="the disk is full"`
	require.Contains(t, log.String(), fmt.Sprintf(failed, as.Issuer, s.url))
	require.Contains(t, log.String(), fmt.Sprintf(failed, as.Issuer, `""`))
	spoil(t, as, tr)
	require.Equal(t, "user may read", says(t, tr, s.url))
	require.Equal(t, 1, refreshes())

	store.broken.Store(false)
	spoil(t, as, tr)
	require.Equal(t, "user may read", says(t, tr, s.url))
	require.Equal(t, 2, refreshes())

	store.broken.Store(true)
	for i := range 3 { // the store has an old refresh token
		spoil(t, as, tr)
		require.Equal(t, "user may read", says(t, tr, s.url))
		require.Equal(t, 3+i, refreshes())
	}
	require.Len(t, u.logins(), 1)
	require.Len(t, b.at("/register"), 1)
	require.NoError(t, tr.Logout(t.Context()))
	require.Equal(t, "user may read", says(t, tr, s.url), "a later login is accepted")
}

// The authorization server treats a refresh token that is used twice as stolen.
func TestProgramsWithASharedFolderRefreshOnce(t *testing.T) {
	var b book
	as := oauthtest.New(t, &oauthtest.Options{Clients: []oauthtest.Client{guardian}, Wrap: b.wrap})
	s := protect(t, as, introspected(as))
	u, dir := new(user), t.TempDir()
	var all []*oauthclient.Transport
	for range 8 {
		store, err := oauthclient.NewFileStore(dir)
		require.NoError(t, err)
		tr := connect(t, s.url, u.grant(), oauthclient.Options{Store: store})
		require.Equal(t, "user may read", says(t, tr, s.url))
		all = append(all, tr)
	}
	require.Len(t, u.logins(), 1)
	for round := range 4 {
		spoil(t, as, all[0])
		var wg sync.WaitGroup
		for _, tr := range all {
			wg.Go(func() {
				if status, body, err := post(t, tr, s.url); err != nil || status != http.StatusOK {
					t.Errorf("got %d %q, %v", status, body, err)
				}
			})
		}
		wg.Wait()
		require.Len(t, b.at("/token"), 2+round, "one code, and one refresh in each round")
	}
	require.Len(t, u.logins(), 1)
}
