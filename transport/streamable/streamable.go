// Package streamable is the Streamable HTTP binding of MCP, of all revisions that have it.
//
// It frames messages and does not know what they mean: each POST is one call of
// [transport.Handler.ServeRPC] on the goroutine that net/http gave it, and the response and the
// notifications sent meanwhile travel back on that same POST. The reply is JSON, written at once, unless a
// notification goes out first: then the same reply becomes an event stream.
//
// What the revisions before 2026-07-28 have besides is here as well: sessions, the stream that a client
// opens by GET, requests from the server to the client, and coming back for what a broken stream lost.
package streamable

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

// Limits and times where [Options] sets no others.
const (
	//limit:message bytes of the body of a POST | 413: `body is larger than `
	DefaultMaxBodyBytes = 4 << 20
	//limit:server legacy sessions | 503: `too many sessions; try again later`
	DefaultMaxSessions = 10000
	//limit:caller requests in flight | 503: `busy: too many requests are in flight; try again later`
	DefaultMaxInFlight = 1024
	//limit:server requests in flight | 503: `busy: too many requests are in flight; try again later`
	DefaultMaxInFlightTotal = 4096
	//limit:caller bytes of bodies and unread responses | 503: `busy: too many bytes of requests and unread responses are in memory; try again later`
	DefaultMaxInFlightBytes = 32 << 20
	//limit:server bytes of bodies and unread responses | 503: `busy: too many bytes of requests and unread responses are in memory; try again later`
	DefaultMaxInFlightBytesTotal = 256 << 20
	//limit:caller streams that listen | 503: `busy: too many streams listen; try again later`
	DefaultMaxSubscriptions = 1024
	//limit:server streams that listen | 503: `busy: too many streams listen; try again later`
	DefaultMaxSubscriptionsTotal = 10000
	//limit:session time without a request or an open stream | 404
	DefaultSessionIdle = 30 * time.Minute
	//limit:connection time without anything sent on a stream | a comment is sent
	DefaultKeepAlive = 25 * time.Second
	//limit:server time that calls in flight have to finish at shutdown | they are cancelled
	DefaultShutdownTimeout = 10 * time.Second
	DefaultPath            = "/mcp"
)

const (
	// WriteTimeout is how long one write to a client may take. Then its connection is closed.
	//
	//limit:connection time that one write may take | the connection is closed
	WriteTimeout = 30 * time.Second

	// MaxListenBytes is how long the body of subscriptions/listen may be. It stays in memory for as long as the client listens,
	// so that the limit of requests that are answered soon would let a few hundred idle connections hold gigabytes. A
	// larger one is answered 413.
	//
	//limit:message bytes of the body of subscriptions/listen | 413: `body is larger than `
	MaxListenBytes = 256 << 10
)

// Options configures a [Handler]. The zero value, and nil, serve.
type Options struct {
	// Stateless serves clients of the legacy revisions without sessions: nothing is kept between their
	// requests, and the server cannot ask them anything. Modern clients never have a session.
	Stateless bool

	// JSONOnly never opens an event stream: what a server sends besides its answers is dropped, and it
	// cannot ask clients anything.
	JSONOnly bool

	// MaxBodyBytes limits the body of a request. Zero means [DefaultMaxBodyBytes]. A larger one is
	// answered by 413.
	MaxBodyBytes int64

	// MaxSessions limits the legacy sessions. Zero means [DefaultMaxSessions]. When there are so many, a new one takes the place of
	// a session of the caller that has the most, idle ones first; if none has more than the new one's caller, of the session
	// that was idle longest. Sessions whose clients said nothing after initialize go first. Where all are busy the client is answered 503.
	// The caller of a session is its principal, or else its address.
	MaxSessions int

	// MaxInFlight is how many requests of one caller may be unanswered at once, and MaxInFlightTotal how many of all. Zero
	// means [DefaultMaxInFlight] and [DefaultMaxInFlightTotal]. One more is answered 503, "busy". A caller may never have more than
	// are left for all others. The caller of a request is its principal, or else its address:
	// sessions have no share of their own.
	MaxInFlight, MaxInFlightTotal int

	// MaxInFlightBytes is how many bytes the bodies of requests that are unanswered, and the responses that are being read, may
	// have together for one caller, and MaxInFlightBytesTotal for all; only large ones count. Zero means
	// [DefaultMaxInFlightBytes] and [DefaultMaxInFlightBytesTotal]. What is beyond is answered 503, "busy". A single body or response may
	// have more.
	MaxInFlightBytes, MaxInFlightBytesTotal int64

	// MaxSubscriptions is how many streams that only listen, which are subscriptions/listen and the GET of a session, one
	// caller may have open, and MaxSubscriptionsTotal all. Zero means [DefaultMaxSubscriptions] and
	// [DefaultMaxSubscriptionsTotal]. One more is answered 503, "busy". The caller is the principal, or else the address.
	MaxSubscriptions, MaxSubscriptionsTotal int

	// TrustedProxies are the networks of proxies whose X-Forwarded-For says from which address a request came. Behind a
	// proxy that is not named here, all callers without a principal are one. IPv6 addresses count by their first 64 bits.
	TrustedProxies []netip.Prefix

	// SessionIdle is how long a session lives without a request or an open stream. Zero means
	// [DefaultSessionIdle], less than zero for ever.
	SessionIdle time.Duration

	// AllowedOrigins are the origins ("https://app.example.com") whose pages may send requests, besides the
	// server's own and, for a server addressed as a loopback host, those of loopback hosts. "*" allows
	// every web page on earth to call the tools: only for servers that have nothing to protect.
	// Their preflights are answered, unless a CORS middleware in front does.
	AllowedOrigins []string

	// AllowedHosts are the hosts ("mcp.example.com", or with a port "localhost.test:8080") that requests may name in
	// their Host field, besides loopback hosts; others are answered 403. If it is empty, requests to a loopback
	// address may name loopback hosts only, and requests to other addresses any host. Set it wherever browsers can
	// reach the server: behind a proxy that passes the Host field on, and in a container, where requests to a
	// published port never come to a loopback address. "*" allows every host.
	AllowedHosts []string

	// EventStore keeps the messages of streams so that legacy clients can come back for those they missed.
	// Nil means [NewMemoryStore] with its default limits.
	EventStore EventStore

	// KeepAlive is how long an event stream may be silent before a comment is sent on it. Zero means
	// [DefaultKeepAlive], less than zero never.
	KeepAlive time.Duration

	// Retry tells clients of 2025-11-25 how long to wait before they come back to a stream that broke.
	// Zero leaves it to them.
	Retry time.Duration

	// Logger hears what the operator should know. Nil means slog.Default.
	Logger *slog.Logger

	// Path is where [Listen] serves. Empty means [DefaultPath]. A Handler mounted elsewhere ignores it.
	Path string

	// ShutdownTimeout is how long [Listen] lets requests finish when it ends. Zero means
	// [DefaultShutdownTimeout].
	ShutdownTimeout time.Duration

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
	c.MaxInFlight = httpserve.Positive(c.MaxInFlight, DefaultMaxInFlight)
	c.MaxInFlightTotal = httpserve.Positive(c.MaxInFlightTotal, DefaultMaxInFlightTotal)
	c.MaxInFlightBytes = httpserve.Positive(c.MaxInFlightBytes, DefaultMaxInFlightBytes)
	c.MaxInFlightBytesTotal = httpserve.Positive(c.MaxInFlightBytesTotal, DefaultMaxInFlightBytesTotal)
	c.MaxSubscriptions = httpserve.Positive(c.MaxSubscriptions, DefaultMaxSubscriptions)
	c.MaxSubscriptionsTotal = httpserve.Positive(c.MaxSubscriptionsTotal, DefaultMaxSubscriptionsTotal)
	c.SessionIdle = cmp.Or(c.SessionIdle, DefaultSessionIdle)
	c.KeepAlive = cmp.Or(c.KeepAlive, DefaultKeepAlive)
	c.ShutdownTimeout = httpserve.Positive(c.ShutdownTimeout, DefaultShutdownTimeout)
	c.Path = cmp.Or(c.Path, DefaultPath)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.EventStore == nil {
		c.EventStore = NewMemoryStore(MemoryLimits{})
	}
	return c
}

// A Handler serves MCP at one URL. Make one with [NewHandler]. It is safe for concurrent use.
type Handler struct {
	rpc      transport.Handler
	opts     Options
	guard    httpguard.Rules
	life     *httpserve.Lifecycle
	sessions sessionTable

	calls     *admission.Budget // requests in flight
	listening *admission.Budget // streams that only listen
	bytes     *admission.Budget // of bodies and responses

	plainOnce sync.Once // says once that replies cannot be streams

	// How long a client that comes back waits for its old connection to end, which the server may learn late.
	resumeWait time.Duration
}

// NewHandler returns a handler that passes the messages it receives to h.
func NewHandler(h transport.Handler, opts *Options) *Handler {
	x := &Handler{
		rpc:        h,
		resumeWait: 2 * time.Second,
		opts:       opts.withDefaults(),
		life:       httpserve.NewLifecycle(),
	}
	x.calls = admission.NewBudget(int64(x.opts.MaxInFlight), int64(x.opts.MaxInFlightTotal))
	x.listening = admission.NewBudget(int64(x.opts.MaxSubscriptions), int64(x.opts.MaxSubscriptionsTotal))
	x.bytes = admission.NewBudget(x.opts.MaxInFlightBytes, x.opts.MaxInFlightBytesTotal)
	x.guard = httpguard.New(x.opts.AllowedOrigins, x.opts.AllowedHosts)
	x.sessions.init(x)
	return x
}

// ServeHTTP answers one HTTP request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if why := h.guard.Refuse(r); why != "" {
		httpserve.Discard(w, r)
		writeError(w, http.StatusForbidden, invalidRequest("%s", why))
		return
	}
	if httpguard.Share(w, r, http.MethodPost, http.MethodGet, http.MethodDelete) {
		return
	}
	switch r.Method {
	case http.MethodPost:
		h.servePost(w, r)
	case http.MethodGet:
		h.serveGet(w, r)
	case http.MethodDelete:
		h.serveDelete(w, r)
	default:
		h.methodNotAllowed(w, r)
	}
}

// methodNotAllowed answers 405. Clients take it as the word that there is no such stream or session here.
func (h *Handler) methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	allow := "POST, GET, DELETE"
	switch {
	case h.opts.Stateless || modernHeader(r.Header):
		allow = "POST"
	case h.opts.JSONOnly:
		allow = "POST, DELETE"
	}
	w.Header().Set("Allow", allow)
	writeError(w, http.StatusMethodNotAllowed, invalidRequest("method %s is not served here; use %s", r.Method, allow))
}

// serveDelete ends a session on behalf of its client.
func (h *Handler) serveDelete(w http.ResponseWriter, r *http.Request) {
	if h.opts.Stateless || modernHeader(r.Header) {
		h.methodNotAllowed(w, r)
		return
	}
	s, refusal := h.session(r)
	if refusal != nil {
		refusal.write(w)
		return
	}
	h.sessions.release(s)
	h.sessions.end(s)
	w.WriteHeader(http.StatusNoContent)
}

// A call is one ServeRPC in flight. It is a [httpserve.Task].
type call struct {
	cancel context.CancelCauseFunc
	// listens marks a call that by its nature ends only when the client or the server goes away.
	listens bool
}

// Drain ends what would not end by itself.
func (c *call) Drain() {
	if c.listens {
		c.Cancel()
	}
}

// Cancel ends the context of the call.
func (c *call) Cancel() { c.cancel(transport.ErrClosed) }

// Cut does nothing: there is nothing more to take from a call that ignores its context.
func (c *call) Cut() {}

// Shutdown refuses new requests with 503, ends the streams that only listen and lets the calls in flight finish; their
// clients can still answer what they are asked, and come back for answers. Calls that have not finished when ctx ends are
// cancelled and have another second to be answered. Then all sessions end. The error is the cause of ctx's end when
// calls had to be cancelled.
func (h *Handler) Shutdown(ctx context.Context) error {
	err := h.life.Shutdown(ctx)
	forgotten := h.sessions.endAll()
	limit := time.NewTimer(httpserve.CancelGrace)
	defer limit.Stop()
	for _, done := range forgotten {
		select {
		case <-done:
		case <-limit.C:
			return err // the event store hangs
		}
	}
	return err
}

// Close refuses new requests, cancels the calls in flight without waiting for them, and ends all streams and
// sessions. It may be called more than once.
func (h *Handler) Close() {
	h.life.Close()
	h.sessions.endAll()
}

func (h *Handler) isDraining() bool {
	select {
	case <-h.life.Draining():
		return true
	default:
		return false
	}
}

// sayPlain tells the operator, once, that replies of h cannot become streams.
func (h *Handler) sayPlain(r *http.Request, why string) {
	h.plainOnce.Do(func() {
		h.opts.Logger.WarnContext(r.Context(), "streamable: a reply could not become an event stream; what methods send before their answer is lost",
			"why", why, "path", r.URL.Path)
	})
}
