// Package client calls MCP servers. It speaks all versions of the protocol, 2024-11-05 to
// 2026-07-28, over stdio, Streamable HTTP, HTTP+SSE, WebSocket, Unix sockets and in memory.
//
// [Dial] connects, agrees on a version with the server, and returns a [Client] with a typed method
// for each request of the protocol:
//
//	c, err := client.Dial(ctx, "https://shop.example.com/mcp")
//	defer c.Close()
//	hits, err := client.Call[[]Hit](ctx, c, "search", Query{Text: "tea"})
//
// [Handlers] answers what servers ask of users and models, and [Client.Listen] receives changes.
//
// # Errors
//
// A [*ToolError] is an error that the tool reports, for the model to read. A [*jsonrpc.Error] is an
// error response of the server. A [*StatusError] is an HTTP status in place of a response, for
// example 401. An [*InvalidResponseError] or [*OutputError] is a fault of the server.
// [transport.ErrClosed] says that the client or the connection is closed; a timeout is
// [context.DeadlineExceeded].
//
// # Servers are not trusted
//
// The client limits the size, depth, number and time of what a server sends. It never connects to
// another host because of it, and never runs commands from it. Names, descriptions and hints are
// text of the server: show them as such.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A Client is a client of one server. Create one with [Dial]. It is safe for concurrent use.
type Client struct {
	cfg      *config
	log      *slog.Logger
	conn     roundTripper
	agreed   atomic.Pointer[agreement]
	lastID   atomic.Int64
	logLevel atomic.Pointer[protocol.LoggingLevel] // set by SetLogLevel

	base   context.Context // of background tasks; canceled by Close
	cancel context.CancelCauseFunc
	live   context.Context // canceled by Close and by ended
	ended  context.CancelFunc
	work   goroutines

	flights flights
	changes changes
	tools   toolIndex
	cache   cache

	warned    sync.Map   // by message, how often: *atomic.Int64
	renewing  sync.Mutex // held while replacing a legacy session
	closeOnce sync.Once
	closeErr  error
}

// An agreement is the result of negotiation. It is immutable; a new session has a new one.
type agreement struct {
	version      protocol.Version
	info         protocol.Implementation
	capabilities protocol.ServerCapabilities
	instructions string
	meta         protocol.Meta // of every request; empty for legacy
}

// Version returns the protocol version that client and server agreed on.
func (c *Client) Version() protocol.Version { return c.agreed.Load().version }

// Server returns the name and version that the server reports. They may be empty; do not base
// decisions on them.
func (c *Client) Server() protocol.Implementation { return c.agreed.Load().info }

// Capabilities returns the capabilities of the server.
func (c *Client) Capabilities() protocol.ServerCapabilities { return c.agreed.Load().capabilities }

// Extension returns the settings with which the server declares an extension. ok is false if it
// does not declare it.
func (c *Client) Extension(id string) (settings protocol.Object, ok bool) {
	settings = c.Capabilities().Extensions[id]
	return settings, settings != nil
}

// Instructions returns the server's instructions for models, "" if there are none.
func (c *Client) Instructions() string { return c.agreed.Load().instructions }

func (c *Client) modern() bool { return c.Version().Modern() }

// Dial connects to a server, agrees on a version with it, and returns the client. ctx applies only
// to Dial itself. Target is one of
//
//   - a string that is an http or https URL: Streamable HTTP, or where the server refuses that, HTTP+SSE of 2024-11-05,
//   - a string that is a ws or wss URL: WebSocket,
//   - a string that begins with unix: and names a socket, "unix:/run/notes.sock",
//   - any other string: a command line, see [Command] for how it is run. It is split at blanks outside of quotes; no shell sees it,
//   - a [Target], made by [URL], [HTTPSSE], [Command], [Unix], [Connect], [Stream] or [InMemory],
//   - a [transport.Handler], for example a *mcpkit.Server: it is called in memory,
//   - an [io.ReadWriteCloser]: a connection that is open.
//
// The client uses the newest version that both support. It sends server/discover first; if the
// server does not support that, it sends initialize. [Version] sets the version.
func Dial(ctx context.Context, target any, opts ...DialOption) (*Client, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	t, err := asTarget(target)
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, log: cfg.logger}
	c.base, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	c.live, c.ended = context.WithCancel(c.base)
	c.changes.init(c)
	c.cache.off = cfg.noCache
	if c.conn, err = t.dial(ctx, c); err != nil {
		c.cancel(transport.ErrClosed)
		return nil, fmt.Errorf("client: %w", err)
	}
	if _, ok := c.conn.(*httpConn); ok { // other connections keep the credentials of their handshake
		c.cache.owner = cfg.authorization
	}
	err = c.negotiate(ctx)
	if err != nil {
		err = c.fallBack(ctx, err)
	}
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("client: %w", err)
	}
	c.begun(ctx)
	return c, nil
}

// begun starts the subscriptions and streams that the handlers need.
func (c *Client) begun(ctx context.Context) {
	h := c.cfg.handlers
	if c.modern() {
		if f := h.filter(c.Capabilities()); !isEmptyFilter(f) {
			c.background(func(context.Context) { c.follow(f) })
		}
		return
	}
	if h.unasked() {
		c.listen(ctx)
	}
}

// listen opens the stream on which a legacy server sends messages outside calls. It waits up to
// listenPatience until the stream is open: some servers lose requests that they send before, but
// others send no headers before the first message.
func (c *Client) listen(ctx context.Context) {
	open := c.conn.listen()
	if open == nil {
		return
	}
	select {
	case <-open:
	case <-time.After(listenPatience):
	case <-ctx.Done():
	}
}

const listenPatience = 500 * time.Millisecond

// background runs f on a new goroutine. Close cancels the context of f and waits for f. After
// Close, background does nothing and returns false.
func (c *Client) background(f func(ctx context.Context)) bool {
	return c.work.start(func() { f(c.base) })
}

// goroutines are the background goroutines of a client.
type goroutines struct {
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool // guarded by mu
}

func (g *goroutines) start(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		// Ends when f does; wait waits for it.
		g.running.Go(f)
	}
	return !g.closed
}

// wait refuses new goroutines and waits for the running ones, until ctx is done.
func (g *goroutines) wait(ctx context.Context) {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	await(ctx, g.running.Wait)
}

// await calls f, and returns when f has returned or ctx is done.
func await(ctx context.Context, f func()) {
	over := make(chan struct{})
	// Ends with f.
	go func() {
		defer close(over)
		f()
	}()
	select {
	case <-over:
	case <-ctx.Done():
	}
}

// closePatience is how long Close waits for calls in flight and for handlers to return.
const closePatience = time.Second

// Close ends the session and closes the connection. Calls in flight fail with
// [transport.ErrClosed], and a child process is ended (see [Command]). Close cancels the context of
// running methods of [Handlers] and waits up to 1 second for them, so they may call Close too. The
// error is that of a child process that failed; calling Close again returns the same error.
func (c *Client) Close() error {
	c.closeOnce.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closePatience)
		defer cancel()
		c.cancel(transport.ErrClosed)
		c.flights.closeAll(ctx)
		c.work.wait(ctx)
		c.closeErr = c.conn.close()
	})
	return c.closeErr
}

// Done returns a channel that is closed when the connection has ended: a process, a socket or a
// WebSocket, which the client does not open again, or after Close. An HTTP server that cannot be
// reached does not close it.
func (c *Client) Done() <-chan struct{} { return c.live.Done() }

// Shared reports whether calls share one stream of messages: in memory, over HTTP+SSE, and on every
// connection such as a process or a WebSocket. Then log messages, and the requests of legacy servers,
// do not say which call they belong to. Over Streamable HTTP, each call has a stream of its own.
func (c *Client) Shared() bool { return !c.conn.mirrors() }

// nextID returns the ID of the next request.
func (c *Client) nextID() jsonrpc.ID { return jsonrpc.NumberID(c.lastID.Add(1)) }

// Request sends a request of any method and decodes the result into result unless that is nil. Use
// it for methods without a function in this package, or pass a *json.RawMessage to get the raw
// result. Params are as for [jsonrpc.NewRequest]; the client adds _meta.
func (c *Client) Request(ctx context.Context, method string, params, result any, opts ...CallOption) error {
	r := request{method: method, params: params}
	if err := r.recognize(); err != nil {
		return err
	}
	raw, err := c.do(ctx, r, opts)
	if err != nil {
		return err
	}
	if result == nil {
		return nil
	}
	return decodeResult(method, r.name, raw, result)
}

// recognize sets the fields of r for the protocol's own methods.
func (r *request) recognize() error {
	member := "name"
	switch r.method {
	case protocol.MethodResourcesRead:
		member, r.reads = "uri", true
	case protocol.MethodPromptsGet:
		r.reads = true
	case protocol.MethodToolsCall:
	default:
		return nil
	}
	params, err := encodeParams(r)
	if err != nil {
		return err
	}
	r.params, r.asks = rawObject(params), true
	r.name = jsonx.String(jsonx.Member(params, member))
	r.arguments = jsonx.Member(params, "arguments")
	return nil
}

// Notify sends a notification of any method, with params as for [jsonrpc.NewNotification]. Modern
// servers over HTTP accept no notifications.
func (c *Client) Notify(ctx context.Context, method string, params any) error {
	n, err := jsonrpc.NewNotification(method, params)
	if err != nil {
		return err
	}
	if c.base.Err() != nil {
		return explain(&request{method: method}, transport.ErrClosed)
	}
	if err := c.conn.notify(ctx, n); err != nil {
		return explain(&request{method: method}, err)
	}
	return nil
}

// maxWarnings is how often the client logs the same warning.
const maxWarnings = 10

// warn logs message, a constant, at most maxWarnings times, so that a server cannot fill the log.
func (c *Client) warn(message string, args ...any) {
	count, _ := c.warned.LoadOrStore(message, new(atomic.Int64))
	n := count.(*atomic.Int64).Add(1)
	if n == maxWarnings {
		args = append(args, "further", "not logged")
	}
	if n <= maxWarnings {
		c.log.Warn(message, args...)
	}
}

// An exchange is a request that a transport sends and waits for.
type exchange struct {
	req     *jsonrpc.Request
	version protocol.Version  // of the request; "" for initialize
	name    string            // value of Mcp-Name
	mirror  map[string]string // Mcp-Param-* headers, encoded
	flight  *flight
}

// A roundTripper is the client side of a transport. Its methods may be called concurrently.
type roundTripper interface {
	// roundTrip sends x and waits for the response. Errors are [transport.ErrClosed], that of ctx,
	// a *StatusError, an *InvalidResponseError, errLost, errNoSession, and those of the network.
	roundTrip(ctx context.Context, x *exchange) (*jsonrpc.Response, error)
	notify(ctx context.Context, n *jsonrpc.Request) error
	// renew reconnects before initialize if a failed probe has ended the connection.
	renew(ctx context.Context, probe error) error
	// settled sets the version of the messages that follow.
	settled(v protocol.Version)
	// listen opens the stream on which a legacy server sends messages outside calls, if the
	// transport needs one. The channel is closed when the stream is open or cannot be opened; it is
	// nil if there is nothing to open.
	listen() <-chan struct{}
	// mirrors reports whether headers repeat parts of requests.
	mirrors() bool
	close() error
}

var (
	// errLost means that the server may have handled the request.
	errLost = errors.New("the stream ended before the response")
	// errNoSession means that the server no longer has the session.
	errNoSession = errors.New("the server ended the session")
)

// rawObject is the type of encoded params.
type rawObject = json.RawMessage
