// Package echomcp mounts an MCP server in an app made with echo v4, behind the middleware and with the users
// that the app has.
//
//	e := echo.New()
//	e.Use(middleware.Recover(), echojwt.WithConfig(config))
//	echomcp.Mount(e, "/mcp", server)
//
// [MountSSE] and [MountWebSocket] mount the same server for clients that speak HTTP+SSE or WebSocket, beside it.
//
// echo.WrapHandler(streamable.NewHandler(server, nil)) serves as well; what this package adds is that methods
// see the echo.Context and the user. Middleware that buffers replies, such as echo's deprecated
// Timeout, leaves one JSON reply for each call, and neither HTTP+SSE nor WebSocket; ContextTimeout does not have that fault. Behind
// Gzip streams work, but a method cannot end its stream early ([transport.StreamCloser]).
package echomcp

import (
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

// A Router is where routes are added: *echo.Echo and *echo.Group are.
type Router interface {
	Add(method, path string, handler echo.HandlerFunc, middleware ...echo.MiddlewareFunc) *echo.Route
}

// An Option changes how [Mount], [MountSSE] and [MountWebSocket] mount. Those that are for another binding change nothing, so that one
// list of options does for all three.
type Option func(*config)

type config struct {
	streamable *streamable.Options
	sse        *sse.Options
	websocket  *websocket.Options
	principal  func(echo.Context) *oauth.Principal
	middleware []echo.MiddlewareFunc
}

// Streamable sets the options of Streamable HTTP, for [Mount]. Nil means its zero options.
func Streamable(opts *streamable.Options) Option {
	return func(c *config) { c.streamable = opts }
}

// Principal says who a request comes from, from what the app's middleware left in its context; nil means nobody.
// Sessions belong to the principal that opened them.
//
// Without this option a principal that is in the context of the request already stays. Otherwise it is made
// from c.Get("user"): an *oauth.Principal as it is, or a token like those of golang-jwt, a struct with
// the fields Claims and Valid, of which sub, iss, client_id or azp, scope or scp, and exp are understood.
func Principal(f func(c echo.Context) *oauth.Principal) Option {
	return func(c *config) { c.principal = f }
}

// Use adds middleware to the routes of the server alone.
func Use(middleware ...echo.MiddlewareFunc) Option {
	return func(c *config) { c.middleware = append(c.middleware, middleware...) }
}

// Mount serves h at path of r by POST, GET and DELETE, and answers the preflights (OPTIONS) of pages of
// streamable.Options.AllowedOrigins where echo's CORS middleware did not.
//
// The handler that it returns is for ending: give it to [Shutdown].
func Mount(r Router, path string, h transport.Handler, opts ...Option) *streamable.Handler {
	refuseNil("Mount", h)
	conf := newConfig(opts)
	handler := streamable.NewHandler(h, conf.streamable)
	var logger *slog.Logger
	if conf.streamable != nil {
		logger = conf.streamable.Logger
	}
	m := conf.mount(handler, logger)
	for _, verb := range []string{http.MethodPost, http.MethodGet, http.MethodDelete, http.MethodOptions} {
		r.Add(verb, path, m.serve, conf.middleware...)
	}
	return handler
}

// refuseNil panics when there is no server, rather than each request.
func refuseNil(where string, h transport.Handler) {
	if v := reflect.ValueOf(h); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		panic("echomcp: " + where + ": the server is nil; make one with mcpkit.New, and look at its error")
	}
}

func newConfig(opts []Option) *config {
	conf := new(config)
	for _, opt := range opts {
		opt(conf)
	}
	return conf
}

// mount returns what the routes of a handler have in common. Logger is that of the binding's options, nil where they have none.
func (conf *config) mount(handler http.Handler, logger *slog.Logger) *mount {
	if logger == nil {
		logger = slog.Default()
	}
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

// serve hands one request over, with what the app knows of it in its context.
func (m *mount) serve(c echo.Context) error {
	held := &holder{c: c}
	// echo uses the context for another request as soon as this one is over.
	defer held.drop()
	m.handler.ServeHTTP(c.Response(), m.request(c, context.WithValue(c.Request().Context(), contextKey{}, held)))
	return nil
}

// request is what a handler gets of the request of c: with ctx, to which it adds who is asking.
func (m *mount) request(c echo.Context, ctx context.Context) *http.Request {
	// Also nobody, if that is who it is: whoever was in the context before is not it then.
	if p := m.principal(c); p != oauth.FromContext(ctx) {
		ctx = oauth.NewContext(ctx, p)
	}
	r := c.Request().WithContext(ctx)
	if r.ContentLength < 0 {
		r.Body = limitedBody{r.Body}
	}
	return r
}

// A limitedBody tells the binding in the words of net/http that echo's BodyLimit met its limit.
type limitedBody struct{ io.ReadCloser }

func (b limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if he, ok := errors.AsType[*echo.HTTPError](err); ok && he.Code == http.StatusRequestEntityTooLarge {
		err = &http.MaxBytesError{}
	}
	return n, err
}

type contextKey struct{}

// A holder gives the echo.Context out as long as it belongs to the request.
type holder struct {
	mu sync.Mutex
	c  echo.Context
}

func (h *holder) drop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.c = nil
}

// FromContext returns the echo.Context of the request that ctx belongs to: where a connection is the session, the request that began it,
// which is the GET of an HTTP+SSE stream or the upgrade to a WebSocket, and which the calls of the session share. It reports false where
// there is none, and when the request is over: what the echo.Context holds may be another request's by then, so a goroutine
// that outlives its method must take what it needs before. The request must not be answered by it.
func FromContext(ctx context.Context) (echo.Context, bool) {
	h, ok := ctx.Value(contextKey{}).(*holder)
	if !ok {
		return nil, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.c, h.c != nil
}
