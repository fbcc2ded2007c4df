// Package echomcp mounts an MCP server in an echo v4 app, with the app's middleware and users.
//
//	e := echo.New()
//	e.Use(middleware.Recover(), echojwt.WithConfig(config))
//	echomcp.Mount(e, "/mcp", server)
//
// [MountSSE] and [MountWebSocket] mount the same server for clients of HTTP+SSE and WebSockets.
//
// Compared with echo.WrapHandler(streamable.NewHandler(server, nil)), this package also gives
// methods the echo.Context and the user.
//
// Middleware that buffers responses, such as echo's deprecated Timeout, prevents streams: each call
// gets one JSON response, and HTTP+SSE and WebSockets do not work. ContextTimeout has no such
// effect. Behind Gzip, streams work, but a method cannot end its stream early
// ([transport.StreamCloser]).
package echomcp

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"sync"

	"github.com/labstack/echo/v4"

	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/sse"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

// A Router adds routes. *echo.Echo and *echo.Group are Routers.
type Router interface {
	Add(method, path string, handler echo.HandlerFunc, middleware ...echo.MiddlewareFunc) *echo.Route
}

// An Option configures [Mount], [MountSSE] and [MountWebSocket].
type Option interface {
	MountOption
	SSEOption
	WebSocketOption
}

// A MountOption configures [Mount].
type MountOption interface{ forMount(*config) }

// An SSEOption configures [MountSSE].
type SSEOption interface{ forSSE(*config) }

// A WebSocketOption configures [MountWebSocket].
type WebSocketOption interface{ forWebSocket(*config) }

// An option is an [Option].
type option func(*config)

func (o option) forMount(c *config)     { o(c) }
func (o option) forSSE(c *config)       { o(c) }
func (o option) forWebSocket(c *config) { o(c) }

type config struct {
	streamable *streamable.Options
	sse        *sse.Options
	websocket  *websocket.Options
	principal  func(echo.Context) *oauth.Principal
	middleware []echo.MiddlewareFunc
}

// Streamable sets the options of Streamable HTTP. Nil means the zero value.
func Streamable(opts *streamable.Options) MountOption {
	return option(func(c *config) { c.streamable = cmp.Or(opts, new(streamable.Options)) })
}

// Principal sets the function that returns the principal of a request, from what the app's
// middleware stored in its context. Nil means that the request is not authenticated. Sessions
// belong to the principal that opened them.
//
// By default, a principal in the context of the request stays. Otherwise the principal comes from
// c.Get("user"): either an *oauth.Principal, or a token like those of golang-jwt, which is a struct
// with the fields Claims and Valid. The claims sub, iss, client_id or azp, scope or scp, and exp
// are used.
func Principal(f func(c echo.Context) *oauth.Principal) Option {
	return option(func(c *config) { c.principal = f })
}

// Use adds echo middleware to these routes only.
func Use(middleware ...echo.MiddlewareFunc) Option {
	return option(func(c *config) { c.middleware = append(c.middleware, middleware...) })
}

// Mount serves h over Streamable HTTP at path of r (POST, GET and DELETE). It answers preflight
// requests (OPTIONS) of the origins in streamable.Options.AllowedOrigins, unless echo's CORS
// middleware has answered them. It panics if h is nil.
//
// Pass the handler that Mount returns to [Shutdown].
func Mount(r Router, path string, h transport.Handler, opts ...MountOption) *streamable.Handler {
	refuseNil("Mount", h)
	conf := newConfig(opts, MountOption.forMount)
	handler := streamable.NewHandler(h, conf.streamable)
	m := conf.mount(handler, conf.streamable.Logger)
	for _, verb := range []string{http.MethodPost, http.MethodGet, http.MethodDelete, http.MethodOptions} {
		r.Add(verb, path, m.serve, conf.middleware...)
	}
	return handler
}

// refuseNil panics at the mount if the server is nil, rather than at each request.
func refuseNil(where string, h transport.Handler) {
	if v := reflect.ValueOf(h); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		panic("echomcp: " + where + ": the server is nil; make one with mcpkit.New, and look at its error")
	}
}

func newConfig[O any](opts []O, apply func(O, *config)) *config {
	conf := &config{streamable: new(streamable.Options), sse: new(sse.Options), websocket: new(websocket.Options)}
	for _, opt := range opts {
		apply(opt, conf)
	}
	return conf
}

// mount returns what the routes of a handler share. The logger is that of the transport's options,
// or nil.
func (conf *config) mount(handler http.Handler, logger *slog.Logger) *mount {
	logger = cmp.Or(logger, slog.Default())
	m := &mount{handler: handler, logger: logger, principal: conf.principal}
	if m.principal == nil {
		m.principal = (&users{logger: logger}).principal
	}
	return m
}

type mount struct {
	handler   http.Handler
	logger    *slog.Logger
	principal func(echo.Context) *oauth.Principal
}

// serve serves one request.
func (m *mount) serve(c echo.Context) error { return m.hold(c, c.Response(), c.Request().Context()) }

// hold serves the request of c with ctx, to which it adds the echo.Context and the principal.
func (m *mount) hold(c echo.Context, w http.ResponseWriter, ctx context.Context) error {
	held := &holder{c: c}
	// echo reuses the context for another request when this one ends.
	defer held.drop()
	m.handler.ServeHTTP(w, m.request(c, context.WithValue(ctx, contextKey{}, held)))
	return nil
}

// request returns the request of c with ctx, to which it adds the principal.
func (m *mount) request(c echo.Context, ctx context.Context) *http.Request {
	// p may be nil: it replaces the principal that was in the context before.
	if p := m.principal(c); p != oauth.FromContext(ctx) {
		ctx = oauth.NewContext(ctx, p)
	}
	r := c.Request().WithContext(ctx)
	if r.ContentLength < 0 || r.Header.Get("Content-Encoding") != "" {
		r.Body = limitedBody{r.Body}
	}
	return r
}

// A limitedBody turns the error of echo's BodyLimit into the error of net/http that transports
// know.
type limitedBody struct{ io.ReadCloser }

func (b limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if he, ok := errors.AsType[*echo.HTTPError](err); ok && he.Code == http.StatusRequestEntityTooLarge {
		err = &http.MaxBytesError{}
	}
	return n, err
}

type contextKey struct{}

// A holder returns the echo.Context until the request ends.
type holder struct {
	mu sync.Mutex
	c  echo.Context
}

func (h *holder) drop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.c = nil
}

// FromContext returns the echo.Context of the request that ctx belongs to. All calls on an HTTP+SSE
// stream or a WebSocket share that of the request that opened it. FromContext returns false if ctx
// belongs to no request, or if the request has ended, since echo reuses the echo.Context for other
// requests. A goroutine that outlives its method must read what it needs before. Do not use the
// echo.Context to respond.
func FromContext(ctx context.Context) (echo.Context, bool) {
	h, ok := ctx.Value(contextKey{}).(*holder)
	if !ok {
		return nil, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.c, h.c != nil
}
