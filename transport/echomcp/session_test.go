package echomcp_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport/echomcp"
	"github.com/mcpkit/mcpkit-go/transport/sse"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

// mountAll mounts all transports in one app. It returns the function that shuts down everything.
func mountAll(app *echo.Echo, srv *mcpkit.Server, logger *slog.Logger) (shutdown func(context.Context) error) {
	mcp := echomcp.Mount(app, "/mcp", srv, echomcp.Streamable(&streamable.Options{Logger: logger}))
	old := sse.NewHandler(srv, &sse.Options{Logger: logger})
	app.Any("/sse", echomcp.Wrap(old))
	ws := websocket.NewHandler(srv, &websocket.Options{Logger: logger})
	app.GET("/ws", echomcp.Wrap(ws))
	return func(ctx context.Context) error {
		return echomcp.Shutdown(ctx, app, mcp, old, ws)
	}
}

// Porter returns the caller.
type Porter struct{}

// Who returns the user of the app, and the route, the path and the principal of the call.
func (Porter) Who(ctx context.Context, call *mcpkit.Call) string {
	name, path := "?", "?"
	if c, ok := echomcp.FromContext(ctx); ok {
		name, path = fmt.Sprint(c.Get("name")), c.Path()
	}
	subject := "nobody"
	if p := oauth.FromContext(ctx); p != nil {
		subject = p.Subject
	}
	return name + " " + path + " " + call.Path() + " " + subject
}

// Count reports progress.
func (Porter) Count(call *mcpkit.Call) string {
	call.Progress(1, 2, "half")
	return "two"
}

// A lobby is an app with a porter.
type lobby struct {
	t    *testing.T
	log  *testkit.Buffer
	url  string
	http *http.Client
}

func newLobby(t *testing.T, mount func(app *echo.Echo, srv *mcpkit.Server, logger *slog.Logger) func(context.Context) error, before ...echo.MiddlewareFunc) *lobby {
	t.Helper()
	l := &lobby{t: t, log: &testkit.Buffer{}, http: &http.Client{Transport: &http.Transport{}}}
	logger := slog.New(slog.NewTextHandler(l.log, nil))
	app := echo.New()
	app.Use(before...)
	srv, err := mcpkit.New(&Porter{}, mcpkit.Logger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	shutdown := mount(app, srv, logger)
	server := httptest.NewServer(app)
	l.url = server.URL
	t.Cleanup(func() {
		l.http.CloseIdleConnections()
		assert.NoError(t, shutdown(context.Background()))
		server.Close()
		assert.NoError(t, srv.Close())
	})
	return l
}

// targets returns the server on every transport, with the versions that each carries.
func (l *lobby) targets() map[string]client.Target {
	return map[string]client.Target{
		"/mcp": client.URL(l.url + "/mcp"),
		"/sse": client.HTTPSSE(l.url + "/sse"),
		"/ws":  client.URL(strings.Replace(l.url, "http", "ws", 1) + "/ws"),
	}
}

func (l *lobby) dial(target client.Target, opts ...client.DialOption) (*client.Client, error) {
	return client.Dial(l.t.Context(), target, append([]client.DialOption{client.Logger(slog.New(slog.DiscardHandler))}, opts...)...)
}

// requireWorks calls the server on every transport, as a user of the app.
func (l *lobby) requireWorks(name, subject string, opts ...client.DialOption) {
	l.t.Helper()
	for path, target := range l.targets() {
		c, err := l.dial(target, opts...)
		require.NoError(l.t, err, path)
		got, err := client.Call[string](l.t.Context(), c, "who", nil)
		require.NoError(l.t, err, path)
		require.Equal(l.t, name+" "+path+" "+path+" "+subject, got)
		var progress []string
		got, err = client.Call[string](l.t.Context(), c, "count", nil, client.OnProgress(func(p *protocol.ProgressParams) { progress = append(progress, p.Message) }))
		require.NoError(l.t, err, path)
		require.Equal(l.t, "two", got)
		require.Equal(l.t, []string{"half"}, progress, path)
		require.NoError(l.t, c.Close())
	}
}

func TestTheHandlerAnswersBelowItsPath(t *testing.T) {
	srv, err := mcpkit.New(&Porter{})
	require.NoError(t, err)
	mux, app := http.NewServeMux(), echo.New()
	mux.Handle("/mcp/", streamable.NewHandler(srv, nil))
	echomcp.Mount(app, "/mcp/*", srv)
	for name, h := range map[string]http.Handler{"net/http": mux, "echo": app} {
		server := httptest.NewServer(h)
		defer server.Close()
		c, err := client.Dial(t.Context(), client.URL(server.URL+"/mcp/issues"))
		require.NoError(t, err)
		defer c.Close()
		got, err := client.Call[string](t.Context(), c, "who", nil)
		require.NoError(t, err)
		require.Contains(t, got, " /mcp/issues ", name)
	}
}

func named(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		name := c.Request().Header.Get("User")
		c.Set("name", name)
		c.Set("user", &oauth.Principal{Subject: name})
		return next(c)
	}
}

func TestEveryTransportWorksBehindTheMiddlewareOfEcho(t *testing.T) {
	tests := map[string][]echo.MiddlewareFunc{
		"Recover":        {middleware.Recover()},
		"RequestID":      {middleware.RequestID()},
		"CORS":           {middleware.CORS()},
		"BodyLimit":      {middleware.BodyLimit("1K")},
		"ContextTimeout": {middleware.ContextTimeout(time.Minute)},
		"Gzip":           {middleware.Gzip()},
		"Gzip of large":  {middleware.GzipWithConfig(middleware.GzipConfig{MinLength: 2048})},
		"BodyDump":       {middleware.BodyDump(func(echo.Context, []byte, []byte) {})},
		"Decompress":     {middleware.Decompress()},
		"Secure":         {middleware.Secure()},
	}
	var all []echo.MiddlewareFunc
	for name, m := range tests {
		if name != "Gzip of large" {
			all = append(all, m...)
		}
	}
	tests["all"], tests["none"] = all, nil
	for name, m := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLobby(t, mountAll, append(m, named)...)
			l.requireWorks("ada", "ada", client.Header("User", "ada"))
			require.Empty(t, l.log.String())
		})
	}
}

func TestStatusOfUpgradesIsKnownToTheApp(t *testing.T) {
	statuses := make(chan int, 10)
	cookies := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			c.Response().Before(func() { c.SetCookie(&http.Cookie{Name: "seen", Value: "yes"}) })
			err := next(c)
			statuses <- c.Response().Status
			return err
		}
	}
	l := newLobby(t, mountAll, middleware.Gzip(), cookies)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.url+"/ws", nil)
	require.NoError(t, err)
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
		"Sec-WebSocket-Protocol": "mcp", "Accept-Encoding": "gzip",
	} {
		r.Header.Set(name, value)
	}
	resp, err := l.http.Do(r)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	require.Equal(t, "seen=yes", resp.Header.Get("Set-Cookie"))
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusSwitchingProtocols, <-statuses)

	r.Header.Del("Sec-WebSocket-Protocol")
	resp, err = l.http.Do(r)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusBadRequest, <-statuses)
}

func TestBehindBufferingMiddlewareStreamsAndWebSocketsAreRefused(t *testing.T) {
	//lint:ignore SA1019 apps use it
	l := newLobby(t, mountAll, middleware.Recover(), middleware.TimeoutWithConfig(middleware.TimeoutConfig{Timeout: time.Minute}))
	_, err := l.dial(l.targets()["/ws"])
	require.ErrorContains(t, err, "500")
	_, err = l.dial(l.targets()["/sse"])
	require.ErrorContains(t, err, "500")
	require.Contains(t, l.log.String(), "sse: the response cannot be streamed; does a middleware buffer it?")
	resp, err := l.http.Get(l.url + "/ws")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusUpgradeRequired, resp.StatusCode, "a request that is not an upgrade gets its own status")
}

func TestDeadlinesOfRequestsDoNotEndWebSockets(t *testing.T) {
	begun := make(chan context.Context, 1)
	hurry := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			ctx, cancel := context.WithTimeout(c.Request().Context(), time.Millisecond)
			defer cancel()
			c.SetRequest(c.Request().WithContext(ctx))
			begun <- ctx
			return next(c)
		}
	}
	l := newLobby(t, mountAll, named, hurry)
	c, err := l.dial(l.targets()["/ws"], client.Version(protocol.V20250618), client.Header("User", "eve"))
	require.NoError(t, err)
	<-(<-begun).Done()
	got, err := client.Call[string](t.Context(), c, "who", nil)
	require.NoError(t, err)
	require.Equal(t, "eve /ws /ws eve", got)
	require.NoError(t, c.Close())
}

// Sleeper has a tool that returns when its context ends.
type Sleeper struct{ started chan struct{} }

// Sleep waits for the end of its context.
func (s *Sleeper) Sleep(ctx context.Context) error {
	s.started <- struct{}{}
	<-ctx.Done()
	return errors.New("I was woken")
}

// The app runs as in the documentation.
func TestEveryCallIsAnsweredWhenAnAppShutsDown(t *testing.T) {
	service := &Sleeper{make(chan struct{}, 10)}
	srv, err := mcpkit.New(service, mcpkit.Logger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	app := echo.New()
	app.HideBanner, app.HidePort = true, true
	app.Listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	base := "http://" + app.Listener.Addr().String()
	shutdown := mountAll(app, srv, slog.New(slog.DiscardHandler))
	served := make(chan error, 1)
	go func() { served <- app.Start("") }()

	answers := make(chan error, 3)
	for _, target := range []client.Target{client.URL(base + "/mcp"), client.HTTPSSE(base + "/sse"), client.URL(strings.Replace(base, "http", "ws", 1) + "/ws")} {
		c, err := client.Dial(t.Context(), target, client.Logger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		defer c.Close()
		go func() {
			_, err := client.Call[string](context.Background(), c, "sleep", nil)
			answers <- err
		}()
		<-service.started
	}
	bound, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- shutdown(bound) }()
	// All handlers refuse new calls at once: none waits for the calls of another.
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, path := range []string{"/mcp", "/sse", "/ws"} {
		require.Eventually(t, func() bool { return status(t, web, base+path) == http.StatusServiceUnavailable }, time.Minute, time.Millisecond, path)
	}
	cancel()
	for range 3 {
		err := <-answers
		require.Error(t, err)
		require.Regexp(t, "I was woken|internal error|cancel|shutting down", err.Error(), "a response, not a broken connection")
	}
	require.NoError(t, <-ended, "cancelled calls are not an error")
	require.ErrorIs(t, <-served, http.ErrServerClosed)
	require.NoError(t, srv.Close())
}

// status returns the status of a request that begins a call or a stream.
func status(t *testing.T, web *http.Client, url string) int {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	require.NoError(t, err)
	switch {
	case strings.HasSuffix(url, "/mcp"):
		r, err = http.NewRequest(http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
	case strings.HasSuffix(url, "/ws"):
		for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-Websocket-Version": "13",
			"Sec-Websocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-Websocket-Protocol": "mcp"} {
			r.Header.Set(name, value)
		}
	}
	resp, err := web.Do(r)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}
