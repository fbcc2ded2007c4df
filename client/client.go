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
// A [*ToolError] is a failure that the tool reports, for the model to read. A [*jsonrpc.Error] is a
// refusal by the server. A [*StatusError] is an HTTP status in place of a response, for example
// 401. An [*InvalidResponseError] or [*OutputError] is a fault of the server. [transport.ErrClosed]
// says that the client or the connection is closed; a timeout is [context.DeadlineExceeded].
//
// # Servers are not trusted
//
// What a server sends is bounded in size, depth, number and time. Nothing in it makes the client
// connect to another host, and commands come from the program alone. Names, descriptions and hints
// are text of the server: show them as such.
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
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A Client is one client of one server. Make one with [Dial]. It is safe for concurrent use.
type Client struct {
	cfg      *config
	log      *slog.Logger
	conn     conn
	inMemory bool // conn is a memoryConn, whose peer is this process: nothing has looked at what it sends
	agreed   atomic.Pointer[agreement]
	lastID   atomic.Int64
	logLevel atomic.Pointer[protocol.LoggingLevel] // set by SetLogLevel

	base   context.Context // of what runs in the background; ends with Close
	cancel context.CancelCauseFunc
	tasks  tasks

	flights flights
	visits  visits
	changes changes
	tools   toolIndex
	cache   cache

	warnings  warnings
	renewing  sync.Mutex // held while a legacy session is begun anew
	closeOnce sync.Once
	closeErr  error
}

// An agreement is what client and server settled on. It does not change; a new session makes a new
// one.
type agreement struct {
	version      protocol.Version
	info         protocol.Implementation
	capabilities protocol.ServerCapabilities
	instructions string
	meta         []byte // the members that the _meta of every request has, without braces; empty for legacy
}

// Version returns the protocol version that client and server agreed on.
func (c *Client) Version() protocol.Version { return c.agreed.Load().version }

// Server returns the name and version that the server reports. They may be empty; do not make
// decisions depend on them.
func (c *Client) Server() protocol.Implementation { return c.agreed.Load().info }

// Capabilities returns the capabilities of the server.
func (c *Client) Capabilities() protocol.ServerCapabilities { return c.agreed.Load().capabilities }

// Instructions returns the instructions that the server gives for models; "" for none.
func (c *Client) Instructions() string { return c.agreed.Load().instructions }

func (c *Client) modern() bool { return c.Version().Modern() }

// Dial connects to a server, agrees on a version with it, and returns the client. ctx is for
// dialing alone. Target is one of
//
//   - a string that is an http or https URL: Streamable HTTP, or where the server refuses that, HTTP+SSE of 2024-11-05,
//   - a string that is a ws or wss URL: WebSocket,
//   - a string that begins with unix: and names a socket, "unix:/run/notes.sock",
//   - any other string: a command line, see [Command] for how it is run. It is split at blanks outside of quotes; no shell sees it,
//   - a [Target], made by [URL], [HTTPSSE], [Command], [Unix], [Connect], [Stream], [Messages] or [InMemory],
//   - a [transport.Handler], for example a *mcpkit.Server: it is called in memory,
//   - an [io.ReadWriteCloser]: a connection that is open.
//
// The newest version that both speak is taken: first the client asks by server/discover, and where
// the server does not know that, it initializes a session (see [Version] for pinning a version).
// The error says why nothing could be agreed on.
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
	c.changes.init(c)
	c.cache.off = cfg.noCache
	if c.conn, err = t.dial(ctx, c); err != nil {
		c.cancel(transport.ErrClosed)
		return nil, fmt.Errorf("client: %w", err)
	}
	_, c.inMemory = c.conn.(*memoryConn)
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

// begun starts what a client does by itself once the version is settled.
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

// listen opens the way for what a legacy server sends outside of calls. It waits for that a little:
// a question that comes before is lost with some servers, but others say nothing before they have
// something to send.
func (c *Client) listen(ctx context.Context) {
	open := c.conn.listen()
	if open == nil {
		return
	}
	t := time.NewTimer(listenPatience)
	defer t.Stop()
	select {
	case <-open:
	case <-t.C:
	case <-ctx.Done():
	}
}

const listenPatience = 500 * time.Millisecond

// background runs f on a goroutine of its own. The context of f ends with Close, which waits for f.
// After Close it does nothing, and reports false.
func (c *Client) background(f func(ctx context.Context)) bool {
	return c.tasks.start(func() { f(c.base) })
}

// tasks are what runs in the background.
type tasks struct {
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool // guarded by mu
}

func (t *tasks) start(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		// Ends when f does; wait waits for it.
		t.running.Go(f)
	}
	return !t.closed
}

// wait refuses more tasks and waits for those that run, until ctx ends.
func (t *tasks) wait(ctx context.Context) {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	over := make(chan struct{})
	// Ends with the last task.
	go func() {
		t.running.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-ctx.Done():
	}
}

// closePatience is how long Close waits for calls in flight and for handlers to return.
const closePatience = time.Second

// Close ends the session and what belongs to it: calls in flight fail with [transport.ErrClosed],
// and a child process is asked to end and in the end killed (see [Command]). It returns when that
// is done, and waits up to 1 second for methods of [Handlers] that are running: their context has
// ended. So it may be called inside of these too. The error says what went wrong at the end of a
// child process; calling Close again returns it again.
func (c *Client) Close() error {
	c.closeOnce.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closePatience)
		defer cancel()
		c.cancel(transport.ErrClosed)
		c.flights.closeAll(ctx)
		c.tasks.wait(ctx)
		c.closeErr = c.conn.close()
	})
	return c.closeErr
}

// nextID names the next request.
func (c *Client) nextID() jsonrpc.ID { return jsonrpc.NumberID(c.lastID.Add(1)) }

// Request sends a request of any method and decodes the result into result, unless that is nil. Use
// it for methods that have no function in this package, or pass a *json.RawMessage to get the
// result undecoded. Params are as for [jsonrpc.NewRequest]; the client adds their _meta.
func (c *Client) Request(ctx context.Context, method string, params, result any, opts ...CallOption) error {
	r := request{method: method, params: params}
	if err := r.recognise(); err != nil {
		return err
	}
	raw, err := c.do(ctx, r, opts)
	if err != nil {
		return err
	}
	if result == nil {
		return nil
	}
	return decodeResult(method, raw, result)
}

// recognise finds what is known of the protocol's own methods: what they are about, and that they
// may ask.
func (r *request) recognise() error {
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
// servers over HTTP accept none.
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

// maxWarnings is how often the client logs the same misbehaviour of a server.
const maxWarnings = 10

// warnings counts what a server does wrong, so that it cannot fill the log either.
type warnings struct {
	mu    sync.Mutex
	count map[string]int // guarded by mu
}

// warn logs message, a constant, unless it was logged often enough.
func (c *Client) warn(message string, args ...any) {
	w := &c.warnings
	w.mu.Lock()
	if w.count == nil {
		w.count = map[string]int{}
	}
	w.count[message]++
	n := w.count[message]
	w.mu.Unlock()
	if n == maxWarnings {
		args = append(args, "further", "not logged")
	}
	if n <= maxWarnings {
		c.log.Warn(message, args...)
	}
}

// An exchange is one request in progress, as the transports see it.
type exchange struct {
	req     *jsonrpc.Request
	version protocol.Version  // of the request; "" for initialize
	name    string            // what Mcp-Name says
	mirror  map[string]string // Mcp-Param-* headers, encoded
	flight  *flight
}

// A conn carries messages to one server and back: it is a transport's client end. Its methods may
// be called concurrently.
type conn interface {
	// roundTrip sends x and waits for the response, which has its ID. Errors that are not the
	// server's are [transport.ErrClosed], that of ctx, a *StatusError, errLost, errNoSession, and
	// those of the network.
	roundTrip(ctx context.Context, x *exchange) (*jsonrpc.Response, error)
	notify(ctx context.Context, n *jsonrpc.Request) error
	// renew makes a connection that a failed probe may have spoilt fit for initialize.
	renew(ctx context.Context, probe error) error
	// settled tells the version of all that follows.
	settled(v protocol.Version)
	// listen opens the way for what the server sends outside of any call, where that takes opening
	// (legacy). The channel is closed when it is open or never will be; it is nil where there is
	// nothing to wait for.
	listen() <-chan struct{}
	// mirrors reports whether requests are mirrored in headers.
	mirrors() bool
	close() error
}

var (
	// errLost says that the stream ended before the response came: the server may or may not have
	// handled the request.
	errLost = errors.New("the stream ended before the response")
	// errNoSession says that the server no longer knows the session.
	errNoSession = errors.New("the server ended the session")
)

// rawObject is params that are encoded already.
type rawObject = json.RawMessage
