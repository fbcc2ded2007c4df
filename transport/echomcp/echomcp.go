// Package echomcp mounts an MCP server in an echo v4 app, with the app's middleware and users.
//
//	e := echo.New()
//	e.Use(middleware.Recover(), echojwt.WithConfig(config))
//	echomcp.Mount(e, "/mcp", server)
//
// [Wrap] does the same for clients of HTTP+SSE and WebSockets:
//
//	e.Any("/sse", echomcp.Wrap(sse.NewHandler(server, nil)))
//	e.GET("/ws", echomcp.Wrap(websocket.NewHandler(server, nil)))
//
// Compared with echo.WrapHandler, this package also gives methods the echo.Context and the user.
//
// Middleware that buffers responses, such as echo's deprecated Timeout, prevents streams: each call
// gets one JSON response, and HTTP+SSE and WebSockets do not work. ContextTimeout has no such
// effect, but ends the streams of HTTP+SSE. Behind Gzip, streams work, but a method cannot end its
// stream early ([transport.StreamCloser]).
package echomcp

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/sse"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// A Router adds routes. *echo.Echo and *echo.Group are Routers.
type Router interface {
	Add(method, path string, handler echo.HandlerFunc, middleware ...echo.MiddlewareFunc) *echo.Route
}

type config struct {
	streamable *streamable.Options
	principal  func(echo.Context) *oauth.Principal
	middleware []echo.MiddlewareFunc
}

// An Option configures [Mount] and [Wrap].
type Option func(*config)

// Streamable sets the options of Streamable HTTP. Nil means the zero value. It is for Mount alone.
func Streamable(opts *streamable.Options) Option {
	return func(c *config) { c.streamable = cmp.Or(opts, c.streamable) }
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
	return func(c *config) { c.principal = f }
}

// Use adds echo middleware to the routes of Mount only.
func Use(middleware ...echo.MiddlewareFunc) Option {
	return func(c *config) { c.middleware = append(c.middleware, middleware...) }
}

func newConfig(opts []Option) *config {
	c := &config{streamable: new(streamable.Options)}
	for _, opt := range opts {
		opt(c)
	}
	if c.principal == nil {
		c.principal = (&users{logger: cmp.Or(c.streamable.Logger, slog.Default())}).principal
	}
	return c
}

// Mount serves h over Streamable HTTP at path of r (POST, GET and DELETE). It answers preflight
// requests (OPTIONS) of the origins in streamable.Options.AllowedOrigins, unless echo's CORS
// middleware has answered them. It serves the server card without the middleware of [Use].
//
// Pass the handler that Mount returns to [Shutdown].
func Mount(r Router, path string, h transport.Handler, opts ...Option) *streamable.Handler {
	if app, ok := r.(*echo.Echo); ok {
		for _, route := range app.Routes() {
			if route.Method == http.MethodPost && route.Path == path {
				panic("echomcp: the path " + path + " has a handler already; mount each server at its own path")
			}
		}
	}
	c := newConfig(opts)
	handler := streamable.NewHandler(h, c.streamable)
	for _, verb := range []string{http.MethodPost, http.MethodGet, http.MethodDelete, http.MethodOptions} {
		r.Add(verb, path, c.wrap(handler), c.middleware...)
	}
	for _, verb := range []string{http.MethodGet, http.MethodHead, http.MethodOptions} {
		r.Add(verb, streamable.CardPath(path), echo.WrapHandler(handler))
	}
	return handler
}

// Wrap returns an echo handler that serves with the handler of a transport, such as those of packages
// sse and websocket. Pass h to [Shutdown], since shutting down the app alone does not close WebSockets.
//
// Each POST of HTTP+SSE must come from the principal that opened the stream. All calls on a WebSocket
// come from the principal that opened it. Both end when the credential expires that opened them.
func Wrap(h http.Handler, opts ...Option) echo.HandlerFunc { return newConfig(opts).wrap(h) }

func (conf *config) wrap(h http.Handler) echo.HandlerFunc {
	_, old := h.(*sse.Handler)
	return func(c echo.Context) error {
		r := c.Request()
		ctx := r.Context()
		// p may be nil: it replaces the principal that was in the context before.
		if p := conf.principal(c); p != oauth.FromContext(ctx) {
			ctx = oauth.NewContext(ctx, p)
		}
		// A POST of HTTP+SSE may end before its call, which gets the echo.Context of the stream.
		if !old || r.Method != http.MethodPost {
			held := &holder{c: c}
			// echo reuses the context for another request when this one ends.
			defer held.drop()
			ctx = context.WithValue(ctx, contextKey{}, held)
		}
		w := http.ResponseWriter(c.Response())
		if c.IsWebSocket() {
			if _, ok := innermost(w).(http.Hijacker); !ok {
				return echo.NewHTTPError(http.StatusInternalServerError, "no WebSocket behind middleware that buffers responses")
			}
			w = upgrader{c.Response()}
		}
		h.ServeHTTP(w, r.WithContext(ctx))
		return nil
	}
}

// An upgrader sends status 101 at once. Middleware such as Gzip holds a status back until there is
// a body, and this one has none.
type upgrader struct{ *echo.Response }

// WriteHeader sends 101 through the innermost writer.
func (u upgrader) WriteHeader(code int) {
	if code == http.StatusSwitchingProtocols {
		u.Writer = innermost(u.Writer)
	}
	u.Response.WriteHeader(code)
}

// innermost returns the response writer that the others wrap.
func innermost(w http.ResponseWriter) http.ResponseWriter {
	for {
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok || outer.Unwrap() == nil {
			return w
		}
		w = outer.Unwrap()
	}
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

// A Handler serves a mounted transport, such as a *streamable.Handler.
type Handler interface {
	// Shutdown rejects new requests and lets calls in flight finish until ctx ends.
	Shutdown(ctx context.Context) error
}

// An App serves the routes. *echo.Echo and *http.Server are Apps.
type App interface {
	Shutdown(ctx context.Context) error
	Close() error
}

// lastMoment is how long the app may take to send the last responses after ctx has ended.
const lastMoment = time.Second

// Shutdown shuts down the handlers that are mounted in an app, then the app. The app alone would
// wait for their streams, and would not close WebSockets. All handlers shut down at the same time.
// When ctx ends, they cancel the calls that are still in flight and respond to them, which takes up
// to two seconds; that is not an error. Shutdown returns an error if the app cannot close its
// listener or a connection.
func Shutdown(ctx context.Context, app App, handlers ...Handler) error {
	var ending sync.WaitGroup
	for _, h := range handlers {
		// Ends at most a second after ctx.
		ending.Go(func() { _ = h.Shutdown(ctx) }) // the error says that calls were cancelled
	}
	ending.Wait()
	// ctx may have ended, and the last responses must still be sent.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastMoment)
	defer cancel()
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) > lastMoment {
		last = ctx
	}
	if app.Shutdown(last) == nil {
		return nil
	}
	return app.Close()
}
