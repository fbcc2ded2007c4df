// Package conn runs one connection that carries messages both ways. Stdio, sockets and WebSockets
// share it, on both sides of the connection.
//
// It records the requests in flight, matches responses and cancellations, and keeps the order that
// peers rely on. A [Wire] frames the messages; the Handler handles them.
//
// Goroutines. One reads; each request and each notification has a goroutine of its own; one more
// writes while there is something to write.
//
// Order. Notifications are handled one after the other. On a server, a request starts after the
// notifications before it have returned, however long they take, or when they themselves wait for
// the peer; a ping starts at once. All messages behind initialize, except ping, wait until it is
// answered: a client may send everything at once. Notifications sent with Peer.Notify go out before
// the response.
//
// Limits. They are listed in limits.go. Requests beyond the limits are refused at once: if they
// waited, the cancellations behind them would wait too. While a peer does not read its responses,
// nothing is read from it. A peer that reads nothing for Options.WriteTimeout is disconnected.
package conn

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"time"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A Wire reads and writes messages. One goroutine at a time calls Read, and one calls Write.
type Wire interface {
	// Read returns the next message, whose bytes must not change afterwards. The error is [io.EOF]
	// at the end. After a [*BadMessageError], which concerns one message, reading continues. Any
	// other error ends the connection.
	Read() ([]byte, error)

	// Write sends one or more messages. Each ends with '\n' and contains no other '\n' or '\r'. A
	// long one may come in parts. Write must not keep the bytes. [io.ErrClosedPipe] and similar
	// errors mean that the peer has disconnected.
	Write(lines []byte) (int, error)

	// CloseRead makes Read return any error, if possible. It may be called while Read and Write
	// run.
	CloseRead() error

	// Close ends the connection and should make Read and Write return. It may be called while they
	// run, and more than once.
	Close() error
}

// An OriginWire is a [Wire] whose messages have an origin, such as the POST that carried them.
type OriginWire interface {
	Wire

	// Origin returns the origin of the message that Read returned last. It is called before the
	// next Read.
	Origin() Origin
}

// An Origin is the context and header that came with a message.
type Origin struct {
	// Context adds its values to the context of the handler; its end is ignored. Nil means none.
	Context context.Context

	// Header is the header of [transport.Peer].
	Header transport.Header
}

// A BadMessageError is returned for one message that could not be read. Text is sent in the error
// response.
type BadMessageError struct {
	Text string
	Head []byte // the beginning of the message, to find its ID; nil if unknown
}

// Error returns the text.
func (e *BadMessageError) Error() string { return e.Text }

// Options configures a Conn. The zero value is ready to use.
type Options struct {
	// MaxInFlight limits the unanswered requests of the peer. Zero means [DefaultMaxInFlight].
	MaxInFlight int

	// MaxInFlightBytes limits the bytes of these requests and of waiting notifications together. A
	// single message may be larger. Zero means [DefaultMaxInFlightBytes].
	MaxInFlightBytes int64

	// MaxUnsentBytes limits the bytes of responses that wait for the peer to read. A single
	// response may be larger. Zero means [DefaultMaxUnsentBytes].
	MaxUnsentBytes int64

	// Memory limits the bytes of requests and responses of all connections that share it. Of each,
	// the first 64 KiB do not count. Nil means no limit.
	Memory *Memory

	// DrainTimeout is how long calls may continue, and their responses may take to be read, after
	// the peer has closed its side or ctx has ended. Zero means [DefaultDrainTimeout].
	DrainTimeout time.Duration

	// WriteTimeout is how long the peer may read nothing while data waits. Then the connection is
	// closed and Serve returns an error. Zero means [DefaultWriteTimeout]; a negative value
	// means no limit.
	WriteTimeout time.Duration

	// Cancelling, if not nil, cancels the calls in flight when it ends. Serve continues.
	Cancelling context.Context

	// Logger receives panics and messages that cannot be sent. Nil means slog.Default.
	Logger *slog.Logger

	// Client marks the client's end of the connection: it may send requests before initialize, its
	// Handler may return nil to leave a request unanswered, and invalid messages are logged instead
	// of answered.
	Client bool

	// First, if not nil, is called with each notification as soon as it is read, before any later
	// message is handled. It must not block. If it returns true, the Handler does not get the
	// notification.
	First func(n *jsonrpc.Request) bool
}

func (o *Options) fill() {
	o.MaxInFlight = cmp.Or(o.MaxInFlight, DefaultMaxInFlight)
	o.MaxInFlightBytes = cmp.Or(o.MaxInFlightBytes, DefaultMaxInFlightBytes)
	o.MaxUnsentBytes = cmp.Or(o.MaxUnsentBytes, DefaultMaxUnsentBytes)
	o.Memory = cmp.Or(o.Memory, &Memory{Max: math.MaxInt64})
	o.DrainTimeout = cmp.Or(o.DrainTimeout, DefaultDrainTimeout)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, DefaultWriteTimeout)
	o.Logger = cmp.Or(o.Logger, slog.Default())
}

// grace is how long calls may take to return after their context is cancelled.
const grace = time.Second

// Serve handles messages until the peer closes its side, the connection breaks, or ctx ends. Then
// calls in flight may finish within Options.DrainTimeout, are cancelled, and get another second.
// Their responses are sent. Open subscriptions are cancelled at once, since they would never end.
//
// If Read fails because the peer has disconnected completely, the calls are cancelled at once.
//
// A disconnect is the usual end, so Serve returns nil. It returns an error if reading or writing
// failed otherwise. Serve is called once. It leaves no goroutine behind, except one in a Read that
// CloseRead could not interrupt, and those of handlers that ignore their context.
func (c *Conn) Serve(ctx context.Context) error {
	// The end of ctx only ends reading. The calls get time to finish.
	c.base = context.WithoutCancel(ctx)
	if c.opts.Cancelling != nil {
		// Runs at most once.
		defer context.AfterFunc(c.opts.Cancelling, func() { c.requests.CancelAll(transport.ErrClosed) })()
	}
	// Ends with the input, or when writing fails. A Read that CloseRead cannot interrupt outlives Serve.
	go c.read()

	err := c.awaitEnd(ctx)
	c.drain()
	if werr := c.out.failure(); err == nil && !gone(werr) {
		err = werr
	}
	c.closeConnection()
	return err
}

// awaitEnd waits for the end of the input, and returns the error of reading.
func (c *Conn) awaitEnd(ctx context.Context) error {
	select {
	case err := <-c.inputEnd:
		switch {
		case errors.Is(err, io.EOF):
		case gone(err):
			c.out.close(transport.ErrClosed) // nobody reads further responses
		default:
			return err
		}
	case <-ctx.Done():
	case <-c.stopping.Done():
	case <-c.out.failed:
	}
	return nil
}

// drain lets the calls in flight finish, or the peer cancel them, and the peer read their
// responses.
func (c *Conn) drain() {
	c.draining.Store(true)
	// No more responses arrive for our requests. Subscriptions do not end by themselves.
	idle := c.requests.Stop(transport.ErrClosed)
	ctx, done := context.WithTimeout(context.Background(), c.opts.DrainTimeout)
	c.finish(ctx, idle, c.out.failed)
	done()
	_ = c.wire.CloseRead()
	c.requests.Close(transport.ErrClosed)

	ctx, done = context.WithTimeout(context.Background(), grace)
	defer done()
	if !c.finish(ctx, idle, nil) {
		t := c.requests.Tally()
		c.opts.Logger.Warn("conn: calls continue after their context was cancelled", "calls", t.Incoming())
	}
}

// finish waits until idle is closed and all responses are written, failed is closed, or ctx ends. It
// reports whether idle is closed.
func (c *Conn) finish(ctx context.Context, idle, failed <-chan struct{}) bool {
	select {
	case <-idle:
		c.out.drain(ctx)
		return true
	case <-failed:
	case <-ctx.Done():
	}
	return false
}

// closeConnection closes the wire and ends the session.
func (c *Conn) closeConnection() {
	c.out.close(transport.ErrClosed)
	_ = c.wire.Close()
	if sh, ok := c.handler.(transport.SessionHandler); ok {
		sh.SessionEnded(c.session)
	}
}

// Close makes Serve return as the end of its ctx does. It does not wait.
func (c *Conn) Close() { c.stop() }

// IdleSince returns when the last message was sent or received. It returns false while one is in
// flight in either direction.
func (c *Conn) IdleSince() (since time.Time, idle bool) {
	t := c.requests.Tally()
	return time.Unix(0, c.out.used.Load()), t.Incoming()+t.Outgoing == 0
}

// Session returns the session of the connection; never nil.
func (c *Conn) Session() *transport.Session { return c.session }

// Notify sends n outside any request. It returns when n is queued, and waits only if the queue is
// full.
func (c *Conn) Notify(ctx context.Context, n *jsonrpc.Request) error {
	return c.out.request(ctx, n)
}

// Flush waits until all sent messages are written, or ctx ends.
func (c *Conn) Flush(ctx context.Context) { c.out.drain(ctx) }

// A sessionPeer notifies the peer outside requests. It never waits.
type sessionPeer struct{ c *Conn }

func (s sessionPeer) Notify(_ context.Context, n *jsonrpc.Request) error {
	return s.c.out.offer(n)
}
