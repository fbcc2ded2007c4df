// Package sse is the HTTP+SSE binding of MCP, of the revision 2024-11-05, for clients that know no other (specification
// 2024-11-05, basic/transports). Later revisions have Streamable HTTP in its place: package streamable. A server may
// offer both, at two paths; see [Handler].
//
// A client opens an event stream by GET. Its first event, "endpoint", names the URL to which the client sends its messages,
// each by a POST that is answered 202; everything that the server says is a "message" event of the stream. The stream is the
// session: its end ends the calls. What happens between messages (order, cancellation, limits) is described at internal/duplex.
package sse

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/admission"
	"github.com/mcpkit/mcpkit-go/internal/httpguard"
	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/transport"
)

// What Options says where it says nothing.
const (
	//limit:message bytes of the body of a POST | 413: `body is larger than `
	DefaultMaxBodyBytes = 4 << 20
	//limit:server streams that are open; an idle one makes room | 503: `too many connections, or shutting down; try again later`
	DefaultMaxSessions = 1000
	//limit:session time without a message | the stream ends
	DefaultSessionIdle = 30 * time.Minute
	//limit:connection time without anything sent | a comment is sent
	DefaultKeepAlive = 25 * time.Second
	//limit:connection time that a write may take | the stream is closed
	DefaultWriteTimeout = 30 * time.Second
	//limit:server time that calls in flight have to finish at shutdown | they are cancelled
	DefaultShutdownTimeout = 10 * time.Second
	DefaultPath            = "/sse"
)

// acceptTimeout is how long a POST waits for the session to take its message.
//
//limit:message time that a POST to HTTP+SSE waits for a session whose stream is not read | 503: `the session takes no messages, since its stream is not read`
const acceptTimeout = 10 * time.Second

// Options configures a [Handler]. The zero value, and nil, serve.
type Options struct {
	// Endpoint is the URL, or a path, of the POSTs as clients see it, to which the session id is added. Empty means the path
	// of the stream's own request, which is right unless a proxy changes paths. Clients refuse another origin than the stream's.
	Endpoint string

	// MaxBodyBytes limits the body of a POST. Zero means [DefaultMaxBodyBytes]. A larger one is answered by 413.
	MaxBodyBytes int64

	// MaxSessions limits the open streams. Zero means [DefaultMaxSessions]. When there are so many, a new one takes the place of a
	// stream of the caller that has the most, idle ones first; if none has more than the new one's caller, of the stream that
	// was idle longest, for a minute at least. Otherwise it is answered 503. A caller is a principal, or else an address.
	MaxSessions int

	// TrustedProxies are the networks of proxies whose X-Forwarded-For says from which address a request came. Behind a
	// proxy that is not named here, all callers without a principal are one.
	TrustedProxies []netip.Prefix

	// SessionIdle is how long a session may be without a message in either direction and without a call in flight before its
	// stream is ended. Zero means [DefaultSessionIdle], less than zero for ever.
	SessionIdle time.Duration

	// MaxInFlight is how many requests of a session may be unanswered at once; one more is refused. Zero means 1024.
	MaxInFlight int

	// MaxInFlightBytes is how many bytes the unanswered requests of a session may have together. Zero means 16 MiB.
	MaxInFlightBytes int64

	// AllowedOrigins and AllowedHosts are those of streamable.Options: the origins whose pages may send requests, besides the
	// server's own, and the hosts that requests may name.
	AllowedOrigins []string
	AllowedHosts   []string

	// KeepAlive is how long a stream may be silent before a comment is sent on it. Zero means [DefaultKeepAlive], less than
	// zero never.
	KeepAlive time.Duration

	// WriteTimeout is how long a client may read nothing of what is being written to it before its stream is cut. Zero
	// means [DefaultWriteTimeout].
	WriteTimeout time.Duration

	// ShutdownTimeout is how long calls may go on when the server ends. Zero means [DefaultShutdownTimeout].
	ShutdownTimeout time.Duration

	// Logger hears what the operator should know. Nil means slog.Default.
	Logger *slog.Logger

	// Path is where [Listen] serves. Empty means [DefaultPath]. A Handler mounted elsewhere ignores it.
	Path string

	// OnListen hears the address on which [Listen] takes requests, as soon as it does.
	OnListen func(net.Addr)
}

func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	c.MaxBodyBytes = httpserve.Positive(c.MaxBodyBytes, DefaultMaxBodyBytes)
	c.MaxSessions = httpserve.Positive(c.MaxSessions, DefaultMaxSessions)
	c.SessionIdle = cmp.Or(c.SessionIdle, DefaultSessionIdle)
	c.KeepAlive = cmp.Or(c.KeepAlive, DefaultKeepAlive)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, DefaultWriteTimeout)
	c.ShutdownTimeout = httpserve.Positive(c.ShutdownTimeout, DefaultShutdownTimeout)
	c.Path = cmp.Or(c.Path, DefaultPath)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// How many bytes of POSTs may be in memory before their sessions take them.
const (
	//limit:caller bytes of POSTs to HTTP+SSE that their sessions have not taken | 503: `busy: too many bytes of requests and unread responses are in memory; try again later`
	maxHeldBytes = 32 << 20
	//limit:server bytes of POSTs to HTTP+SSE that their sessions have not taken | 503: `busy: too many bytes of requests and unread responses are in memory; try again later`
	maxHeldBytesTotal = 256 << 20
)

// A Handler serves both URLs of the binding, by GET and POST; usually they are one. Make one with [NewHandler]. It is safe for
// concurrent use.
//
//	mux.Handle("/mcp", streamable.NewHandler(server, nil))
//	mux.Handle("/sse", sse.NewHandler(server, nil))
type Handler struct {
	rpc   transport.Handler
	opts  Options
	guard httpguard.Rules
	conns *httpserve.Connections
	// bodies are the bytes of POSTs that are being read, or wait for their session to take them.
	bodies *admission.Budget

	mu       sync.Mutex
	sessions map[string]*session // guarded by mu
}

// NewHandler returns a handler that passes the messages it receives to h.
func NewHandler(h transport.Handler, opts *Options) *Handler {
	x := &Handler{rpc: h, opts: opts.withDefaults(), sessions: make(map[string]*session)}
	x.guard = httpguard.New(x.opts.AllowedOrigins, x.opts.AllowedHosts)
	x.conns = httpserve.NewConnections(x.opts.MaxSessions, x.opts.TrustedProxies)
	x.bodies = admission.NewBudget(maxHeldBytes, maxHeldBytesTotal)
	return x
}

// ServeHTTP answers one HTTP request. A GET lasts as long as its session.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if why := h.guard.Refuse(r); why != "" {
		refuse(w, r, why, http.StatusForbidden)
		return
	}
	if httpguard.Share(w, r, http.MethodGet, http.MethodPost) {
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

// add makes s known.
func (h *Handler) add(s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sessions[s.id] = s
}

func (h *Handler) remove(s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sessions, s.id)
}

// session returns the session named id of the principal owner. Another principal's is unknown: its name alone gives no right
// to it.
func (h *Handler) session(id, owner string) *session {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.sessions[id]; s != nil && s.owner == owner {
		return s
	}
	return nil
}

// Shutdown refuses new sessions with 503 and ends those that there are: calls in flight may finish within
// Options.ShutdownTimeout, and be answered. Those that have not finished when ctx ends are cancelled, and have another second to be
// answered. The error is the cause of ctx's end when calls had to be cancelled.
func (h *Handler) Shutdown(ctx context.Context) error { return h.conns.Shutdown(ctx) }

// Close refuses new sessions and cuts those that there are. It does not wait for them, and may be called more than once.
func (h *Handler) Close() { h.conns.Lifecycle.Close() }

// Listen returns a transport that serves HTTP+SSE on addr ("127.0.0.1:8080"; ":0" for a free port) at the path of
// opts, with an HTTP server of its own. Its Serve returns nil when ctx ended, after the calls in flight finished or
// were cancelled at the end of Options.ShutdownTimeout.
func Listen(addr string, opts *Options) transport.Transport {
	o := opts.withDefaults()
	return httpserve.Listen(httpserve.Server{
		Name:            "sse",
		Addr:            addr,
		Path:            o.Path,
		ShutdownTimeout: o.ShutdownTimeout + 2*time.Second, // by when connections have ended by themselves
		AllowedHosts:    o.AllowedHosts,
		Logger:          o.Logger,
		OnListen:        o.OnListen,
	}, func(h transport.Handler) httpserve.Handler { return NewHandler(h, &o) })
}
