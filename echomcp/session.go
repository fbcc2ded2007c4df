package echomcp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"github.com/labstack/echo/v4"

	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/sse"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

// SSE sets the options of HTTP+SSE, for [MountSSE]. Nil means its zero options.
func SSE(opts *sse.Options) Option {
	return func(c *config) { c.sse = opts }
}

// WebSocket sets the options of WebSockets, for [MountWebSocket]. Nil means its zero options.
func WebSocket(opts *websocket.Options) Option {
	return func(c *config) { c.websocket = opts }
}

// MountSSE serves h at path of r to clients that know HTTP+SSE of 2024-11-05 alone, by GET and POST, and answers preflights as [Mount]
// does. Every POST has to come from the principal whose stream it is for.
//
// The stream lasts as long as the session, or until the credential expires that opened it: a deadline that middleware such as ContextTimeout
// sets for its request does not end it. (Once that has passed, a client that went away without a word is missed when the next comment is
// sent to it.)
// Middleware that buffers replies, such as echo's deprecated Timeout, has no streams: they are refused by 500, and the log says so.
//
// The handler that it returns is for ending: give it to [Shutdown].
func MountSSE(r Router, path string, h transport.Handler, opts ...Option) *sse.Handler {
	refuseNil("MountSSE", h)
	conf := newConfig(opts)
	handler := sse.NewHandler(h, conf.sse)
	var logger *slog.Logger
	if conf.sse != nil {
		logger = conf.sse.Logger
	}
	m := conf.mount(handler, logger)
	r.Add(http.MethodGet, path, m.serveSession, conf.middleware...)
	for _, verb := range []string{http.MethodPost, http.MethodOptions} {
		r.Add(verb, path, m.serveMessage, conf.middleware...)
	}
	return handler
}

// serveSession serves a request that lasts as long as a session.
func (m *mount) serveSession(c echo.Context) error {
	held := &holder{c: c}
	defer held.drop()
	ctx, cancel := unhurried(c.Request().Context())
	defer cancel()
	m.handler.ServeHTTP(c.Response(), m.request(c, context.WithValue(ctx, contextKey{}, held)))
	return nil
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

// serveMessage takes a message to its session. Its echo.Context is of no use to methods, since the request is over before they run: they
// see that of the stream.
func (m *mount) serveMessage(c echo.Context) error {
	m.handler.ServeHTTP(c.Response(), m.request(c, c.Request().Context()))
	return nil
}

// MountWebSocket serves h at path of r over WebSockets, by GET. All calls of a connection come from the principal that opened it, whose
// credential ends it when it expires. Deadlines of the request do not end it.
//
// Behind middleware that buffers replies, such as echo's deprecated Timeout, nothing can become a WebSocket: it is refused by 500, and the
// log says so. Gzip leaves WebSockets alone.
//
// The handler that it returns is for ending: give it to [Shutdown]. The end of the app does not end WebSockets.
func MountWebSocket(r Router, path string, h transport.Handler, opts ...Option) *websocket.Handler {
	refuseNil("MountWebSocket", h)
	conf := newConfig(opts)
	handler := websocket.NewHandler(h, conf.websocket)
	var logger *slog.Logger
	if conf.websocket != nil {
		logger = conf.websocket.Logger
	}
	u := &upgrades{mount: conf.mount(handler, logger)}
	r.Add(http.MethodGet, path, u.serve, conf.middleware...)
	return handler
}

type upgrades struct {
	*mount
	once sync.Once // for the warning
}

// serve makes a request a connection, and serves it until it ends.
func (u *upgrades) serve(c echo.Context) error {
	w := c.Response()
	if _, ok := innermost(w).(http.Hijacker); !ok && c.IsWebSocket() {
		u.once.Do(func() {
			u.logger.Warn("echomcp: a request cannot become a WebSocket; is there a middleware that buffers, such as Timeout?", "path", c.Path())
		})
		http.Error(w, "this server cannot make a WebSocket of the request", http.StatusInternalServerError)
		return nil
	}
	held := &holder{c: c}
	defer held.drop()
	u.handler.ServeHTTP(upgrader{w}, u.request(c, context.WithValue(c.Request().Context(), contextKey{}, held)))
	return nil
}

// innermost returns the response writer that all others wrap.
func innermost(w http.ResponseWriter) http.ResponseWriter {
	for {
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok || outer.Unwrap() == nil {
			return w
		}
		w = outer.Unwrap()
	}
}

// An upgrader says that the protocol is switched before it is. Middleware such as Gzip keeps a status back until there is a body, and no body
// follows this one.
type upgrader struct{ *echo.Response }

// WriteHeader implements [http.ResponseWriter].
func (u upgrader) WriteHeader(code int) {
	if code == http.StatusSwitchingProtocols {
		outer := u.Writer
		u.Writer = innermost(outer)
		defer func() { u.Writer = outer }()
	}
	u.Response.WriteHeader(code)
}
