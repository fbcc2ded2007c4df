package playground_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/playground"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/proxy"
	"github.com/mcpkit/mcpkit-go/reflectx/rawschema"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// shop is a service with a secret, questions and errors.
type shop struct {
	_ mcpkit.Info `name:"shop" version:"1.0.0"`
	_ struct {
		Stock mcpkit.Tool `scopes:"stock:read"`
	}
}

// Buy buys something.
func (*shop) Buy(ctx context.Context, call *mcpkit.Call, in struct {
	What string `json:"what"`
	Card string `json:"card" secret:"true"`
}) (string, error) {
	n, err := mcpkit.Once(ctx, "number", func() (int, error) { return 1, nil })
	if err != nil {
		return "", err
	}
	call.Logger().Info("buys", "what", in.What)
	call.Progress(1, 3, "one")
	call.Progress(2, 3, "two")
	answer, err := mcpkit.Elicit[struct {
		PIN string `json:"pin"`
	}](ctx, "Your PIN?")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d %d", n, len(answer.PIN)), nil
}

// Fail fails.
func (*shop) Fail() error { return errors.New("the database is gone") }

// Stock needs a scope.
func (*shop) Stock() string { return "three" }

// buyer gives a PIN.
type buyer struct{}

func (buyer) Elicit(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	return &protocol.ElicitResult{Action: "accept", Content: json.RawMessage(`{"pin":"pin-4711"}`)}, nil
}

func newShop(t *testing.T) *mcpkit.Server {
	t.Helper()
	srv, err := mcpkit.New(&shop{}, mcpkit.Authenticated(), mcpkit.Logger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	srv.Use(middleware.Logging(slog.New(slog.DiscardHandler)))
	return srv
}

// A site serves the playground at /play/ of a loopback address.
type site struct {
	t     *testing.T
	h     *playground.Handler
	url   string
	token string
	http  *http.Client
}

func newSite(t *testing.T, srv *mcpkit.Server, opts *playground.Options) *site {
	t.Helper()
	h := playground.NewHandler(srv, opts)
	mux := http.NewServeMux()
	mux.Handle("/play/", h)
	server := httptest.NewServer(mux)
	transport := &http.Transport{}
	t.Cleanup(func() {
		h.Close()
		transport.CloseIdleConnections()
		server.CloseClientConnections()
		server.Close()
	})
	_, token, ok := strings.Cut(h.URL(server.URL+"/play/"), "/play/#token=")
	require.True(t, ok)
	return &site{t, h, server.URL + "/play/", token, &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

func dial(t *testing.T, target any, opts ...client.DialOption) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), target, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// do sends a request with the token, unless fields say otherwise: "Name: value". Host is a field.
func (s *site) do(method, path, body string, fields ...string) (*http.Response, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	require.NoError(s.t, err)
	r.Header.Set(playground.TokenHeader, s.token)
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Set(name, value)
		if name == "Host" {
			r.Host = value
		}
	}
	resp, err := s.http.Do(r)
	require.NoError(s.t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	require.NoError(s.t, resp.Body.Close())
	return resp, string(text)
}

func TestFilesOfThePageNeedNoToken(t *testing.T) {
	s := newSite(t, newShop(t), nil)
	for path, kind := range map[string]string{
		"": "text/html; charset=utf-8", "index.html": "text/html; charset=utf-8", "style.css": "text/css; charset=utf-8", "main.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml",
	} {
		resp, text := s.do("GET", path, "", playground.TokenHeader+": wrong")
		require.Equal(t, 200, resp.StatusCode, path)
		require.Equal(t, kind, resp.Header.Get("Content-Type"))
		policy := resp.Header.Get("Content-Security-Policy")
		require.Contains(t, policy, "default-src 'none'; script-src 'self'; style-src 'self';")
		require.NotContains(t, policy, "unsafe")
		require.Equal(t, "nosniff", resp.Header.Get("X-Content-Type-Options"))
		require.NotContains(t, text, s.token)
	}
	resp, _ := s.do("GET", "nothing.js", "")
	require.Equal(t, 404, resp.StatusCode)
	resp, _ = s.do("POST", "", "")
	require.Equal(t, 405, resp.StatusCode)
	resp, _ = s.do("GET", "deeper", "")
	require.Equal(t, "./deeper/", resp.Header.Get("Location"), "addresses in the page are relative")
}

func TestEverythingElseNeedsTheToken(t *testing.T) {
	s := newSite(t, newShop(t), nil)
	for _, c := range [][2]string{{"GET", "info"}, {"GET", "timeline"}, {"DELETE", "timeline"}, {"POST", "mcp"}, {"GET", "mcp"}, {"DELETE", "mcp"}, {"POST", "frame"}} {
		for _, token := range []string{"", "wrong", s.token + "x", strings.ToLower(s.token)} {
			resp, text := s.do(c[0], c[1], "{}", playground.TokenHeader+": "+token)
			require.Equal(t, 401, resp.StatusCode, "%v %q", c, token)
			require.Contains(t, text, "the token is missing or wrong")
		}
	}
	resp, text := s.do("GET", "info", "")
	require.Equal(t, 200, resp.StatusCode)
	require.JSONEq(t, `{"target":"","maxEntries":10000}`, text)
	resp, _ = s.do("PUT", "timeline", "")
	require.Equal(t, 405, resp.StatusCode)
}

func TestForeignPagesAndHostsAreRefused(t *testing.T) {
	s := newSite(t, newShop(t), nil)
	host := strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/play/")
	for field, status := range map[string]int{
		"Origin: http://" + host:                   200,
		"Origin: https://evil.example":             403,
		"Origin: null":                             403,
		"Origin: http://127.0.0.1:1":               403, // another program of this machine
		"Origin: http://localhost:1":               403,
		"Host: evil.example":                       403, // DNS rebinding
		"Host: 127.0.0.1.evil.example":             403,
		"Host: localhost":                          200,
		"Origin: http://" + host + ".evil.example": 403,
		"Origin: http://user@" + host:              403,
	} {
		for _, path := range []string{"", "info", "frame?id=x"} {
			want := status
			if path != "" && strings.HasPrefix(path, "frame") && status == 200 {
				want = 404
			}
			resp, text := s.do("GET", path, "", field)
			require.Equal(t, want, resp.StatusCode, "%s %s: %s", path, field, text)
		}
	}
}

// at is a request that arrives at an address.
func at(addr net.Addr, host string) *http.Request {
	r := httptest.NewRequest("GET", "http://"+host+"/play/", nil)
	if addr != nil {
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, addr))
	}
	return r
}

func TestTheHandlerServesOnlyLoopbackAddresses(t *testing.T) {
	outside := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 80}
	for _, test := range []struct {
		name  string
		addr  net.Addr
		host  string
		hosts []string
		want  int
	}{
		{"loopback", &net.TCPAddr{IP: net.IPv6loopback, Port: 80}, "localhost:80", nil, 200},
		{"outside", outside, "localhost", nil, 403},
		{"outside by its address", outside, "192.0.2.7", nil, 403},
		{"unknown address", nil, "localhost", nil, 403},
		{"socket", &net.UnixAddr{Name: "x"}, "localhost", nil, 403},
		{"outside, named", outside, "devbox.example", []string{"devbox.example"}, 200},
		{"outside, not named", outside, "other.example", []string{"devbox.example"}, 403},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := playground.NewHandler(newShop(t), &playground.Options{AllowedHosts: test.hosts})
			defer h.Close()
			w := httptest.NewRecorder()
			h.ServeHTTP(w, at(test.addr, test.host))
			require.Equal(t, test.want, w.Code, w.Body)
		})
	}
	require.PanicsWithValue(t, `playground: NewHandler: AllowedHosts has "*"; name the hosts`, func() { playground.NewHandler(newShop(t), &playground.Options{AllowedHosts: []string{"*"}}) })
	require.Panics(t, func() { playground.NewHandler(nil, nil) })
}

func TestTheTokenIsRandomOrGiven(t *testing.T) {
	a, b := newSite(t, newShop(t), nil), newSite(t, newShop(t), nil)
	require.NotEqual(t, a.token, b.token)
	require.GreaterOrEqual(t, len(a.token), 26)
	h := playground.NewHandler(newShop(t), &playground.Options{Token: "a b"})
	defer h.Close()
	require.Equal(t, "http://localhost/p/#token=a+b", h.URL("http://localhost/p"))
}

// An entry is what the page gets of a call.
type entry struct {
	ID                                     int
	Method, Name, Version, Client, Outcome string
	Error, Ref, Principal                  string
	Round                                  int
	Took                                   float64
	Arguments                              json.RawMessage
	Faults                                 []struct{ At, Text string }
	Steps                                  []struct {
		Kind, Name, Text, Error string
		Kept                    bool
		Depth                   int
		Took                    float64
	}
	More int
}

// A watcher reads the stream of the timeline.
type watcher struct {
	t      *testing.T
	raw    strings.Builder
	scan   *bufio.Scanner
	ids    map[int]bool
	unread []entry
}

func (s *site) watch(ctx context.Context) *watcher {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, "GET", s.url+"timeline", nil)
	require.NoError(s.t, err)
	r.Header.Set(playground.TokenHeader, s.token)
	resp, err := s.http.Do(r)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = resp.Body.Close() })
	require.Equal(s.t, 200, resp.StatusCode)
	w := &watcher{t: s.t, scan: bufio.NewScanner(resp.Body), ids: map[int]bool{}}
	w.scan.Buffer(nil, 64<<20)
	return w
}

// until reads until an entry fits. Entries of a batch are read one after the other.
func (w *watcher) until(fits func(e entry) bool) entry {
	w.t.Helper()
	for {
		for len(w.unread) > 0 {
			e := w.unread[0]
			w.unread = w.unread[1:]
			if fits(e) {
				return e
			}
		}
		if !w.scan.Scan() {
			w.t.Fatalf("the timeline ended: %v", w.scan.Err())
		}
		text, ok := strings.CutPrefix(w.scan.Text(), "data: ")
		if !ok {
			continue
		}
		w.raw.WriteString(text)
		var b struct {
			Clear   bool
			Entries []entry
		}
		require.NoError(w.t, json.Unmarshal([]byte(text), &b))
		if b.Clear {
			w.ids = map[int]bool{}
		}
		for _, e := range b.Entries {
			w.ids[e.ID] = true
		}
		w.unread = append(w.unread, b.Entries...)
	}
}

func ended(method, name string, round int) func(entry) bool {
	return func(e entry) bool { return e.Method == method && e.Name == name && e.Round == round && e.Took >= 0 }
}

func TestTheTimelineHasTheStepsOfCallsOfAllClients(t *testing.T) {
	srv := newShop(t)
	s := newSite(t, srv, nil)
	w := s.watch(t.Context())
	c := dial(t, srv, client.Handlers(buyer{}), client.Info("robot", "1.0.0"))
	_, err := c.CallTool(t.Context(), "buy", map[string]string{"what": "tea", "card": "4711-0815"})
	require.NoError(t, err)

	first := w.until(ended("tools/call", "buy", 0))
	require.Equal(t, "input_required", first.Outcome)
	require.Equal(t, "robot", first.Client)
	require.JSONEq(t, `{"what":"tea","card":"[redacted]"}`, string(first.Arguments))
	second := w.until(ended("tools/call", "buy", 1))
	require.Equal(t, "ok", second.Outcome)
	require.Equal(t, first.Ref, second.Ref)
	var kinds []string
	for _, step := range second.Steps {
		text := step.Kind + " " + step.Name + step.Text
		if step.Kept {
			text += " kept"
		}
		kinds = append(kinds, text)
	}
	require.Len(t, kinds, 5)
	require.Equal(t, "span Logging (logging.go:37)", kinds[0])
	require.Contains(t, kinds[1], "span shop.Buy (")
	require.Equal(t, []string{"once number kept", `log info{"msg":"buys","what":"tea"}`, "progress 2 of 3: two"}, kinds[2:])
	require.Equal(t, "question", first.Steps[len(first.Steps)-1].Kind)
	require.Equal(t, "Your PIN?", first.Steps[len(first.Steps)-1].Text)
	require.Equal(t, 1, second.Steps[1].Depth)

	_, err = c.CallTool(t.Context(), "fail", nil)
	require.Error(t, err)
	require.Equal(t, "the database is gone", w.until(ended("tools/call", "fail", 0)).Error, "which the client does not see")

	_, err = c.CallTool(t.Context(), "buy", map[string]any{"what": 3, "card": true})
	require.Error(t, err)
	bad := w.until(ended("tools/call", "buy", 0))
	require.Len(t, bad.Faults, 2)
	require.Equal(t, "/what", bad.Faults[1].At)
	require.Equal(t, "/what: got 3, want a string", bad.Faults[1].Text)
	require.NotContains(t, w.raw.String(), "4711", "neither the card nor the PIN")
}

func TestQuestionsToLegacyClientsAreSteps(t *testing.T) {
	srv := newShop(t)
	s := newSite(t, srv, nil)
	w := s.watch(t.Context())
	c := dial(t, srv, client.Handlers(buyer{}), client.Version(protocol.V20251125))
	_, err := c.CallTool(t.Context(), "buy", map[string]string{"what": "tea", "card": "1"})
	require.NoError(t, err)
	e := w.until(ended("tools/call", "buy", 0))
	last := e.Steps[len(e.Steps)-1]
	require.Equal(t, "question elicitation/create Your PIN?", last.Kind+" "+last.Name+" "+last.Text)
	require.NotContains(t, w.raw.String(), "4711")
}

func TestTheStepsOfAProxyAreThoseOfTheProgramBehindIt(t *testing.T) {
	srv := newShop(t)
	s := newSite(t, srv, &playground.Options{Proxy: true})
	w := s.watch(t.Context())
	_, err := dial(t, srv).CallTool(t.Context(), "fail", nil)
	require.Error(t, err)
	e := w.until(ended("tools/call", "fail", 0))
	require.Empty(t, e.Steps)
	at := time.Now()
	s.h.Report(mcpkit.TraceEvent{Ref: "of no call", Kind: mcpkit.TraceHandler})
	s.h.Report(mcpkit.TraceEvent{Ref: e.Ref, Kind: mcpkit.TraceHandler, Name: "guard (main.go:7)", ID: 1, At: at})
	s.h.Report(mcpkit.TraceEvent{Ref: e.Ref, Kind: mcpkit.TraceHandler, Name: "Shop.Stock (main.go:9)", ID: 2, At: at})
	s.h.Report(mcpkit.TraceEvent{Ref: e.Ref, Kind: mcpkit.TraceEnd, ID: 1, At: at.Add(2 * time.Second), Text: "it burnt"})
	s.h.Report(mcpkit.TraceEvent{Ref: e.Ref, Kind: mcpkit.TraceEnd, ID: 2, At: at.Add(time.Second), Text: "fire"})
	e = w.until(func(e entry) bool { return len(e.Steps) == 2 && e.Steps[1].Error == "fire" })
	require.Equal(t, []float64{2000, 1000}, []float64{math.Round(e.Steps[0].Took), math.Round(e.Steps[1].Took)})
	require.Equal(t, "it burnt", e.Steps[0].Error)
	require.Equal(t, 1, e.Steps[1].Depth)
	require.Equal(t, "fire", e.Error)
}

// talkative is an error that logs when its text is read.
type talkative struct{ call *mcpkit.Call }

func (t talkative) Error() string {
	t.call.Logger().Info("somebody reads the error")
	return "it talks"
}

func TestErrorsMayLog(t *testing.T) {
	srv := newShop(t)
	require.NoError(t, srv.Add(mcpkit.NewTool("talk", func(call *mcpkit.Call) error { return talkative{call} })))
	s := newSite(t, srv, nil)
	c := dial(t, srv)
	_, err := c.CallTool(t.Context(), "talk", nil)
	require.Error(t, err)
	w := s.watch(t.Context())
	w.until(func(e entry) bool { return e.Error == "it talks" })
}

func TestTheTimelineIsBounded(t *testing.T) {
	srv := newShop(t)
	s := newSite(t, srv, &playground.Options{MaxEntries: 5})
	c := dial(t, srv)
	for i := range 20 {
		_, err := c.CallTool(t.Context(), "fail", map[string]int{fmt.Sprint(i): i})
		require.Error(t, err)
	}
	w := s.watch(t.Context())
	w.until(func(e entry) bool { return strings.HasPrefix(string(e.Arguments), `{"19"`) })
	require.Len(t, w.ids, 5)
	resp, _ := s.do("DELETE", "timeline", "")
	require.Equal(t, 204, resp.StatusCode)
	_, err := c.CallTool(t.Context(), "fail", nil)
	require.Error(t, err)
	w.until(ended("tools/call", "fail", 0))
	require.Len(t, w.ids, 1)
}

func TestACallHasABoundedNumberOfSteps(t *testing.T) {
	srv := newShop(t)
	require.NoError(t, srv.Add(mcpkit.NewTool("talk", func(call *mcpkit.Call) {
		for i := range 1000 {
			call.Logger().Debug(strings.Repeat("x", 10_000), "i", i)
		}
	})))
	s := newSite(t, srv, nil)
	c := dial(t, srv)
	_, err := c.CallTool(t.Context(), "talk", nil)
	require.NoError(t, err)
	e := s.watch(t.Context()).until(ended("tools/call", "talk", 0))
	require.Len(t, e.Steps, 200)
	require.Equal(t, 802, e.More)
	require.Less(t, len(e.Steps[10].Text), 2100)
}

func TestThePageCallsTheServer(t *testing.T) {
	s := newSite(t, newShop(t), &playground.Options{Principal: &oauth.Principal{Subject: "ann", Scopes: []string{"stock:read"}}})
	for _, v := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
		c, err := client.Dial(t.Context(), s.url+"mcp", client.Version(v), client.Header(playground.TokenHeader, s.token))
		require.NoError(t, err)
		got, err := client.Call[string](t.Context(), c, "stock", nil)
		require.NoError(t, err)
		require.Equal(t, "three", got)
		require.NoError(t, c.Close())
	}
	e := s.watch(t.Context()).until(ended("tools/call", "stock", 0))
	require.Equal(t, "ann", e.Principal)
}

func TestClosingEndsStreamsAndStopsObserving(t *testing.T) {
	srv := newShop(t)
	s := newSite(t, srv, nil)
	w := s.watch(t.Context())
	s.h.Close()
	s.h.Close()
	for w.scan.Scan() {
	}
	require.NoError(t, w.scan.Err())
	c := dial(t, srv)
	_, err := c.CallTool(t.Context(), "fail", nil)
	require.Error(t, err)
	_, text := s.do("GET", "timeline", "") // ends at once
	require.NotContains(t, text, "fail")
}

func TestTooManyWatchersAreRefused(t *testing.T) {
	s := newSite(t, newShop(t), nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 16 {
		s.watch(ctx)
	}
	resp, text := s.do("GET", "timeline", "")
	require.Equal(t, 503, resp.StatusCode)
	require.Contains(t, text, "too many pages watch the timeline")
}

func TestPagesOfAppsGetTheirOwnPolicy(t *testing.T) {
	s := newSite(t, newShop(t), nil)
	resp, text := s.do("POST", "frame", `{"html":"<p>hi","ui":{"csp":{"connectDomains":["https://api.example:8443","http://localhost:1","ws://[::1]:1"],"resourceDomains":["https://*.cdn.example"]}}}`)
	require.Equal(t, 200, resp.StatusCode, text)
	var f struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(text), &f))
	resp, text = s.do("GET", "frame?id="+f.ID, "", playground.TokenHeader+": ")
	require.Equal(t, "<p>hi", text)
	require.Equal(t, "default-src 'none'; script-src 'unsafe-inline' https://*.cdn.example; style-src 'unsafe-inline' https://*.cdn.example; img-src data: https://*.cdn.example; "+
		"media-src data: https://*.cdn.example; font-src data: https://*.cdn.example; connect-src https://api.example:8443 http://localhost:1 ws://[::1]:1; frame-src 'none'; base-uri 'none'; frame-ancestors 'self'; "+
		"sandbox allow-scripts allow-forms", resp.Header.Get("Content-Security-Policy"))

	own := strings.TrimSuffix(s.url, "/play/")
	for _, bad := range []string{
		"*", "'self'", "https://x; script-src *", "data:", "https://x y", "https://x,", "", "http://*", "https://*", "https://*:*", "wss://*:443", "https://*.", "https://a.*.b",
		own, strings.Replace(own, "http", "WS", 1), strings.Replace(own, "http", "ws", 1), strings.Replace(own, "127.0.0.1", "LOCALHOST", 1), strings.Replace(own, "127.0.0.1", "[::1]", 1),
		strings.Replace(own, "127.0.0.1", "*.0.0.1", 1), strings.Replace(own, "127.0.0.1", "*", 1),
	} {
		body, err := json.Marshal(map[string]any{"html": "", "ui": map[string]any{"csp": map[string]any{"frameDomains": []string{bad}}}})
		require.NoError(t, err)
		resp, text = s.do("POST", "frame", string(body))
		require.Equal(t, 400, resp.StatusCode, "%q %s", bad, text)
	}
	for body, status := range map[string]int{"": 400, "[]": 400, `{"html":"` + strings.Repeat("x", 15<<20) + `"}`: 200, `{"html":"` + strings.Repeat("x", 16<<20) + `"}`: 413} {
		resp, _ = s.do("POST", "frame", body)
		require.Equal(t, status, resp.StatusCode)
	}
	resp, _ = s.do("PUT", "frame", "")
	require.Equal(t, 405, resp.StatusCode)
	for range 16 {
		s.do("POST", "frame", `{"html":""}`)
	}
	resp, _ = s.do("GET", "frame?id="+f.ID, "")
	require.Equal(t, 404, resp.StatusCode, "the oldest pages are dropped")
}

type credential struct {
	User  string `json:"user,omitempty"`
	Token string `json:"token,omitempty" secret:"true" validate:"max=20" jsonschema:"pattern=^[a-z]"`
}

type vaultInput struct {
	credential
	Mode string                `json:"mode,omitempty" secret:"true" validate:"omitempty,oneof=a b" default:"a"`
	Keys map[string]string     `json:"keys,omitempty" secret:"true"`
	List []credential          `json:"list,omitempty"`
	Map  map[string]credential `json:"map,omitempty"`
	Ptr  *credential           `json:"ptr,omitempty"`
}

// No response, log, audit record or entry of the timeline has a part of a secret argument, however
// wrong the arguments are.
func TestSecretArgumentsAreRepeatedNowhere(t *testing.T) {
	var log, audit testkit.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	fail := func(context.Context, vaultInput) error { return errors.New("down") }
	inner, err := mcpkit.New(nil, mcpkit.Logger(logger), mcpkit.Lenient(mcpkit.LenientScalars, mcpkit.LenientJSON))
	require.NoError(t, err)
	require.NoError(t, inner.Add(mcpkit.NewTool("typed", fail)))
	srv, err := mcpkit.New(nil, mcpkit.Logger(logger), mcpkit.RawSchemas(rawschema.Compile))
	require.NoError(t, err)
	require.NoError(t, srv.Add(mcpkit.NewTool("typed", fail), mcpkit.NewPrompt("prompt", func(credential) (string, error) { return "", errors.New("down") }),
		mcpkit.NewTool("hand", func(_ context.Context, call *mcpkit.Call) (any, error) { return nil, call.Bind(&vaultInput{}) }).
			Input(`{"type":"object","additionalProperties":false,"properties":{"user":{"type":"string"},"token":{"type":"string","writeOnly":true,"maxLength":20,"pattern":"^[a-z]"},`+
				`"mode":{"enum":["a","b"],"format":"password"},"keys":{"type":"object","writeOnly":true,"additionalProperties":{"type":"string"}},"list":{"items":{"$ref":"#"}},`+
				`"map":{"additionalProperties":{"$ref":"#"}},"ptr":{"$ref":"#"}}}`)))
	srv.MustMount("far", proxy.MustNew(inner, proxy.Logger(logger)))
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	srv.Use(middleware.Audit(slog.NewJSONHandler(&audit, nil), middleware.AuditBegin(), middleware.AuditArguments()), middleware.Logging(logger, middleware.LogArguments(0)))
	s := newSite(t, srv, &playground.Options{Logger: logger})
	repeats := func(place, text string) {
		for line := range strings.Lines(strings.ToLower(text)) {
			assert.False(t, strings.Contains(line, "hunter2") || strings.Contains(line, "7755123"), "%s: %s", place, line)
		}
	}
	call := func(method, name, args string) string {
		_, text := s.do("POST", "mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"name":%q,"arguments":%s,"_meta":{`+
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, method, name, args),
			"Content-Type: application/json", "Accept: application/json, text/event-stream", "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: "+method, "Mcp-Name: "+name)
		return text
	}
	for what, args := range map[string]string{
		"wrong type":        `{"token":["hunter2"],"ptr":{"token":{"hunter2":1}},"keys":"hunter2"}`,
		"wrong nesting":     `{"ptr":"hunter2","list":{"token":"hunter2"},"map":["hunter2"]}`,
		"array for object":  `["hunter2"]`,
		"name":              `{"hunter2":"x","ptr":{"hunter2":{}},"list":[{"hunter2":null}]}`,
		"key of a map":      `{"keys":{"hunter2":1},"map":{"hunter2":1}}`,
		"unknown neighbour": `{"token":"a","tokne":"hunter2","mod":"hunter2"}`,
		"duplicate":         `{"token":"a","token":"hunter2"}`,
		"duplicate key":     `{"keys":{"hunter2":"a","hunter2":"b"}}`,
		"invalid UTF-8":     "{\"token\":\"hunter2\xff\"}",
		"not JSON":          `{"token":"hunter2"hunter2}`,
		"too long":          `{"token":"hunter2` + strings.Repeat("hunter2", 5000) + `"}`,
		"enum":              `{"mode":"hunter2"}`,
		"pattern":           `{"token":"HUNTER2"}`,
		"null":              `{"token":null,"mode":null,"keys":{"hunter2":null}}`,
		"number":            `{"token":7755123,"mode":7755123,"list":7755123,"ptr":7755123}`,
		"deep":              `{"list":[{"token":"HUNTER2"}],"map":{"a":{"token":"HUNTER2"}},"ptr":{"token":"HUNTER2"}}`,
		"text for object":   `{"list":"[{\"token\":\"HUNTER2\"}]","map":"{\"a\":{\"token\":\"HUNTER2\"}}","ptr":"{\"token\":\"HUNTER2\"}"}`,
		"right":             `{"token":"hunter2","keys":{"hunter2":"hunter2"}}`,
	} {
		for _, name := range []string{"typed", "hand", "prompt", "far_typed", "unknown"} {
			method := "tools/call"
			if name == "prompt" {
				method = "prompts/get"
			}
			repeats("response: "+what, call(method, name, args))
		}
	}
	call("tools/call", "last", "{}")
	w := s.watch(t.Context())
	w.until(ended("tools/call", "last", 0))
	require.Contains(t, audit.String(), "prompts/get")
	repeats("log", log.String())
	repeats("audit", audit.String())
	repeats("timeline", strings.ReplaceAll(w.raw.String(), `{"id"`, "\n"))
}
