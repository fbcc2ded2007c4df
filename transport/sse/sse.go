// Package sse serves MCP over HTTP+SSE, the HTTP transport of protocol version 2024-11-05, for
// clients that know no later version (specification 2024-11-05, basic/transports). Package
// streamable implements its successor, Streamable HTTP. A server may offer both at two paths; see
// [Handler].
//
// A client opens an event stream with GET. The first event, "endpoint", names the URL for its
// messages. The client sends each message in a POST, which gets the status 202. The server sends
// everything in "message" events on the stream. The stream is the session: when it ends, its calls
// are cancelled. Package internal/conn describes order, cancellation and limits.
//
// A session is in the process that has its stream. A load balancer in front of several replicas has
// to send the messages of a client there, too.
package sse

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/transport"
)

// Defaults of [Options].
const (
	defaultMaxBodyBytes    = 4 << 20
	defaultMaxSessions     = 1000
	defaultMaxBytes        = 256 << 20
	defaultSessionIdle     = 30 * time.Minute
	defaultKeepAlive       = 25 * time.Second
	defaultWriteTimeout    = 30 * time.Second
	defaultShutdownTimeout = 10 * time.Second
)

// acceptTimeout is how long a POST waits for the session to take its message.
const acceptTimeout = 10 * time.Second

// Options configures a [Handler]. The zero value and nil are ready to use.
type Options struct {
	// Endpoint is the URL or path that clients send messages to, without the session ID, which the
	// server adds. Set it if a proxy changes paths. Empty means the path of the GET request.
	// Clients refuse an endpoint of another origin.
	Endpoint string

	// MaxBodyBytes limits the body of a POST. A larger body gets 413. Zero means 4 MiB.
	MaxBodyBytes int64

	// MaxSessions limits the open streams. Zero means 1,000. Beyond the limit, a new
	// stream evicts the one that was idle longest. If all have calls in flight, the client gets 503.
	MaxSessions int

	// MaxBytes limits the bytes of unanswered requests, of results being encoded and of unread
	// responses, of all sessions together. The first 64 KiB of each do not count. Beyond the limit, a
	// request gets -32603, "busy", or its POST 503, and a method is not called if its last results
	// were too large. A single session may need more. Zero means 256 MiB.
	MaxBytes int64

	// TrustedProxies are the networks of proxies whose X-Forwarded-For header is trusted. Behind
	// any other proxy, all callers without a principal count as one for rate limits.
	TrustedProxies []netip.Prefix

	// SessionIdle is how long a session may have neither messages nor calls in flight before the
	// server ends its stream. Zero means 30 minutes; a negative value means no limit.
	SessionIdle time.Duration

	// MaxInFlight limits the unanswered requests of a session. The server refuses more. Zero means
	// 1024.
	MaxInFlight int

	// MaxInFlightBytes limits the bytes of the unanswered requests of a session. Zero means 16 MiB.
	MaxInFlightBytes int64

	// AllowedOrigins are the origins, besides the server's own, whose pages may send requests.
	// AllowedHosts are the hosts that requests may name. Both work as in streamable.Options.
	AllowedOrigins []string
	AllowedHosts   []string

	// KeepAlive is how long a stream may be silent before the server sends a comment. Zero means 25
	// seconds; a negative value turns comments off.
	KeepAlive time.Duration

	// WriteTimeout is how long a client may read nothing while data waits before the server closes
	// its stream. Zero means 30 seconds.
	WriteTimeout time.Duration

	// ShutdownTimeout is how long calls may continue when the server shuts down. Then they are
	// cancelled. Zero means 10 seconds, which is what `docker stop` waits by default, and less than
	// the 30 s that a tool may take by default: if supervisors wait longer, set more than the
	// longest timeout of a tool.
	ShutdownTimeout time.Duration

	// Logger receives warnings and errors meant for the operator. Nil means slog.Default.
	Logger *slog.Logger
}

func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	c.MaxBodyBytes = httpserve.Positive(c.MaxBodyBytes, defaultMaxBodyBytes)
	c.MaxSessions = httpserve.Positive(c.MaxSessions, defaultMaxSessions)
	c.MaxBytes = httpserve.Positive(c.MaxBytes, defaultMaxBytes)
	c.SessionIdle = cmp.Or(c.SessionIdle, defaultSessionIdle)
	c.KeepAlive = cmp.Or(c.KeepAlive, defaultKeepAlive)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, defaultWriteTimeout)
	c.ShutdownTimeout = httpserve.Positive(c.ShutdownTimeout, defaultShutdownTimeout)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// A Handler serves the stream with GET and messages with POST, usually at one URL. Create one with
// [NewHandler]. It is safe for concurrent use.
//
//	mux.Handle("/mcp", streamable.NewHandler(server, nil))
//	mux.Handle("/sse", sse.NewHandler(server, nil))
type Handler struct {
	rpc   transport.Handler
	opts  Options
	guard httpserve.Guard
	conns *httpserve.Connections

	sessions sync.Map // of *session, by ID
}

// NewHandler returns a Handler that passes the messages it receives to h.
func NewHandler(h transport.Handler, opts *Options) *Handler {
	x := &Handler{rpc: h, opts: opts.withDefaults()}
	x.guard = httpserve.NewGuard(x.opts.AllowedOrigins, x.opts.AllowedHosts)
	x.conns = httpserve.NewConnections(x.opts.MaxSessions, x.opts.MaxBytes, x.opts.TrustedProxies)
	return x
}

// ServeHTTP serves one HTTP request. A GET lasts as long as its session.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if why := h.guard.Refuse(r); why != "" {
		refuse(w, r, why, http.StatusForbidden)
		return
	}
	if httpserve.CORS(w, r, http.MethodGet, http.MethodPost) {
		return
	}
	switch r.Method {
	case http.MethodGet:
		h.serveStream(w, r)
	case http.MethodPost:
		h.servePost(w, r)
	default:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "use GET for the stream and POST for messages", http.StatusMethodNotAllowed)
	}
}

// session returns the session id if the principal owner opened it, or else nil: knowing a session
// ID gives no access to it.
func (h *Handler) session(id, owner string) *session {
	if s, ok := h.sessions.Load(id); ok && s.(*session).owner == owner {
		return s.(*session)
	}
	return nil
}

// Shutdown refuses new sessions with 503 and ends the open ones. Calls in flight may finish within
// Options.ShutdownTimeout. When ctx ends, Shutdown cancels the rest, gives them one second to
// respond, and returns the cause of ctx.
func (h *Handler) Shutdown(ctx context.Context) error { return h.conns.Shutdown(ctx) }

// Close refuses new sessions and closes the open ones without waiting. It may be called more than
// once.
func (h *Handler) Close() { h.conns.Lifecycle.Close() }
