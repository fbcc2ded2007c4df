package streamable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/sse"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/transporttest"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// A scripted handler has a function of the test for each method, besides initialize, echo and
// notifications.
type scripted struct {
	transporttest.Sessions
	methods map[string]func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response

	mu       sync.Mutex
	heard    []string // methods of notifications
	ended    []string // ids of sessions
	sessions []*transport.Session
}

type script = map[string]func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response

func (s *scripted) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	if f := s.methods[req.Method]; f != nil {
		return f(ctx, req, peer)
	}
	if req.IsNotification() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.heard = append(s.heard, req.Method)
		return nil
	}
	switch req.Method {
	case "initialize":
		if session := peer.Session(); session != nil {
			session.SetVersion(jsonx.String(req.Param("protocolVersion")))
			s.mu.Lock()
			s.sessions = append(s.sessions, session)
			s.mu.Unlock()
		}
		return result(req, `{"ok":true}`)
	case "echo":
		return result(req, string(req.Params))
	}
	return &jsonrpc.Response{ID: req.ID, HTTPStatus: http.StatusNotFound,
		Error: jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no method %q", req.Method)}
}

func (s *scripted) SessionEnded(session *transport.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = append(s.ended, session.ID())
}

func (s *scripted) endedSessions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.ended...)
}

func result(req *jsonrpc.Request, raw string) *jsonrpc.Response {
	return &jsonrpc.Response{ID: req.ID, Result: json.RawMessage(raw)}
}

func notification(method, params string) *jsonrpc.Request {
	return &jsonrpc.Request{Method: method, Params: json.RawMessage(params)}
}

// A server is a Handler behind a real HTTP server on a loopback address.
type testServer struct {
	t       *testing.T
	rpc     *scripted
	handler *Handler
	url     string
	log     *testkit.Buffer
}

func serve(t *testing.T, methods script, opts *Options) *testServer {
	t.Helper()
	if opts == nil {
		opts = &Options{}
	}
	s := &testServer{t: t, rpc: &scripted{methods: methods}, log: &testkit.Buffer{}}
	opts.Logger = slog.New(slog.NewTextHandler(s.log, nil))
	s.handler = NewHandler(s.rpc, opts)
	server := httptest.NewUnstartedServer(s.handler)
	server.Config.ErrorLog = slog.NewLogLogger(opts.Logger.Handler(), slog.LevelError)
	server.Start()
	s.url = server.URL
	t.Cleanup(func() {
		s.handler.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return s
}

// A client sends requests with its header fields.
type client struct {
	t      *testing.T
	url    string
	http   *http.Client
	header http.Header
}

func (s *testServer) client(fields ...string) *client {
	transport := &http.Transport{DisableCompression: true}
	s.t.Cleanup(transport.CloseIdleConnections)
	c := &client{t: s.t, url: s.url, http: &http.Client{Transport: transport}, header: http.Header{
		"Content-Type": {"application/json"},
		"Accept":       {"application/json, text/event-stream"},
	}}
	return c.with(fields...)
}

// with returns a client with additional or changed header fields; an empty value removes a field.
func (c *client) with(fields ...string) *client {
	d := *c
	d.header = c.header.Clone()
	for i := 0; i < len(fields); i += 2 {
		if fields[i+1] == "" {
			d.header.Del(fields[i])
		} else {
			d.header.Set(fields[i], fields[i+1])
		}
	}
	return &d
}

// modern returns a client of 2026-07-28.
func (s *testServer) modern() *client { return s.client("MCP-Protocol-Version", "2026-07-28") }

// legacy returns a client with a session of version.
func (s *testServer) legacy(version string) *client {
	s.t.Helper()
	return s.legacy2(nil, version)
}

// legacy2 is like legacy with another HTTP client.
func (s *testServer) legacy2(through *http.Client, version string) *client {
	s.t.Helper()
	c := s.client()
	if through != nil {
		c.http = through
	}
	resp := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q}}`, version))
	require.Equal(s.t, http.StatusOK, resp.StatusCode)
	require.JSONEq(s.t, `{"jsonrpc":"2.0","id":0,"result":{"ok":true}}`, read(s.t, resp))
	id := resp.Header.Get("Mcp-Session-Id")
	require.Regexp(s.t, `^[!-~]{26,}$`, id)
	if version == "2025-03-26" {
		version = ""
	}
	return c.with("Mcp-Session-Id", id, "MCP-Protocol-Version", version)
}

func (c *client) do(ctx context.Context, method, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.url, strings.NewReader(body))
	require.NoError(c.t, err)
	r.Header = c.header.Clone()
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	return c.http.Do(r)
}

func (c *client) send(method, body string) *http.Response {
	c.t.Helper()
	resp, err := c.do(c.t.Context(), method, body)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func (c *client) post(body string) *http.Response {
	c.t.Helper()
	return c.send(http.MethodPost, body)
}

func (c *client) get() *http.Response {
	c.t.Helper()
	return c.with("Content-Type", "").send(http.MethodGet, "")
}

func (c *client) call(id int, method string) *http.Response {
	c.t.Helper()
	return c.post(call1(id, method))
}

func call1(id int, method string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"a":1}}`, id, method)
}

// works requires that the server answers a valid request of c.
func (c *client) works() {
	c.t.Helper()
	resp := c.call(4711, "echo")
	require.Equal(c.t, `{"jsonrpc":"2.0","id":4711,"result":{"a":1}}`, read(c.t, resp))
	require.Equal(c.t, http.StatusOK, resp.StatusCode)
}

// known returns what h has of a session; nil for nothing.
func known(h *Handler, id string) *legacySession {
	return h.sessions.known(transport.NewSession(id, nil).Digest())
}

// tags are the random parts of event IDs.
var tags = regexp.MustCompile(`[a-z2-7]{8}_([0-9]+-)`)

func read(t *testing.T, resp *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return string(body)
}

// events reads an event stream.
type events struct {
	t *testing.T
	r *sse.Reader
}

func eventsOf(t *testing.T, resp *http.Response) *events {
	t.Helper()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	require.Equal(t, "no-store", resp.Header.Get("Cache-Control"))
	require.Equal(t, "no", resp.Header.Get("X-Accel-Buffering"))
	return &events{t, sse.NewReader(resp.Body, 4<<20)}
}

func (e *events) next() sse.Event {
	e.t.Helper()
	ev, err := e.r.Next()
	require.NoError(e.t, err)
	return ev
}

func (e *events) data() string {
	e.t.Helper()
	ev := e.next()
	require.Equal(e.t, "message", ev.Type)
	return string(ev.Data)
}

func (e *events) end() {
	e.t.Helper()
	_, err := e.r.Next()
	require.Equal(e.t, io.EOF, err)
}

const (
	progress1 = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"n":1}}`
	progress2 = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"n":2}}`
	answer7   = `{"jsonrpc":"2.0","id":7,"result":{"done":true}}`
)

func notify(ctx context.Context, peer transport.Peer, n int) error {
	return peer.Notify(ctx, notification("notifications/progress", fmt.Sprintf(`{"n":%d}`, n)))
}

// talkative sends two notifications before its response.
func talkative(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	if err := errors.Join(notify(ctx, peer, 1), notify(ctx, peer, 2)); err != nil {
		return &jsonrpc.Response{ID: req.ID, Error: jsonrpc.Errorf(1, "%v", err)}
	}
	return result(req, `{"done":true}`)
}

func TestStatusOfTheHandlerIsSentIfNothingWasSentBefore(t *testing.T) {
	s := serve(t, script{
		"late": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
			_ = notify(ctx, peer, 1)
			return &jsonrpc.Response{ID: req.ID, HTTPStatus: 404, Error: jsonrpc.Errorf(-32601, "no")}
		},
		"silent": func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response { return nil },
	}, nil)
	resp := s.modern().call(3, "unknown")
	require.Equal(t, http.StatusNotFound, resp.StatusCode)
	require.Equal(t, `{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"no method \"unknown\""}}`, read(t, resp))

	require.Equal(t, http.StatusOK, s.modern().call(3, "late").StatusCode)

	resp = s.modern().call(3, "silent")
	require.Equal(t, http.StatusInternalServerError, resp.StatusCode)
	require.Equal(t, `{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"internal error"}}`, read(t, resp))
}

func TestNotificationsAreAcknowledged(t *testing.T) {
	s := serve(t, script{
		"notifications/chatty": func(ctx context.Context, _ *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
			_, err := peer.Call(ctx, notification("ping", ""))
			require.ErrorIs(t, err, transport.ErrNoServerRequests)
			require.ErrorIs(t, peer.(transport.StreamCloser).CloseStream(0), errors.ErrUnsupported)
			require.NoError(t, notify(ctx, peer, 1))
			return nil
		},
		"notifications/bad": func(_ context.Context, _ *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
			return &jsonrpc.Response{Error: jsonrpc.Errorf(-32602, "bad")}
		},
	}, nil)
	for name, c := range map[string]*client{"modern": s.modern(), "legacy": s.legacy("2025-06-18")} {
		t.Run(name, func(t *testing.T) {
			for _, method := range []string{"notifications/initialized", "notifications/chatty"} {
				resp := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q}`, method))
				require.Equal(t, http.StatusAccepted, resp.StatusCode)
				require.Empty(t, read(t, resp))
			}
			resp := c.post(`{"jsonrpc":"2.0","method":"notifications/bad"}`)
			require.Equal(t, http.StatusBadRequest, resp.StatusCode)
			require.Equal(t, `{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"bad"}}`, read(t, resp))
			c.works()
		})
	}
	require.Equal(t, []string{"notifications/initialized", "notifications/initialized"}, s.rpc.heard)
}

type principalKey struct{}

func TestPeerKnowsHeaderSessionAndContext(t *testing.T) {
	type seen struct{ name, session, value, method string }
	got := make(chan seen, 1)
	s := serve(t, script{"look": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
		v := seen{method: peer.Header().Get("Mcp-Method")}
		if session := peer.Session(); session != nil {
			v.session = session.ID()
		}
		v.value, _ = ctx.Value(principalKey{}).(string)
		v.name = oauth.FromContext(ctx).Key()
		got <- v
		return result(req, `{}`)
	}}, nil)
	outer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := oauth.NewContext(context.WithValue(r.Context(), principalKey{}, "value"), &oauth.Principal{Subject: r.Header.Get("User")})
		s.handler.ServeHTTP(w, r.WithContext(ctx))
	}))
	defer outer.Close()
	s.url = outer.URL

	s.modern().with("User", "ada", "Mcp-Method", "look").call(1, "look")
	require.Equal(t, seen{"\x00ada\x00", "", "value", "look"}, <-got)

	c := s.client("User", "ada")
	id := c.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`).Header.Get("Mcp-Session-Id")
	c = c.with("Mcp-Session-Id", id)
	c.call(1, "look")
	require.Equal(t, seen{"\x00ada\x00", id, "value", ""}, <-got)
}

func newPost(body string, fields ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(fields); i += 2 {
		if fields[i+1] != "" {
			r.Header.Set(fields[i], fields[i+1])
		}
	}
	return r
}

func newGet(ctx context.Context, session string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "http://localhost/mcp", nil).WithContext(ctx)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Mcp-Session-Id", session)
	return r
}

// silentRPC answers everything with {}.
type silentRPC struct{ transporttest.Sessions }

func (silentRPC) ServeRPC(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
	return &jsonrpc.Response{ID: req.ID, Result: []byte(`{}`)}
}

// A described handler has a server card.
type described struct{ scripted }

func (*described) ServerCard(url string) ([]byte, error) {
	if url == "none" {
		return nil, errors.New("no server card: it has no name")
	}
	return []byte("card" + url), nil
}

func TestServerCard(t *testing.T) {
	const etag = `"8367cd66fdd136bba8ba23f8805bb050dd6289401c8ec3b0be44a3c233eef90d"`
	for _, test := range []struct {
		card, method, path, field, value string
		status                           int
		body, header                     string
	}{
		{"", "GET", "/mcp/", "Origin", "https://elsewhere.example", 200, "card", "application/mcp-server-card+json " + etag},
		{" at https://x.example", "HEAD", "/", "", "", 200, "", "application/mcp-server-card+json "},
		{"", "GET", "/mcp/", "If-None-Match", `"a", ` + etag, 304, "", " " + etag},
		{"", "OPTIONS", "/mcp/", "Origin", "https://elsewhere.example", 204, "", " "},
		{"", "POST", "/mcp/", "", "", 405, "only the server card is served here, to GET\n", "text/plain; charset=utf-8 "},
		{"none", "GET", "/mcp/", "", "", 404, "no server card: it has no name\n", "text/plain; charset=utf-8 "},
		{"-", "GET", "/mcp/", "", "", 404, "there is no server card\n", "text/plain; charset=utf-8 "},
	} {
		h := NewHandler(&described{}, &Options{Card: test.card})
		r, w := httptest.NewRequest(test.method, test.path+"server-card", strings.NewReader("{}")), httptest.NewRecorder()
		r.Header.Set(test.field, test.value)
		h.ServeHTTP(w, r)
		require.Equal(t, test.status, w.Code, test)
		require.Equal(t, test.body, w.Body.String(), test)
		require.Equal(t, "*", w.Header().Get("Access-Control-Allow-Origin"), test)
		require.Contains(t, w.Header().Get("Content-Type")+" "+w.Header().Get("ETag"), test.header, test)
		h.Close()
	}
}
