package oauthclient_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
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
