package httpserve

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth"
)

// request has come to a loopback address unless local says another.
func request(local, host string, origins ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Host = host
	if origins != nil {
		r.Header["Origin"] = origins
	}
	addr := net.TCPAddr{IP: net.ParseIP(local)}
	ctx := context.WithValue(r.Context(), http.LocalAddrContextKey, &addr)
	return r.WithContext(ctx)
}

func TestRefuse(t *testing.T) {
	for _, test := range []struct {
		name    string
		rules   Guard
		local   string
		host    string
		origins []string
		want    string
	}{
		{name: "no browser", host: "localhost:80"},
		{name: "own page", local: "192.0.2.1", host: "mcp.example.com", origins: []string{"https://mcp.example.com"}},
		{name: "page of this machine", host: "127.0.0.1:1", origins: []string{"http://localhost:6274"}},
		{name: "page of this machine on a public server", local: "192.0.2.1", host: "mcp.example.com", origins: []string{"http://localhost"},
			want: `origin "http://localhost" is not allowed; name it in AllowedOrigins`},
		{name: "foreign page", host: "localhost", origins: []string{"https://evil.example.com"},
			want: `origin "https://evil.example.com" is not allowed; name it in AllowedOrigins`},
		{name: "look-alike page", host: "localhost", origins: []string{"http://localhost.evil.com"},
			want: `origin "http://localhost.evil.com" is not allowed; name it in AllowedOrigins`},
		{name: "two origins", host: "localhost", origins: []string{"http://localhost", "http://evil.com"}, want: "more than one Origin header field"},
		{name: "empty origin", host: "localhost", origins: []string{""}, want: `origin "" is not allowed; name it in AllowedOrigins`},
		{name: "rebound name", host: "evil.example.com",
			want: `host "evil.example.com" is not allowed; name it in AllowedHosts`},
		{name: "look-alike host", host: "127.0.0.1.nip.io:80",
			want: `host "127.0.0.1.nip.io:80" is not allowed; name it in AllowedHosts`},
		{name: "a long name", host: "é\n" + strings.Repeat("a", 99), want: `host "\u00e9\n` + strings.Repeat("a", 98) + `" is not allowed; name it in AllowedHosts`},
		{name: "no host", host: "", want: `host "" is not allowed; name it in AllowedHosts`},
		{name: "allowed host", rules: NewGuard(nil, []string{"MCP.test"}), host: "mcp.test:99"},
		{name: "any host off loopback", local: "172.17.0.2", host: "evil.example.com"},
		{name: "rebound name in a container", rules: NewGuard(nil, []string{"localhost"}), local: "172.17.0.2", host: "evil.example.com",
			want: `host "evil.example.com" is not allowed; name it in AllowedHosts`},
		{name: "published port of a container", rules: NewGuard(nil, []string{"localhost"}), local: "172.17.0.2", host: "127.0.0.1:8080"},
		{name: "allowed host off loopback", rules: NewGuard(nil, []string{"mcp.test"}), local: "192.0.2.1", host: "mcp.test"},
		{name: "all hosts off loopback", rules: NewGuard(nil, []string{"*"}), local: "192.0.2.1", host: "anything.test"},
		{name: "allowed origin", rules: NewGuard([]string{"https://App.test/"}, nil), host: "localhost", origins: []string{"https://app.test"}},
		{name: "all origins, not all hosts", rules: NewGuard([]string{"*"}, nil), host: "evil.com", origins: []string{"http://evil.com"},
			want: `host "evil.com" is not allowed; name it in AllowedHosts`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.local == "" {
				test.local = "127.0.0.1"
			}
			require.Equal(t, test.want, test.rules.Refuse(request(test.local, test.host, test.origins...)))
		})
	}
}

// A name with something behind it that only looks like a port is not that name.
func TestHostnamesHavePortsOfDigits(t *testing.T) {
	for host, want := range map[string]string{
		"localhost":                 "localhost",
		"localhost:":                "localhost",
		"localhost:8080":            "localhost",
		"[::1]:8080":                "::1",
		"[::1]":                     "::1",
		"localhost.":                "localhost.",
		"localhost:80@evil.example": "",
		"localhost:http":            "",
		"localhost:80/evil.example": "",
		"localhost:-1":              "",
		"user@localhost":            "",
		"localhost:80:80":           "",
		"[::1":                      "",
		"[::1]evil.example":         "",
		"":                          "",
	} {
		require.Equal(t, want, hostname(host), "%q", host)
	}
	for _, host := range []string{"localhost:80@evil.example", "localhost.", "localhost..", "127.0.0.1.", "127.1", "::1", "0.0.0.0", "[::]", "LOCALHOST.evil.example", "localhost%00.evil.example"} {
		require.NotEmpty(t, new(Guard).Refuse(request("127.0.0.1", host)), "%q", host)
	}
}

// FuzzOrigin asserts that no origin gets in but those of loopback hosts, whatever it is made to
// look like.
func FuzzOrigin(f *testing.F) {
	for _, origin := range []string{
		"http://localhost", "http://127.0.0.1:80", "http://[::1]", "null", "http://127.0.0.1.evil.com", "http://127.0.0.1@evil.com",
		"http://evil.com#@localhost", "http://evil.com\\@localhost", "http://localhost:80:80", "//localhost", "http://0x7f.1", "http://[::ffff:127.0.0.1]",
	} {
		f.Add(origin, "localhost:8080")
		f.Add(origin, "127.0.0.1")
	}
	rules := NewGuard(nil, nil)
	f.Fuzz(func(t *testing.T, origin, host string) {
		if !IsLoopback(hostname(host)) || !rules.originAllowed(origin, host) {
			return
		}
		u, err := url.Parse(origin)
		require.NoError(t, err)
		require.Equal(t, origin, u.Scheme+"://"+u.Host, "nothing but a scheme and a host")
		if u.Hostname() != "localhost" && !strings.EqualFold(u.Hostname(), "localhost") {
			ip := net.ParseIP(strings.Split(u.Hostname(), "%")[0])
			require.True(t, ip.IsLoopback(), "%q", origin)
		}
	})
}

func TestCORS(t *testing.T) {
	const page = "https://app.example.com"
	shared := http.Header{
		"Access-Control-Allow-Origin":   {page},
		"Access-Control-Expose-Headers": {"Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce, Retry-After"},
		"Vary":                          {"Origin"},
	}
	for _, test := range []struct {
		name     string
		method   string
		request  http.Header
		before   http.Header
		answered bool
		want     http.Header
	}{
		{name: "without an origin", method: "POST", want: http.Header{}},
		{name: "page", method: "POST", request: http.Header{"Origin": {page}}, want: shared},
		{name: "preflight", method: "OPTIONS", answered: true,
			request: http.Header{"Origin": {page}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"content-type,mcp-param-region"}},
			want: http.Header{
				"Access-Control-Allow-Origin":  {page},
				"Access-Control-Allow-Methods": {"POST, GET"},
				"Access-Control-Allow-Headers": {"content-type,mcp-param-region"},
				"Access-Control-Max-Age":       {"600"},
				"Vary":                         {"Origin", "Access-Control-Request-Headers"},
			}},
		{name: "preflight without header fields", method: "OPTIONS", answered: true,
			request: http.Header{"Origin": {page}, "Access-Control-Request-Method": {"GET"}},
			want: http.Header{
				"Access-Control-Allow-Origin":  {page},
				"Access-Control-Allow-Methods": {"POST, GET"},
				"Access-Control-Max-Age":       {"600"},
				"Vary":                         {"Origin"},
			}},
		{name: "OPTIONS that is not a preflight", method: "OPTIONS", request: http.Header{"Origin": {page}}, want: shared},
		{name: "behind a CORS middleware", method: "POST", request: http.Header{"Origin": {page}},
			before: http.Header{"Access-Control-Allow-Origin": {"*"}}, want: http.Header{
				"Access-Control-Allow-Origin":   {"*"},
				"Access-Control-Expose-Headers": {"Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce, Retry-After"}}},
		{name: "behind a CORS middleware that exposes other fields", method: "POST", request: http.Header{"Origin": {page}},
			before: http.Header{"Access-Control-Allow-Origin": {"*"}, "Access-Control-Expose-Headers": {"X-Request-Id"}}, want: http.Header{
				"Access-Control-Allow-Origin":   {"*"},
				"Access-Control-Expose-Headers": {"X-Request-Id", "Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce, Retry-After"}}},
		{name: "preflight answered in front", method: "OPTIONS", before: http.Header{"Access-Control-Allow-Origin": {"*"}},
			request: http.Header{"Origin": {page}, "Access-Control-Request-Method": {"POST"}}, want: http.Header{"Access-Control-Allow-Origin": {"*"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequest(test.method, "/", nil)
			r.Header = test.request
			w := httptest.NewRecorder()
			for name, values := range test.before {
				w.Header()[name] = values
			}
			require.Equal(t, test.answered, CORS(w, r, "POST", "GET"))
			require.Equal(t, test.want, w.Header())
			if test.answered {
				require.Equal(t, http.StatusNoContent, w.Code)
			}
		})
	}
}

func TestCaller(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, test := range []struct {
		name, remote, forwarded, want string
		trusted                       []netip.Prefix
		who                           *oauth.Principal
	}{
		{name: "principal", remote: "192.0.2.1:9", who: &oauth.Principal{Subject: "ann"}, want: "principal " + (&oauth.Principal{Subject: "ann"}).Key()},
		{name: "address", remote: "192.0.2.1:9", want: "address 192.0.2.1"},
		{name: "IPv4 in IPv6", remote: "[::ffff:192.0.2.1]:9", want: "address 192.0.2.1"},
		{name: "IPv6", remote: "[2001:db8:1:2:3:4:5:6]:9", want: "address 2001:db8:1:2::"},
		{name: "IPv6 with a zone", remote: "[fe80::1%eth0]:9", want: "address fe80::"},
		{name: "no network", remote: "@", want: "address @"},
		{name: "nobody is trusted", remote: "10.0.0.1:9", forwarded: "192.0.2.1", want: "address 10.0.0.1"},
		{name: "a proxy", remote: "10.0.0.1:9", forwarded: "192.0.2.1", trusted: trusted, want: "address 192.0.2.1"},
		{name: "a proxy that names ports", remote: "10.0.0.1:9", forwarded: "192.0.2.1:1234", trusted: trusted, want: "address 192.0.2.1"},
		{name: "two proxies", remote: "10.0.0.1:9", forwarded: "192.0.2.1, 10.0.0.2", trusted: trusted, want: "address 192.0.2.1"},
		{name: "made up in front", remote: "10.0.0.1:9", forwarded: "198.51.100.7, 192.0.2.1", trusted: trusted, want: "address 192.0.2.1"},
		{name: "made up by a stranger", remote: "203.0.113.5:9", forwarded: "192.0.2.1", trusted: trusted, want: "address 203.0.113.5"},
		{name: "nonsense", remote: "10.0.0.1:9", forwarded: "unknown", trusted: trusted, want: "address 10.0.0.1"},
		{name: "proxies all the way", remote: "10.0.0.1:9", forwarded: "10.0.0.3", trusted: trusted, want: "address 10.0.0.3"},
		{name: "IPv6 behind a proxy", remote: "[fd00::1]:9", forwarded: "2001:db8:1:2::9", trusted: trusted, want: "address 2001:db8:1:2::"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", strings.NewReader(""))
			r.RemoteAddr = test.remote
			if test.forwarded != "" {
				r.Header.Set("X-Forwarded-For", test.forwarded)
			}
			if test.who != nil {
				r = r.WithContext(oauth.NewContext(context.Background(), test.who))
			}
			require.Equal(t, test.want, Caller(r, test.trusted))
		})
	}
}
