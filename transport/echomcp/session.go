package echomcp

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/labstack/echo/v4"

	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/sse"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

// SSE sets the options of HTTP+SSE. Nil means the zero value.
func SSE(opts *sse.Options) SSEOption {
	return option(func(c *config) { c.sse = cmp.Or(opts, new(sse.Options)) })
}

// WebSocket sets the options of WebSockets. Nil means the zero value.
func WebSocket(opts *websocket.Options) WebSocketOption {
	return option(func(c *config) { c.websocket = cmp.Or(opts, new(websocket.Options)) })
}

// MountSSE serves h over HTTP+SSE at path of r (GET and POST), for clients of version 2024-11-05.
// It answers preflight requests as [Mount] does, and panics if h is nil. Each POST must come from
// the principal that opened the stream.
//
// The stream ends with its session, or when the credential expires that opened it. Deadlines that
// middleware such as ContextTimeout sets for the request do not end it. (After such a deadline, the
// server notices a disconnect only when it sends the next comment.) Behind middleware that buffers
// responses, such as echo's deprecated Timeout, requests for a stream get status 500 and an error
// in the log.
//
// Pass the handler that MountSSE returns to [Shutdown].
func MountSSE(r Router, path string, h transport.Handler, opts ...SSEOption) *sse.Handler {
	refuseNil("MountSSE", h)
	conf := newConfig(opts, SSEOption.forSSE)
	handler := sse.NewHandler(h, conf.sse)
	m := conf.mount(handler, conf.sse.Logger)
	r.Add(http.MethodGet, path, m.serveSession, conf.middleware...)
	for _, verb := range []string{http.MethodPost, http.MethodOptions} {
		r.Add(verb, path, m.serveMessage, conf.middleware...)
	}
	return handler
}

// serveSession serves the request of a stream.
func (m *mount) serveSession(c echo.Context) error {
	ctx, cancel := unhurried(c.Request().Context())
	defer cancel()
	return m.hold(c, c.Response(), ctx)
}

// unhurried returns a context that ends when ctx does, unless that ends by a deadline.
func unhurried(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, hurried := ctx.Deadline(); !hurried {
		return ctx, func() {}
	}
	long, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			cancel()
		}
	})
	return long, func() { stop(); cancel() }
}

// serveMessage serves a POST. Methods get the echo.Context of the stream, since the POST may end
// before they run.
func (m *mount) serveMessage(c echo.Context) error {
	m.handler.ServeHTTP(c.Response(), m.request(c, c.Request().Context()))
	return nil
}

// MountWebSocket serves h over WebSockets at path of r (GET). It panics if h is nil. All calls on a
// connection come from the principal that opened it. The connection ends when the credential
// expires; deadlines of the request do not end it.
//
// Behind middleware that buffers responses, such as echo's deprecated Timeout, requests for a
// WebSocket get status 500 and an error in the log. Gzip does not affect WebSockets.
//
// Pass the handler that MountWebSocket returns to [Shutdown]; shutting down the app alone does not
// close WebSockets.
func MountWebSocket(r Router, path string, h transport.Handler, opts ...WebSocketOption) *websocket.Handler {
	refuseNil("MountWebSocket", h)
	conf := newConfig(opts, WebSocketOption.forWebSocket)
	handler := websocket.NewHandler(h, conf.websocket)
	u := &upgrades{mount: conf.mount(handler, conf.websocket.Logger)}
	r.Add(http.MethodGet, path, u.serve, conf.middleware...)
	return handler
}

type upgrades struct {
	*mount
	once sync.Once // for the warning
}

// serve upgrades a request to a WebSocket and serves it until it ends.
func (u *upgrades) serve(c echo.Context) error {
	w := c.Response()
	if _, ok := innermost(w).(http.Hijacker); !ok && c.IsWebSocket() {
		u.once.Do(func() {
			u.logger.Warn("echomcp: a request cannot become a WebSocket; check for middleware that buffers responses, such as Timeout", "path", c.Path())
		})
		http.Error(w, "this server cannot upgrade the request to a WebSocket", http.StatusInternalServerError)
		return nil
	}
	return u.hold(c, upgrader{w}, c.Request().Context())
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

// An upgrader sends status 101 at once. Middleware such as Gzip holds a status back until there is
// a body, and this one has none.
type upgrader struct{ *echo.Response }

// WriteHeader sends 101 through the innermost writer.
func (u upgrader) WriteHeader(code int) {
	if code == http.StatusSwitchingProtocols {
		outer := u.Writer
		u.Writer = innermost(outer)
		defer func() { u.Writer = outer }()
	}
	u.Response.WriteHeader(code)
}
