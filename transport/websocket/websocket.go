// Package websocket carries MCP over WebSockets (RFC 6455): one text message is one JSON-RPC message, under the
// subprotocol "mcp". The connection is the session.
//
// MCP does not define this binding; it is as the official TypeScript and Python SDKs have it. What happens between messages
// (order, cancellation, limits, the end) is described at internal/duplex.
//
// A [Handler] is mounted like any http.Handler, beside the one of streamable; [Listen] is a server of its own.
package websocket

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/mcpkit/mcpkit-go/internal/duplex"
	"github.com/mcpkit/mcpkit-go/internal/httpguard"
	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/transport"
)

// Subprotocol is what both sides have to agree on.
const Subprotocol = "mcp"

// What Options says where it says nothing.
const (
	//limit:message bytes of a message on a WebSocket | the connection is closed with the status 1009
	DefaultMaxMessageBytes = 4 << 20
	//limit:server WebSockets that are open; an idle one makes room | 503: `too many connections, or shutting down; try again later`
	DefaultMaxConnections = 1000
	//limit:connection time without anything received | a ping is sent
	DefaultKeepAlive = 25 * time.Second
	//limit:message time that a message may take from its first frame to its last | the connection is closed
	DefaultMessageTimeout = time.Minute
	//limit:session time without a message | the connection is closed
	DefaultSessionIdle = 30 * time.Minute
	//limit:server time that calls in flight have to finish at shutdown | they are cancelled
	DefaultShutdownTimeout = 10 * time.Second
	DefaultPath            = "/ws"
)

// Options configures a [Handler]. The zero value, and nil, serve.
type Options struct {
	// MaxMessageBytes is how long a message may be. A longer one ends the connection with the status 1009, message too
	// big. Zero means [DefaultMaxMessageBytes].
	MaxMessageBytes int64

	// MaxConnections is how many connections there may be. Zero means [DefaultMaxConnections]. When there are so many, a new one
	// takes the place of a connection of the caller that has the most, idle ones first; if none has more than the new one's
	// caller, of the connection that was idle longest, for a minute at least. Otherwise it is answered 503. A caller is
	// a principal, or else an address.
	MaxConnections int

	// TrustedProxies are the networks of proxies whose X-Forwarded-For says from which address a request came. Behind a
	// proxy that is not named here, all callers without a principal are one.
	TrustedProxies []netip.Prefix

	// MaxInFlight is how many requests of a client may be unanswered at once; one more is refused. Zero means 1024.
	MaxInFlight int

	// MaxInFlightBytes is how many bytes the unanswered requests may have together. Zero means 16 MiB.
	MaxInFlightBytes int64

	// AllowedOrigins and AllowedHosts are those of streamable.Options: the origins whose pages may connect, besides the
	// server's own, and the hosts that requests may name. No browser asks before it lets a page
	// connect to a WebSocket of any server, so this is all that keeps foreign pages out.
	AllowedOrigins []string
	AllowedHosts   []string

	// KeepAlive is how often the client is pinged. One that has not answered when the next ping is due is gone. Zero
	// means [DefaultKeepAlive], less than zero never.
	KeepAlive time.Duration

	// MessageTimeout is how long a message may take from its first frame to its end. A longer one ends the connection with
	// the status 1008, policy violation. Zero means [DefaultMessageTimeout], less than zero no limit.
	MessageTimeout time.Duration

	// SessionIdle is how long a connection may be without a message in either direction and without a call in flight before
	// it is closed with the status 1000. Pings do not count. Zero means [DefaultSessionIdle], less than zero no limit.
	SessionIdle time.Duration

	// WriteTimeout is how long a client may read nothing of what is being written to it before the connection is closed.
	// Zero means 30 s.
	WriteTimeout time.Duration

	// ShutdownTimeout is how long calls may go on when the server ends. Zero means [DefaultShutdownTimeout].
	ShutdownTimeout time.Duration

	// Logger hears what the operator should know. Nil means slog.Default.
	Logger *slog.Logger

	// Path is where [Listen] serves. Empty means [DefaultPath]. A Handler mounted elsewhere ignores it.
	Path string

	// OnListen hears the address on which [Listen] takes connections, as soon as it does.
	OnListen func(net.Addr)
}

func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	c.MaxMessageBytes = httpserve.Positive(c.MaxMessageBytes, DefaultMaxMessageBytes)
	c.MaxConnections = httpserve.Positive(c.MaxConnections, DefaultMaxConnections)
	c.KeepAlive = cmp.Or(c.KeepAlive, DefaultKeepAlive)
	c.MessageTimeout = cmp.Or(c.MessageTimeout, DefaultMessageTimeout)
	c.SessionIdle = cmp.Or(c.SessionIdle, DefaultSessionIdle)
	c.ShutdownTimeout = httpserve.Positive(c.ShutdownTimeout, DefaultShutdownTimeout)
	c.Path = cmp.Or(c.Path, DefaultPath)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// A Handler serves MCP over WebSockets at one URL. Make one with [NewHandler]. It is safe for concurrent use.
type Handler struct {
	rpc   transport.Handler
	opts  Options
	guard httpguard.Rules
	conns *httpserve.Connections
}

// NewHandler returns a handler that passes the messages it receives to h.
func NewHandler(h transport.Handler, opts *Options) *Handler {
	x := &Handler{rpc: h, opts: opts.withDefaults()}
	x.guard = httpguard.New(x.opts.AllowedOrigins, x.opts.AllowedHosts)
	x.conns = httpserve.NewConnections(x.opts.MaxConnections, x.opts.TrustedProxies)
	return x
}

// ServeHTTP upgrades a request to a connection, and serves it until it ends.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if why := h.guard.Refuse(r); why != "" {
		http.Error(w, why, http.StatusForbidden)
		return
	}
	if isUpgrade(r) && !offers(r.Header, Subprotocol) {
		http.Error(w, `the WebSocket subprotocol "mcp" has to be offered`, http.StatusBadRequest)
		return
	}
	place := h.conns.Open(w, r)
	if place == nil {
		return
	}
	defer place.Close()
	// Who asks, and from where, was looked at by the guard, which knows loopback addresses and allowed origins.
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{Subprotocol}, InsecureSkipVerify: true})
	if err != nil {
		return // which Accept answered
	}
	h.serve(r, place, conn)
}

func isUpgrade(r *http.Request) bool { return r.Header.Get("Sec-WebSocket-Key") != "" }

// offers reports whether a client offers a subprotocol.
func offers(h http.Header, protocol string) bool {
	for _, line := range h["Sec-Websocket-Protocol"] {
		for offered := range strings.SplitSeq(line, ",") {
			if strings.TrimSpace(offered) == protocol {
				return true
			}
		}
	}
	return false
}

// serve runs a connection as the request that it began with: its context's values and header fields are those of
// all calls. It ends when the credential does that it was opened with, since there is no request in which a
// client could bring another.
func (h *Handler) serve(r *http.Request, place *httpserve.Connection, conn *websocket.Conn) {
	wire := newWire(conn, h.opts.MaxMessageBytes, h.opts.MessageTimeout)
	wire.origin.Header = transport.Header(r.Header)
	link := duplex.New(wire, place.Handler(h.rpc), &duplex.Options{
		MaxInFlight:      h.opts.MaxInFlight,
		MaxInFlightBytes: h.opts.MaxInFlightBytes,
		DrainTimeout:     h.opts.ShutdownTimeout,
		WriteTimeout:     h.opts.WriteTimeout,
		Cancelling:       place.Cancelling(),
		Logger:           h.opts.Logger,
	})
	defer place.Attach(link.Close, wire.closeNow)()
	ctx, cancel := oauth.WithExpiry(context.WithoutCancel(r.Context()))
	defer cancel()
	if h.opts.KeepAlive > 0 {
		// Ends with ctx.
		go wire.keepAlive(ctx, h.opts.KeepAlive)
	}
	if h.opts.SessionIdle > 0 {
		// Ends with ctx.
		go wire.endIdle(ctx, link, h.opts.SessionIdle)
	}
	if err := link.Serve(ctx); err != nil {
		h.opts.Logger.WarnContext(ctx, "websocket: a connection broke", "peer", r.RemoteAddr, "error", err)
	}
}

// Shutdown refuses new connections with 503 and ends those that there are: calls in flight may finish within
// Options.ShutdownTimeout, and be answered. Those that have not finished when ctx ends are cancelled, and have another second to be
// answered. The error is the cause of ctx's end when calls had to be cancelled.
func (h *Handler) Shutdown(ctx context.Context) error { return h.conns.Shutdown(ctx) }

// Close refuses new connections and cuts those that there are. It does not wait for them, and may be called more than once.
func (h *Handler) Close() { h.conns.Lifecycle.Close() }

// Listen returns a transport that serves WebSockets on addr ("127.0.0.1:8080"; ":0" for a free port) at the path of
// opts, with an HTTP server of its own. Its Serve returns nil when ctx ended, after the calls in flight finished or
// were cancelled at the end of Options.ShutdownTimeout.
func Listen(addr string, opts *Options) transport.Transport {
	o := opts.withDefaults()
	return httpserve.Listen(httpserve.Server{
		Name:            "websocket",
		Addr:            addr,
		Path:            o.Path,
		ShutdownTimeout: o.ShutdownTimeout + 2*time.Second, // by when connections have ended by themselves
		AllowedHosts:    o.AllowedHosts,
		Logger:          o.Logger,
		OnListen:        o.OnListen,
	}, func(h transport.Handler) httpserve.Handler { return NewHandler(h, &o) })
}

// DialOptions configures [Dial]. The zero value serves, and so does nil.
type DialOptions struct {
	// Client sends the upgrade request. Nil means http.DefaultClient.
	Client *http.Client

	// Header is added to the upgrade request, for authorization.
	Header http.Header

	// MaxMessageBytes is how long a message of the server may be. Zero means [DefaultMaxMessageBytes].
	MaxMessageBytes int64
}

// A HandshakeError says that a server answered the handshake by another status than 101.
type HandshakeError struct {
	// Response is the answer of the server. Its body holds the first 1024 bytes at most.
	Response *http.Response

	err error
}

// Error says what is wrong with the answer.
func (e *HandshakeError) Error() string { return e.err.Error() }

// A Conn is the client's end of a connection. It carries messages and does not know what they mean. Read is called by one goroutine at a
// time, and so is Write; the rest may be called while they run.
type Conn interface {
	// Read returns the next message.
	Read() ([]byte, error)

	// Write sends messages, each ended by a line feed and without another one in it.
	Write(lines []byte) (int, error)

	// CloseRead says that no more messages are wanted. It need not end a Read.
	CloseRead() error

	// Close ends the connection, and what is being read or written.
	Close() error
}

// Dial connects to a server at a ws, wss, http or https URL, until ctx ends. The error is a [*HandshakeError] where the server refuses.
func Dial(ctx context.Context, url string, opts *DialOptions) (Conn, error) {
	if opts == nil {
		opts = &DialOptions{}
	}
	conn, resp, err := websocket.Dial(ctx, url, &websocket.DialOptions{
		HTTPClient:   opts.Client,
		HTTPHeader:   opts.Header.Clone(),
		Subprotocols: []string{Subprotocol},
	})
	if err != nil && resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
		return nil, &HandshakeError{resp, err}
	}
	if err != nil {
		return nil, err
	}
	if conn.Subprotocol() != Subprotocol {
		_ = conn.Close(websocket.StatusProtocolError, "subprotocol mcp was not agreed on")
		return nil, errNoSubprotocol
	}
	most := opts.MaxMessageBytes
	if most <= 0 {
		most = DefaultMaxMessageBytes
	}
	return newWire(conn, most, 0), nil
}
