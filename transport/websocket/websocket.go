// Package websocket carries MCP over WebSockets (RFC 6455). Each text message is one JSON-RPC
// message, the subprotocol is "mcp", and the connection is the session.
//
// The MCP specification does not define this transport. It works as in the official TypeScript and
// Python SDKs. Package internal/conn describes order, cancellation, limits and shutdown.
//
// Mount a [Handler] like any http.Handler.
package websocket

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/transport"
)

// Subprotocol is the WebSocket subprotocol that client and server must agree on.
const Subprotocol = "mcp"

// Defaults of [Options].
const (
	defaultMaxMessageBytes = 4 << 20
	defaultMaxConnections  = 1000
	defaultMaxBytes        = 256 << 20
	defaultKeepAlive       = 25 * time.Second
	defaultMessageTimeout  = time.Minute
	defaultSessionIdle     = 30 * time.Minute
	defaultShutdownTimeout = 10 * time.Second
)

// Options configures a [Handler]. The zero value and nil are ready to use.
type Options struct {
	// MaxMessageBytes limits the length of a message. A longer message closes the connection with
	// the status 1009. Zero means 4 MiB.
	MaxMessageBytes int64

	// MaxConnections limits the open connections. Zero means 1,000. Beyond the
	// limit, a new connection evicts the one that was idle longest. If all have calls in flight, the
	// client gets 503.
	MaxConnections int

	// MaxBytes limits the bytes of unanswered requests, of results being encoded and of unread
	// responses, of all connections together. The first 64 KiB of each do not count. Beyond the limit,
	// a request gets -32603, "busy", and a method is not called if its last results were too large. A
	// single connection may need more. Zero means 256 MiB.
	MaxBytes int64

	// TrustedProxies are the networks of proxies whose X-Forwarded-For header is trusted. Behind
	// any other proxy, all callers without a principal count as one for rate limits.
	TrustedProxies []netip.Prefix

	// MaxInFlight limits the unanswered requests of a client. The server refuses more. Zero means
	// 1024.
	MaxInFlight int

	// MaxInFlightBytes limits the bytes of the unanswered requests of a client. Zero means 16 MiB.
	MaxInFlightBytes int64

	// AllowedOrigins are the origins, besides the server's own, whose pages may connect.
	// AllowedHosts are the hosts that requests may name. Both work as in streamable.Options.
	// Browsers let any page connect to any WebSocket, so only these checks keep foreign pages out.
	AllowedOrigins []string
	AllowedHosts   []string

	// KeepAlive is the time between pings. A client that has not answered when the next ping is due
	// is disconnected. Zero means 25 seconds; a negative value turns pings off.
	KeepAlive time.Duration

	// MessageTimeout limits the time from the first frame of a message to its last. A slower
	// message closes the connection with the status 1008. Zero means 1 minute; a negative value
	// means no limit.
	MessageTimeout time.Duration

	// SessionIdle is how long a connection may have neither messages nor calls in flight before the
	// server closes it with the status 1000. Pings do not count. Zero means 30 minutes; a negative
	// value means no limit.
	SessionIdle time.Duration

	// WriteTimeout is how long a client may read nothing while data waits before the server closes
	// the connection. Zero means 30 s.
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
	c.MaxMessageBytes = httpserve.Positive(c.MaxMessageBytes, defaultMaxMessageBytes)
	c.MaxConnections = httpserve.Positive(c.MaxConnections, defaultMaxConnections)
	c.MaxBytes = httpserve.Positive(c.MaxBytes, defaultMaxBytes)
	c.KeepAlive = cmp.Or(c.KeepAlive, defaultKeepAlive)
	c.MessageTimeout = cmp.Or(c.MessageTimeout, defaultMessageTimeout)
	c.SessionIdle = cmp.Or(c.SessionIdle, defaultSessionIdle)
	c.ShutdownTimeout = httpserve.Positive(c.ShutdownTimeout, defaultShutdownTimeout)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// A Handler serves MCP over WebSockets at one URL. Create one with [NewHandler]. It is safe for
// concurrent use.
type Handler struct {
	rpc   transport.Handler
	opts  Options
	guard httpserve.Guard
	conns *httpserve.Connections
}

// NewHandler returns a Handler that passes the messages it receives to h.
func NewHandler(h transport.Handler, opts *Options) *Handler {
	x := &Handler{rpc: h, opts: opts.withDefaults()}
	x.guard = httpserve.NewGuard(x.opts.AllowedOrigins, x.opts.AllowedHosts)
	x.conns = httpserve.NewConnections(x.opts.MaxConnections, x.opts.MaxBytes, x.opts.TrustedProxies)
	return x
}

// ServeHTTP upgrades the request to a WebSocket and serves it until it closes.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if why := h.guard.Refuse(r); why != "" {
		http.Error(w, why, http.StatusForbidden)
		return
	}
	if r.Header.Get("Sec-WebSocket-Key") == "" {
		_, _ = websocket.Accept(w, r, nil) // responds with what is missing
		return
	}
	if !offers(r.Header, Subprotocol) {
		http.Error(w, `the client must offer the WebSocket subprotocol "mcp"`, http.StatusBadRequest)
		return
	}
	place := h.conns.Open(w)
	if place == nil {
		return
	}
	defer place.Close()
	// The guard has checked Origin and Host.
	accept := &websocket.AcceptOptions{Subprotocols: []string{Subprotocol}, InsecureSkipVerify: true}
	conn, err := websocket.Accept(w, r, accept)
	if err != nil {
		return // Accept has responded
	}
	h.serve(r, place, conn)
}

// offers reports whether a client offers a subprotocol.
func offers(h http.Header, protocol string) bool {
	offered := strings.Split(strings.Join(h["Sec-Websocket-Protocol"], ","), ",")
	return slices.ContainsFunc(offered, func(name string) bool { return strings.TrimSpace(name) == protocol })
}

// serve runs the connection that the request r opened. All calls have the header of r.
func (h *Handler) serve(r *http.Request, place *httpserve.Connection, socket *websocket.Conn) {
	wire := newWire(socket, h.opts.MaxMessageBytes, h.opts.MessageTimeout)
	wire.origin.Header = transport.Header(r.Header)
	if h.opts.KeepAlive > 0 {
		// Ends with the connection.
		go wire.keepAlive(h.opts.KeepAlive)
	}
	err := place.Serve(r, wire, h.rpc, conn.Options{
		MaxInFlight:      h.opts.MaxInFlight,
		MaxInFlightBytes: h.opts.MaxInFlightBytes,
		DrainTimeout:     h.opts.ShutdownTimeout,
		WriteTimeout:     h.opts.WriteTimeout,
		Logger:           h.opts.Logger,
	}, h.opts.SessionIdle, wire.closeNow)
	if err != nil {
		h.opts.Logger.WarnContext(r.Context(), "websocket: connection failed", "peer", r.RemoteAddr, "error", err)
	}
}

// Shutdown refuses new connections with 503 and closes the open ones. Calls in flight may finish
// within Options.ShutdownTimeout. When ctx ends, Shutdown cancels the rest, gives them one second
// to respond, and returns the cause of ctx.
func (h *Handler) Shutdown(ctx context.Context) error { return h.conns.Shutdown(ctx) }

// Close refuses new connections and closes the open ones without waiting. It may be called more
// than once.
func (h *Handler) Close() { h.conns.Lifecycle.Close() }

// DialOptions configures [Dial]. The zero value and nil are ready to use.
type DialOptions struct {
	// Client sends the upgrade request. Nil means http.DefaultClient.
	Client *http.Client

	// Header is added to the upgrade request, for example for authorization.
	Header http.Header

	// MaxMessageBytes limits the length of a message of the server. Zero means 4 MiB.
	MaxMessageBytes int64
}

// A HandshakeError is the error of [Dial] if the server responds with another status than 101.
type HandshakeError struct {
	// Response is the response of the server. Its body has at most 1024 bytes.
	Response *http.Response

	err error
}

// Error returns what is wrong with the response.
func (e *HandshakeError) Error() string { return e.err.Error() }

// A Conn is the client's end of a connection. It carries messages and does not know what they mean.
// One goroutine may call Read and another Write at the same time. Any goroutine may call the other
// methods meanwhile.
type Conn interface {
	// Read returns the next message.
	Read() ([]byte, error)

	// Write sends one or more messages. Each ends with a line feed and contains no other.
	Write(lines []byte) (int, error)

	// CloseRead declares that no more messages are read. It need not end a Read.
	CloseRead() error

	// Close closes the connection and ends a Read or Write that is running.
	Close() error
}

// Dial connects to the server at a ws, wss, http or https URL. ctx limits the handshake. The error
// is a [*HandshakeError] if the server refuses it.
func Dial(ctx context.Context, url string, opts *DialOptions) (Conn, error) {
	if opts == nil {
		opts = &DialOptions{}
	}
	conn, resp, err := websocket.Dial(ctx, url, &websocket.DialOptions{ //nolint:bodyclose // the library reads it
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
		_ = conn.Close(websocket.StatusProtocolError, "the server did not select the subprotocol mcp")
		return nil, errNoSubprotocol
	}
	return newWire(conn, httpserve.Positive(opts.MaxMessageBytes, defaultMaxMessageBytes), 0), nil
}
