package httpserve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/oauth"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// A blocker is a handler whose requests wait until let is closed or they are cancelled.
type blocker struct {
	*Lifecycle
	begun, let chan struct{}
}

func newBlocker() blocker {
	return blocker{NewLifecycle(), make(chan struct{}, 10), make(chan struct{})}
}

func (b blocker) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	b.Begin()
	defer b.End()
	b.begun <- struct{}{}
	select {
	case <-b.let:
		_, _ = io.WriteString(w, "done")
	case <-b.Cancelling.Done():
		http.Error(w, "cancelled", http.StatusServiceUnavailable)
	}
}

// serving runs a server on b.
type serving struct {
	url  string
	stop func()
	over chan error
	http *http.Client
}

func serve(t *testing.T, b blocker, timeout time.Duration) *serving {
	t.Helper()
	s := &serving{over: make(chan error, 1), http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	go func() {
		s.over <- Run(ctx, listener, &http.Server{Handler: b}, func() {
			bound, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			_ = b.Shutdown(bound)
		})
	}()
	s.url = "http://" + listener.Addr().String()
	return s
}

// get asks in the background.
func (s *serving) get(path string) <-chan string {
	got := make(chan string, 1)
	go func() {
		resp, err := s.http.Get(s.url + path)
		if err != nil {
			got <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		got <- resp.Status + " " + string(body)
	}()
	return got
}

func TestRequestsInFlightFinish(t *testing.T) {
	b := newBlocker()
	s := serve(t, b, time.Minute)
	got := s.get("/mcp")
	<-b.begun
	s.stop()
	select {
	case err := <-s.over:
		require.Fail(t, "it did not wait", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(b.let)
	require.Equal(t, "200 OK done", <-got)
	require.NoError(t, <-s.over)
	_, err := s.http.Get(s.url + "/mcp")
	require.Error(t, err, "the listener is closed")
}

func TestUnfinishedRequestsAreCancelledAndGetResponses(t *testing.T) {
	b := newBlocker()
	s := serve(t, b, 20*time.Millisecond)
	got := s.get("/mcp")
	<-b.begun
	s.stop()
	require.Equal(t, "503 Service Unavailable cancelled\n", <-got)
	require.NoError(t, <-s.over)
}

// A wrapper hides a writer, as middleware does.
type wrapper struct {
	http.ResponseWriter
	below http.ResponseWriter
}

func (w wrapper) Unwrap() http.ResponseWriter { return w.below }

// A flushing writer counts flushes, which may fail.
type flushing struct {
	http.ResponseWriter
	times *int
	err   error
}

func (f flushing) FlushError() error { *f.times++; return f.err }

// A panicking writer is like echo.Response on a writer that cannot flush.
type panicking struct{ wrapper }

func (panicking) Flush() { panic("the writer below cannot flush") }

func TestFlushersAreFoundThroughWrappers(t *testing.T) {
	var mute struct{ http.ResponseWriter } // has no Flush
	n := 0
	inner := flushing{httptest.NewRecorder(), &n, nil}
	broken := flushing{httptest.NewRecorder(), &n, errors.New("broken pipe")}
	for _, test := range []struct {
		name string
		w    http.ResponseWriter
		can  bool
		err  string
	}{
		{"itself", inner, true, ""},
		{"through one", wrapper{mute, inner}, true, ""},
		{"through two", wrapper{mute, wrapper{mute, inner}}, true, ""},
		{"a flush that fails", wrapper{mute, broken}, true, "broken pipe"},
		{"no flush", mute, false, ""},
		{"no flush below", wrapper{mute, mute}, false, ""},
		{"no writer below", wrapper{mute, nil}, false, ""},
		{"a flush that would panic", panicking{wrapper{mute, mute}}, false, ""},
		{"http.Flusher", httptest.NewRecorder(), true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			n = 0
			flush := Flusher(test.w)
			require.Equal(t, test.can, flush != nil)
			if flush == nil {
				return
			}
			err := flush()
			if test.err != "" {
				require.EqualError(t, err, test.err)
				return
			}
			require.NoError(t, err)
			if test.name != "http.Flusher" {
				require.Equal(t, 1, n)
			}
		})
	}
}

func TestBodiesAreReadWhole(t *testing.T) {
	const limit = 1 << 20
	for _, size := range []int{0, 1, 511, 512, 513, FreeBodyBytes, FreeBodyBytes + 1, 300_000, limit} {
		for name, declared := range map[string]int64{"exact": int64(size), "unknown": -1, "too small": 1, "too large": limit} {
			t.Run(fmt.Sprintf("%d bytes, length %s", size, name), func(t *testing.T) {
				want := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
				r := httptest.NewRequest(http.MethodPost, "/", iotest.DataErrReader(iotest.HalfReader(bytes.NewReader(want))))
				r.ContentLength = declared
				all := &conn.Memory{Max: 4 * limit}
				held, other := conn.Share{All: all}, conn.Share{All: all}
				got, bad := ReadBody(httptest.NewRecorder(), r, limit, &held)
				require.Nil(t, bad)
				require.Equal(t, string(want), string(got))
				if size <= FreeBodyBytes && name == "exact" {
					require.True(t, other.Take(4*limit), "a small body is free")
					return
				}
				require.False(t, size > FreeBodyBytes && other.Take(4*limit), "a large body counts")
				held.Close()
				require.True(t, other.Take(4*limit), "until the request ends")
			})
		}
	}
}

func TestBodiesAreRefused(t *testing.T) {
	const limit = 100_000
	for _, test := range []struct {
		name   string
		body   io.Reader
		length int64
		most   int64 // bytes that all requests may hold
		want   BodyError
	}{
		{"declared too large", strings.NewReader("x"), limit + 1, 1 << 20, BodyError{413, "request body is larger than 100000 bytes"}},
		{"too large", strings.NewReader(strings.Repeat("x", limit+1)), -1, 1 << 20, BodyError{413, "request body is larger than 100000 bytes"}},
		{"larger than declared", strings.NewReader(strings.Repeat("x", limit+1)), 10, 1 << 20, BodyError{413, "request body is larger than 100000 bytes"}},
		{"without memory for it", strings.NewReader(strings.Repeat("x", limit)), limit, 40_000, BodyError{503, conn.ErrNoRoom.Message}},
		{"broken", iotest.ErrReader(io.ErrUnexpectedEOF), 10, 1 << 20, BodyError{400, "body could not be read"}},
		{"too large for middleware", iotest.ErrReader(&http.MaxBytesError{Limit: 7}), 10, 1 << 20, BodyError{413, "request body is larger than 7 bytes"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/", test.body)
			r.ContentLength = test.length
			all := &conn.Memory{Max: test.most}
			held, other := conn.Share{All: all}, conn.Share{All: all}
			require.True(t, other.Take(1), "another request holds something")
			defer held.Close()
			got, bad := ReadBody(httptest.NewRecorder(), r, limit, &held)
			require.Nil(t, got)
			require.Equal(t, &test.want, bad)
		})
	}
}

func TestIsJSON(t *testing.T) {
	for _, test := range []struct {
		contentType []string
		want        bool
	}{
		{[]string{"application/json"}, true},
		{[]string{"Application/JSON; charset=utf-8"}, true},
		{nil, false},
		{[]string{"text/plain"}, false},
		{[]string{"application/jsonp"}, false},
		{[]string{"application/json", "text/plain"}, false},
	} {
		require.Equal(t, test.want, IsJSON(http.Header{"Content-Type": test.contentType}), "%q", test.contentType)
	}
}

func TestAccepts(t *testing.T) {
	for _, test := range []struct {
		accept       []string
		json, stream bool
	}{
		{nil, true, true},
		{[]string{"application/json, text/event-stream"}, true, true},
		{[]string{"text/event-stream,application/json;charset=utf-8"}, true, true},
		{[]string{"application/json", "text/event-stream"}, true, true},
		{[]string{"*/*"}, true, true},
		{[]string{"application/*"}, true, false},
		{[]string{"Application/JSON"}, true, false},
		{[]string{"text/*;q=0.1"}, false, true},
		{[]string{"application/json, text/event-stream; q=0"}, true, false},
		{[]string{""}, false, false},
		{[]string{"image/png"}, false, false},
	} {
		json, stream := Accepts(http.Header{"Accept": test.accept})
		require.Equal(t, [2]bool{test.json, test.stream}, [2]bool{json, stream}, "%q", test.accept)
	}
}

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
