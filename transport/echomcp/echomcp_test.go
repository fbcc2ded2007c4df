package echomcp

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/sse"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
	"github.com/mcpkit/mcpkit-go/transport/transporttest"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// rpc answers "talk" after two notifications, "who" with the user, and everything else with {}.
type rpc struct {
	transporttest.Sessions
	mu   sync.Mutex
	ctxs []context.Context
}

func (h *rpc) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	resp := &jsonrpc.Response{ID: req.ID, Result: json.RawMessage(`{}`)}
	switch req.Method {
	case "talk":
		for range 2 {
			if err := peer.Notify(ctx, &jsonrpc.Request{Method: "n"}); err != nil {
				return nil
			}
		}
	case "initialize":
		peer.Session().SetVersion("2025-11-25")
	case "poll":
		if err := peer.(transport.StreamCloser).CloseStream(time.Second); err != nil {
			resp.Result = json.RawMessage(fmt.Sprintf("{\"err\":%q}", err))
		}
	case "who":
		p := oauth.FromContext(ctx)
		var user, route string
		if c, ok := FromContext(ctx); ok {
			user, route = fmt.Sprint(c.Get("name")), c.Path()
		}
		resp.Result = json.RawMessage(fmt.Sprintf(`{"key":%q,"name":%q,"route":%q}`, strings.ReplaceAll(p.Key(), "\x00", "|"), user, route))
		h.mu.Lock()
		h.ctxs = append(h.ctxs, ctx)
		h.mu.Unlock()
	}
	return resp
}

type app struct {
	t   *testing.T
	e   *echo.Echo
	rpc *rpc
	log *bytes.Buffer
	url string
}

func newApp(t *testing.T, middleware ...echo.MiddlewareFunc) *app {
	a := &app{t: t, e: echo.New(), rpc: &rpc{}, log: &bytes.Buffer{}}
	a.e.Use(middleware...)
	return a
}

func (a *app) serve() {
	server := httptest.NewUnstartedServer(a.e)
	// Settings for other routes of the app must not affect streams.
	server.Config.WriteTimeout = 10 * time.Second
	server.Start()
	a.t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	a.url = server.URL
}

func (a *app) options() Option {
	return Streamable(&streamable.Options{Logger: slog.New(slog.NewTextHandler(a.log, nil))})
}

func (a *app) do(method, path, body string, fields ...string) *http.Response {
	a.t.Helper()
	r, err := http.NewRequestWithContext(a.t.Context(), method, a.url+path, strings.NewReader(body))
	require.NoError(a.t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Accept-Encoding", "gzip")
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	client := &http.Transport{}
	a.t.Cleanup(client.CloseIdleConnections)
	resp, err := client.RoundTrip(r)
	require.NoError(a.t, err)
	a.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func (a *app) call(method string, fields ...string) *http.Response {
	a.t.Helper()
	return a.do(http.MethodPost, "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q}`, method),
		append([]string{"MCP-Protocol-Version", "2026-07-28"}, fields...)...)
}

func body(t *testing.T, resp *http.Response) io.Reader {
	t.Helper()
	if resp.Header.Get("Content-Encoding") != "gzip" {
		return resp.Body
	}
	r, err := gzip.NewReader(resp.Body)
	require.NoError(t, err)
	return r
}

func read(t *testing.T, resp *http.Response) string {
	t.Helper()
	raw, err := io.ReadAll(body(t, resp))
	require.NoError(t, err)
	return string(raw)
}

const streamed = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n" +
	"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"

func TestPreflightsAreAnsweredOnce(t *testing.T) {
	const page = "https://app.example.com"
	for _, test := range []struct {
		name       string
		middleware []echo.MiddlewareFunc
	}{
		{"alone", nil},
		{"behind CORS", []echo.MiddlewareFunc{middleware.CORSWithConfig(middleware.CORSConfig{AllowOrigins: []string{page}})}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newApp(t, test.middleware...)
			opts := streamable.Options{AllowedOrigins: []string{page}}
			handler := Mount(a.e, "/mcp", a.rpc, Streamable(&opts))
			a.serve()
			defer handler.Close()
			resp := a.do(http.MethodOptions, "/mcp", "", "Origin", page, "Access-Control-Request-Method", "POST")
			require.Equal(t, http.StatusNoContent, resp.StatusCode)
			require.Equal(t, []string{page}, resp.Header.Values("Access-Control-Allow-Origin"))
			require.Contains(t, resp.Header.Get("Access-Control-Allow-Methods"), "POST")
			resp = a.do(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize"}`, "Origin", page)
			require.Equal(t, http.StatusOK, resp.StatusCode)
			require.Equal(t, []string{page}, resp.Header.Values("Access-Control-Allow-Origin"))
			require.Contains(t, strings.Join(resp.Header.Values("Access-Control-Expose-Headers"), ","), "Mcp-Session-Id")
		})
	}
}

func TestCallsAndStreamsWorkBehindMiddleware(t *testing.T) {
	for name, before := range map[string][]echo.MiddlewareFunc{
		"Gzip of large replies": {middleware.GzipWithConfig(middleware.GzipConfig{MinLength: 2048})},
		"much": {middleware.Recover(), middleware.BodyLimit("1K"), middleware.ContextTimeout(time.Minute), middleware.Decompress(),
			middleware.Gzip(), middleware.BodyDump(func(echo.Context, []byte, []byte) {}), middleware.Secure()},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApp(t, before...)
			handler := Mount(a.e, "/mcp", a.rpc, a.options())
			a.serve()
			defer handler.Close()
			require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{}}`, read(t, a.call("echo")))
			resp := a.call("talk")
			require.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
			require.Equal(t, streamed, read(t, resp))

			session := a.do(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize"}`).Header.Get("Mcp-Session-Id")
			require.NotEmpty(t, session)
			get := a.do(http.MethodGet, "/mcp", "", "Mcp-Session-Id", session)
			ev, err := sse.NewReader(body(t, get), 4<<20).Next() // it arrives while the stream is open
			require.NoError(t, err)
			require.Regexp(t, "^[a-z2-7]{8}_0-0-[A-Z2-7]{10}$", ev.ID)

			poll := a.do(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"poll"}`, "Mcp-Session-Id", session)
			if poll.Header.Get("Content-Encoding") == "" {
				require.Regexp(t, "^id: [a-z2-7]{8}_1-0\ndata: \n\nretry: 1000\n\n$", read(t, poll))
			} else {
				// A reply that is being compressed cannot end early, so it stays open.
				require.Contains(t, read(t, poll), `"id":1,"result":{"err":"unsupported operation"}}`)
			}
			require.Equal(t, http.StatusNoContent, a.do(http.MethodDelete, "/mcp", "", "Mcp-Session-Id", session).StatusCode)
			require.Empty(t, a.log.String())
		})
	}
}

func TestBehindTimeoutMiddlewareThereIsOneReplyAndOneWarning(t *testing.T) {
	for name, before := range map[string][]echo.MiddlewareFunc{"alone": nil, "with Gzip and Recover": {middleware.Recover(), middleware.Gzip()}} {
		t.Run(name, func(t *testing.T) {
			//lint:ignore SA1019 apps use it; that is why calls have to survive it
			a := newApp(t, append(before, middleware.TimeoutWithConfig(middleware.TimeoutConfig{Timeout: time.Minute}))...)
			handler := Mount(a.e, "/mcp", a.rpc, a.options())
			a.serve()
			defer handler.Close()
			for range 2 {
				resp := a.call("talk")
				require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
				require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{}}`, read(t, resp))
			}
			require.Equal(t, 1, strings.Count(a.log.String(), "\n"), a.log.String())
			require.Contains(t, a.log.String(), "the response writer cannot flush; does a middleware buffer it?")

			session := a.do(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize"}`).Header.Get("Mcp-Session-Id")
			require.Equal(t, http.StatusMethodNotAllowed, a.do(http.MethodGet, "/mcp", "", "Mcp-Session-Id", session).StatusCode)
		})
	}
}

func TestTheBodyLimitOfTheAppApplies(t *testing.T) {
	a := newApp(t, middleware.BodyLimit("1K"))
	Mount(a.e, "/mcp", a.rpc)
	a.serve()
	require.Equal(t, http.StatusRequestEntityTooLarge, a.do(http.MethodPost, "/mcp", strings.Repeat(" ", 2000)).StatusCode)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{}}`, read(t, a.call("echo")))
}

func TestMethodsHaveTheEchoContextDuringTheRequest(t *testing.T) {
	a := newApp(t)
	group := a.e.Group("/api", func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			c.Set("name", "group")
			return next(c)
		}
	})
	Mount(group, "/mcp", a.rpc, Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			c.Set("name", fmt.Sprint(c.Get("name"), "+route"))
			return next(c)
		}
	}), Principal(func(c echo.Context) *oauth.Principal {
		return &oauth.Principal{Subject: c.Request().Header.Get("User")}
	}))
	a.serve()
	resp := a.do(http.MethodPost, "/api/mcp", `{"jsonrpc":"2.0","id":1,"method":"who"}`, "MCP-Protocol-Version", "2026-07-28", "User", "ada")
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{"key":"|ada|","name":"group+route","route":"/api/mcp"}}`, read(t, resp))

	_, ok := FromContext(a.rpc.ctxs[0])
	require.False(t, ok, "the request has ended")
	_, ok = FromContext(t.Context())
	require.False(t, ok, "the context belongs to no request")
}

// A token and its claims look like those of golang-jwt.
type token struct {
	Raw    string
	Claims claims
	Valid  bool
}

type claims interface {
	GetSubject() (string, error)
	GetIssuer() (string, error)
}

type mapClaims map[string]any

func (m mapClaims) GetSubject() (string, error) { return m.text("sub") }
func (m mapClaims) GetIssuer() (string, error)  { return m.text("iss") }
func (m mapClaims) text(name string) (string, error) {
	s, ok := m[name].(string)
	if m[name] != nil && !ok {
		return "", fmt.Errorf("%s is not a string", name)
	}
	return s, nil
}

type registered struct {
	Issuer  string `json:"iss,omitempty"`
	Subject string `json:"sub,omitempty"`
	Expires int64  `json:"exp,omitempty"`
}

func (r registered) GetSubject() (string, error) { return r.Subject, nil }
func (r registered) GetIssuer() (string, error)  { return r.Issuer, nil }

type custom struct {
	Scope  string `json:"scope"`
	Client string `json:"azp"`
	registered
}

func TestPrincipalOfTheUserOfTheApp(t *testing.T) {
	exp := time.Unix(1790000000, 0)
	given := &oauth.Principal{Subject: "given"}
	for _, test := range []struct {
		name string
		user any
		want *oauth.Principal
		warn string
	}{
		{name: "no user"},
		{name: "a principal", user: given, want: given},
		{name: "map claims", user: &token{Valid: true, Claims: mapClaims{"sub": "ada", "iss": "https://as", "client_id": "c", "scope": "a b", "exp": 1790000000.0}},
			want: &oauth.Principal{Subject: "ada", Issuer: "https://as", ClientID: "c", Scopes: []string{"a", "b"}, Expires: exp,
				Claims: map[string]any{"sub": "ada", "iss": "https://as", "client_id": "c", "scope": "a b", "exp": 1790000000.0}}},
		{name: "struct claims", user: &token{Valid: true, Claims: &custom{Scope: "x", Client: "c", registered: registered{"https://as", "ada", 1790000000}}},
			want: &oauth.Principal{Subject: "ada", Issuer: "https://as", ClientID: "c", Scopes: []string{"x"}, Expires: exp,
				Claims: map[string]any{"sub": "ada", "iss": "https://as", "azp": "c", "scope": "x", "exp": 1790000000.0}}},
		{name: "token by value, scopes in a list", user: token{Valid: true, Claims: mapClaims{"sub": "ada", "scp": []string{"a", "b"}}},
			want: &oauth.Principal{Subject: "ada", Scopes: []string{"a", "b"}, Claims: map[string]any{"sub": "ada", "scp": []any{"a", "b"}}}},
		{name: "client without a subject", user: &token{Valid: true, Claims: mapClaims{"azp": "c"}},
			want: &oauth.Principal{Subject: "c", ClientID: "c", Claims: map[string]any{"azp": "c"}}},
		{name: "token that is not valid", user: &token{Claims: mapClaims{"sub": "ada"}}, warn: "*echomcp.token"},
		{name: "token whose subject is a number", user: &token{Valid: true, Claims: mapClaims{"sub": 7, "azp": "c"}}, warn: "*echomcp.token"},
		{name: "token whose subject is in a list", user: &token{Valid: true, Claims: mapClaims{"sub": []string{"ada"}, "azp": "c"}}, warn: "*echomcp.token"},
		{name: "token without claims", user: &token{Valid: true}, warn: "*echomcp.token"},
		{name: "token with nil claims", user: &token{Valid: true, Claims: (*custom)(nil)}, warn: "*echomcp.token"},
		{name: "token without a subject and a client", user: &token{Valid: true, Claims: mapClaims{"aud": "x"}}, warn: "*echomcp.token"},
		{name: "claims that do not encode", user: &token{Valid: true, Claims: mapClaims{"sub": "ada", "f": func() {}}}, warn: "*echomcp.token"},
		{name: "nil token", user: (*token)(nil), warn: "*echomcp.token"},
		{name: "a name", user: "ada", warn: "string"},
		{name: "another struct", user: struct{ Name string }{"ada"}, warn: "struct { Name string }"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var log bytes.Buffer
			u := &users{logger: slog.New(slog.NewTextHandler(&log, nil))}
			c := echo.New().NewContext(httptest.NewRequest(http.MethodPost, "/", nil), httptest.NewRecorder())
			c.Set("user", test.user)
			for range 2 {
				require.Equal(t, test.want, u.principal(c))
			}
			if test.warn == "" {
				require.Empty(t, log.String())
			} else {
				require.Equal(t, 1, strings.Count(log.String(), "\n"))
				require.Contains(t, log.String(), test.warn)
			}
		})
	}

	c := echo.New().NewContext(httptest.NewRequest(http.MethodPost, "/", nil).WithContext(oauth.NewContext(t.Context(), given)), nil)
	c.Set("user", "another user")
	require.Same(t, given, (&users{}).principal(c), "the principal in the context stays")
}

func TestMistakesInMountingPanic(t *testing.T) {
	a := newApp(t)
	require.PanicsWithValue(t, "streamable: the server is nil; look at the error of mcpkit.New", func() { Mount(a.e, "/mcp", nil) })
	defer Mount(a.e, "/mcp", a.rpc).Close()
	require.PanicsWithValue(t, "echomcp: the path /mcp has a handler already; mount each server at its own path", func() { Mount(a.e, "/mcp", a.rpc) })
}
