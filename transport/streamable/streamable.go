// Package streamable implements MCP's Streamable HTTP transport, in all protocol versions that have
// it.
//
// It frames messages and does not know what they mean: each POST is one call of
// [transport.Handler.ServeRPC] on the goroutine of net/http, and the response and any notifications
// sent meanwhile travel back on that same POST. The reply is JSON, unless a notification is sent
// first: then the reply becomes an event stream.
//
// For versions before 2026-07-28, the package also implements sessions, the stream that a client
// opens with GET, requests from the server to the client, and resuming a broken stream.
package streamable

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/internal/limits"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// Defaults of [Options].
const (
	defaultMaxBodyBytes     = 4 << 20
	defaultMaxSessions      = 10000
	defaultMaxBytes         = 256 << 20
	defaultMaxSubscriptions = 1024
	defaultKeepAlive        = 25 * time.Second
	defaultShutdownTimeout  = 10 * time.Second
	defaultPath             = "/mcp"
)

const (
	// writeTimeout limits one write to a client. After that, the connection is closed.
	writeTimeout = 30 * time.Second

	// maxListenBytes is how long the body of subscriptions/listen may be. It stays in memory for as
	// long as the client listens, so that the limit of requests that are answered soon would let a
	// few hundred idle connections hold gigabytes. A larger one is answered 413.
	maxListenBytes = 256 << 10

	// maxAbandoned is how many legacy calls of one caller go on after their clients have
	// disconnected. A further one is cancelled when its client disconnects.
	maxAbandoned = 1024
)

// Options configures a [Handler]. The zero value and nil are ready to use.
type Options struct {
	// Stateless serves legacy clients without sessions: the server keeps nothing between their
	// requests and cannot send them requests. Modern clients never have a session.
	Stateless bool

	// JSONOnly turns event streams off: the server drops its notifications and cannot send requests
	// to clients.
	JSONOnly bool

	// MaxBodyBytes limits the body of a request. A larger body gets 413. Zero means 4 MiB.
	MaxBodyBytes int64

	// MaxSessions limits the legacy sessions that hold something here: a request that runs, streams
	// to resume, a log level or subscriptions. Others travel in the IDs that clients have; only the
	// last 500 are kept as well. Zero means 10,000. Beyond the limit, the one that was idle longest
	// is dropped; it ends if its client has set a log level or subscriptions. If all have requests or
	// open streams, a request gets 503. In a fleet, the number also limits the sessions with a log
	// level or subscriptions at all replicas.
	MaxSessions int

	// MaxBytes limits the bytes of the bodies of unanswered requests, of results being encoded and of
	// responses being sent, of all clients together. Small ones do not count. Beyond the limit, a
	// request gets 503, "busy", and a method is not called if its last results were too large. A
	// single request may need more. Zero means 256 MiB.
	MaxBytes int64

	// MaxSubscriptions limits the open streams that only listen (subscriptions/listen and the GET
	// of a session) of one caller. Beyond the limit, a request gets 503, "busy". Zero means
	// 1,024. A caller is a principal, or else an address.
	MaxSubscriptions int

	// TrustedProxies are the networks of proxies whose X-Forwarded-For header is trusted. Behind
	// any other proxy, all callers without a principal count as one. IPv6 addresses count by their
	// first 64 bits.
	TrustedProxies []netip.Prefix

	// AllowedOrigins are the origins ("https://app.example.com") whose pages may send requests,
	// besides the server's own and, for a server addressed as a loopback host, loopback origins.
	// "*" allows every web page to call the tools: use it only for servers that have nothing to
	// protect. The handler responds to preflights of allowed pages, unless a CORS middleware in
	// front does.
	AllowedOrigins []string

	// AllowedHosts are the hosts ("mcp.example.com", or with a port "localhost.test:8080") that
	// requests may name in their Host field, besides loopback hosts. Other requests get 403. If it
	// is empty, requests to a loopback address may only name loopback hosts, and requests to other
	// addresses may name any host. Set it wherever browsers can reach the server: behind a proxy
	// that forwards the Host field, and in a container, where requests to a published port never
	// arrive at a loopback address. "*" allows every host.
	AllowedHosts []string

	// KeepAlive is how long an event stream may be silent before the server sends a comment. Zero
	// means 25 seconds; a negative value turns comments off.
	KeepAlive time.Duration

	// Card is the URL of the server for its clients ("https://mcp.example.com/mcp"). The server card
	// (SEP-2127), which everybody can read at [CardPath], names it. If it is
	// empty, the card names no URL. "-" turns the card off.
	Card string

	// Logger receives warnings and errors meant for the operator. Nil means slog.Default.
	Logger *slog.Logger

	// Path is the path that [Listen] serves. Empty means /mcp. A Handler ignores it.
	Path string

	// ShutdownTimeout is how long requests may continue when [Listen] shuts down. Then they are
	// cancelled. Zero means 10 seconds, which is what `docker stop` waits by default, and less than
	// the 30 s that a tool may take by default: if supervisors wait longer, set more than the
	// longest timeout of a tool.
	ShutdownTimeout time.Duration

	// OnListen, if not nil, is called with the address of [Listen] once it accepts requests.
	OnListen func(net.Addr)
}

func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	c.MaxBodyBytes = httpserve.Positive(c.MaxBodyBytes, defaultMaxBodyBytes)
	c.MaxSessions = httpserve.Positive(c.MaxSessions, defaultMaxSessions)
	c.MaxBytes = httpserve.Positive(c.MaxBytes, defaultMaxBytes)
	c.MaxSubscriptions = httpserve.Positive(c.MaxSubscriptions, defaultMaxSubscriptions)
	if c.KeepAlive = cmp.Or(c.KeepAlive, defaultKeepAlive); c.KeepAlive < 0 {
		c.KeepAlive = math.MaxInt64
	}
	c.ShutdownTimeout = httpserve.Positive(c.ShutdownTimeout, defaultShutdownTimeout)
	c.Path = cmp.Or(c.Path, defaultPath)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// A Handler serves MCP at one URL. Create one with [NewHandler]. It is safe for concurrent use.
type Handler struct {
	rpc      transport.Handler
	opts     Options
	guard    httpserve.Guard
	life     *httpserve.Lifecycle
	storer   transport.SessionStorer // rpc; nil if the handler is stateless
	sessions sessionTable
	memory   *memoryStore
	events   eventStore // of the streams of POSTs: memory, or the log of a fleet

	listening callerStreams // that only listen
	abandoned callerStreams // whose client has disconnected while their call runs
	bytes     conn.Memory   // of bodies and responses

	replica     *replica // nil outside of a fleet
	replicaName string   // "" outside of a fleet

	plainOnce sync.Once // logs once that replies cannot be streams
}

// NewHandler returns a Handler that passes the messages it receives to h. Legacy clients have
// sessions if h is a [transport.SessionStorer] that has some, as servers of mcpkit with legacy versions
// are; otherwise the Handler is stateless. A nil h panics.
func NewHandler(h transport.Handler, opts *Options) *Handler {
	if v := reflect.ValueOf(h); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		panic("streamable: the server is nil; look at the error of mcpkit.New")
	}
	x := &Handler{
		rpc:    h,
		opts:   opts.withDefaults(),
		life:   httpserve.NewLifecycle(),
		memory: &memoryStore{sessionBytes: maxSessionBytes, sessionEvents: maxSessionEvents, totalBytes: maxTotalBytes},
	}
	x.events = x.memory
	if x.storer, _ = h.(transport.SessionStorer); x.storer == nil || !x.storer.HasSessions() {
		x.opts.Stateless = true
	}
	x.listening.max = x.opts.MaxSubscriptions
	x.abandoned.max = maxAbandoned
	x.bytes.Max = x.opts.MaxBytes
	x.guard = httpserve.NewGuard(x.opts.AllowedOrigins, x.opts.AllowedHosts)
	x.sessions.h, x.sessions.all = x, map[string]*legacySession{}
	x.sessions.deleted = limits.NewMap[string, struct{}](maxDeleted)
	x.join()
	return x
}

// ServeHTTP serves one HTTP request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if isCard(r) {
		h.serveCard(w, r)
		return
	}
	refusal := h.check(r)
	switch {
	case refusal != nil:
	case httpserve.CORS(w, r, http.MethodPost, http.MethodGet, http.MethodDelete):
		return
	case r.Method == http.MethodPost:
		refusal = h.servePost(w, r)
	case h.sessionless(r):
		refusal = methodNotAllowed(w, r, "POST")
	case r.Method == http.MethodDelete:
		refusal = h.serveDelete(w, r)
	case h.opts.JSONOnly:
		refusal = methodNotAllowed(w, r, "POST, DELETE")
	case r.Method == http.MethodGet:
		refusal = h.serveGet(w, r)
	default:
		refusal = methodNotAllowed(w, r, "POST, GET, DELETE")
	}
	if refusal != nil {
		httpserve.Discard(w, r)
		reply := h.newWriter(w)
		reply.writeJSON(refusal, http.StatusBadRequest)
	}
}

// check returns why the header fields of a request are refused, or nil.
func (h *Handler) check(r *http.Request) *jsonrpc.Response {
	if why := h.guard.Refuse(r); why != "" {
		return refuse(http.StatusForbidden, "%s", why)
	}
	for name, values := range r.Header {
		if len(values) > 1 && strings.HasPrefix(name, "Mcp-") { // a proxy may have looked at the other value
			refusal := refuse(http.StatusBadRequest, "header %s is repeated", name)
			if modernHeader(r.Header) {
				refusal.Error.Code = protocol.CodeHeaderMismatch
			}
			return refusal
		}
	}
	return nil
}

// sessionless reports whether the request needs no session: its version has none, or the server.
func (h *Handler) sessionless(r *http.Request) bool {
	return h.opts.Stateless || modernHeader(r.Header)
}

// methodNotAllowed refuses with 405, which tells clients that this server has no such stream or
// session.
func methodNotAllowed(w http.ResponseWriter, r *http.Request, allow string) *jsonrpc.Response {
	w.Header().Set("Allow", allow)
	return refuse(http.StatusMethodNotAllowed, "method %s is not served here; use %s", r.Method, allow)
}

// serveDelete ends a session at the request of its client.
func (h *Handler) serveDelete(w http.ResponseWriter, r *http.Request) *jsonrpc.Response {
	s, refusal := h.session(r)
	if refusal != nil {
		return refusal
	}
	defer h.sessions.release(s)
	if err := h.replica.delete(r.Context(), s); err != nil {
		h.opts.Logger.WarnContext(r.Context(), "streamable: a session was not deleted at all replicas",
			"session", s.Digest(), "error", err)
		return busy("the session cannot be ended at the moment; try again")
	}
	h.sessions.end(s.Digest())
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// Shutdown refuses new requests with 503, ends the streams that only listen, and lets calls in
// flight finish. Their clients can still respond to server requests and resume streams. When ctx
// ends, Shutdown cancels the rest, gives them one second to respond, and returns the cause of ctx.
// In the end it closes all sessions.
func (h *Handler) Shutdown(ctx context.Context) error {
	err := h.life.Shutdown(ctx)
	h.sessions.endAll()
	return err
}

// Close refuses new requests, cancels the calls in flight without waiting, and ends all streams and
// sessions. It may be called more than once.
func (h *Handler) Close() {
	h.life.Close()
	h.sessions.endAll()
}

// flusher returns a function that flushes the reply to r, which becomes an event stream, or nil. It
// logs, once, that replies cannot become streams.
func (h *Handler) flusher(w http.ResponseWriter, r *http.Request, accepted bool) func() error {
	why := "the client does not accept text/event-stream"
	if accepted {
		if flush := httpserve.Flusher(w); flush != nil {
			return flush
		}
		why = "the response writer cannot flush; does a middleware buffer it?"
	}
	h.plainOnce.Do(func() {
		h.opts.Logger.WarnContext(r.Context(),
			"streamable: a reply cannot become an event stream; notifications sent before the response are lost",
			"why", why, "path", r.URL.Path)
	})
	return nil
}
