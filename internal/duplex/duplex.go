// Package duplex runs one connection that carries messages both ways. Stdio, sockets and WebSockets
// share it, on both sides of the connection.
//
// It records the requests in flight, matches responses and cancellations, and keeps the order that
// peers rely on. A [Wire] frames the messages; the Handler handles them.
//
// Reading. One goroutine at a time reads. It decodes and records each message and delivers
// responses and cancellations. On a server, it also runs requests, as long as they are quick; if
// one takes a millisecond or a few, another goroutine reads on. Other requests have a goroutine of
// their own.
//
// Order. Notifications are handled one after the other on their own goroutine. On a server, a
// request starts after the notifications before it have returned, however long they take, or when
// they themselves wait for the peer; a ping starts at once. All messages behind initialize, except
// ping, wait until it is answered: a client may send everything at once. Notifications sent with
// Peer.Notify go out before the response.
//
// Limits. They are listed in limits.go. Requests beyond the limits are refused at once: if they
// waited, the cancellations behind them would wait too. While a peer does not read its responses,
// nothing is read from it. A peer that reads nothing for Options.WriteTimeout is disconnected.
package duplex

import (
	"context"
	"errors"
	"io"
	"log/slog"
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

// A BufferedWire is a [Wire] that knows whether the next Read returns at once.
type BufferedWire interface {
	Wire

	// Buffered reports whether a whole message is buffered. It is called by the goroutine of Read.
	Buffered() bool
}

// An OriginWire is a [Wire] whose messages have an origin, such as the POST that carried them.
type OriginWire interface {
	Wire

	// Origin returns the origin of the message that Read returned last. It is called before the
	// next Read.
	Origin() Origin
}

// A RoomyWire is a [Wire] with a write buffer, for example of the operating system, so that it
// accepts some bytes even if the peer does not read.
type RoomyWire interface {
	Wire

	// Room returns how many bytes Write accepts without blocking if the peer has read everything
	// before; it does not change. Callers of a client write themselves while there is room, since
	// Write cannot be interrupted by the context of a caller.
	Room() int64
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

// A GoneError of a Wire means that it can no longer read or write, for a reason that Serve
// returns.
type GoneError struct{ Err error }

// Error returns the reason.
func (e *GoneError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *GoneError) Unwrap() error { return e.Err }

// Options configures a Link. The zero value is ready to use.
type Options struct {
	// MaxInFlight limits the unanswered requests of the peer. Zero means [DefaultMaxInFlight].
	MaxInFlight int

	// MaxInFlightBytes limits the bytes of these requests and of waiting notifications together. A
	// single message may be larger. Zero means [DefaultMaxInFlightBytes].
	MaxInFlightBytes int64

	// MaxUnsentBytes limits the bytes of responses that wait for the peer to read. A single
	// response may be larger. Zero means [DefaultMaxUnsentBytes].
	MaxUnsentBytes int64

	// DrainTimeout is how long calls may continue, and their responses may take to be read, after
	// the peer has closed its side or ctx has ended. Zero means [DefaultDrainTimeout].
	DrainTimeout time.Duration

	// WriteTimeout is how long the peer may read nothing while data waits. Then the connection is
	// closed and Serve returns a [StalledError]. Zero means [DefaultWriteTimeout]; a negative value
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
	if o.MaxInFlight <= 0 {
		o.MaxInFlight = DefaultMaxInFlight
	}
	if o.MaxInFlightBytes <= 0 {
		o.MaxInFlightBytes = DefaultMaxInFlightBytes
	}
	if o.MaxUnsentBytes <= 0 {
		o.MaxUnsentBytes = DefaultMaxUnsentBytes
	}
	if o.DrainTimeout <= 0 {
		o.DrainTimeout = DefaultDrainTimeout
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = DefaultWriteTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

// grace is how long calls may take to return after their context is cancelled.
const grace = time.Second

// Serve runs a connection as its only user; see [Link.Serve].
func Serve(ctx context.Context, w Wire, h transport.Handler, opts *Options) error {
	return New(w, h, opts).Serve(ctx)
}

// Serve handles messages until the peer closes its side, the connection breaks, or ctx ends. Then
// calls in flight may finish within Options.DrainTimeout, are cancelled, and get another second.
// Their responses are sent. Open subscriptions are cancelled at once, since they would never end.
//
// If Read fails because the peer has disconnected completely, the calls are cancelled at once.
//
// A disconnect is the usual end, so Serve returns nil. It returns an error if reading or writing
// failed otherwise. Serve is called once. It leaves no goroutine behind, except one in a Read that
// CloseRead could not interrupt, and those of handlers that ignore their context.
func (l *Link) Serve(ctx context.Context) error {
	// The end of ctx only ends reading. The calls get time to finish.
	l.base, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	if l.opts.Cancelling != nil {
		// Runs at most once.
		defer context.AfterFunc(l.opts.Cancelling, func() { l.cancel(transport.ErrClosed) })()
	}
	l.workers.run(l.read)

	err := l.awaitEnd(ctx)
	l.drain()
	if werr := l.out.failure(); err == nil && !gone(werr) {
		err = werr
	}
	l.closeConnection()
	return err
}

// awaitEnd waits for the end of the input, and returns the error of reading.
func (l *Link) awaitEnd(ctx context.Context) error {
	select {
	case <-l.inputEnd:
		switch {
		case errors.Is(l.inputErr, io.EOF):
		case gone(l.inputErr):
			l.out.close() // nobody reads further responses
		default:
			if _, over := errors.AsType[*GoneError](l.inputErr); over {
				l.out.close()
			}
			return l.inputErr
		}
	case <-ctx.Done():
	case <-l.stopping:
	case <-l.out.failed:
	}
	return nil
}

// drain lets the calls in flight finish, or the peer cancel them, and the peer read their
// responses.
func (l *Link) drain() {
	l.draining.Store(true)
	// No more responses arrive for our requests. Subscriptions do not end by themselves.
	l.requests.Stop(transport.ErrClosed)
	limit := time.NewTimer(l.opts.DrainTimeout)
	defer limit.Stop()
	select {
	case <-l.requests.Idle():
		l.out.drain(limit.C)
	case <-limit.C:
	case <-l.out.failed:
	}
	_ = l.wire.CloseRead()
	l.cancel(transport.ErrClosed)

	last := time.NewTimer(grace)
	defer last.Stop()
	select {
	case <-l.requests.Idle():
		l.out.drain(last.C)
	case <-last.C:
		t := l.requests.Tally()
		l.opts.Logger.Warn("duplex: calls continue after their context was cancelled", "calls", t.Calls+t.Subscriptions+t.Notifications)
	}
}

// closeConnection closes the wire and ends the session.
func (l *Link) closeConnection() {
	l.out.close()
	_ = l.wire.Close()
	l.workers.close()
	l.leader.watch.stop()
	if sh, ok := l.handler.(transport.SessionHandler); ok && l.served.Load() {
		sh.SessionEnded(l.session)
	}
}

// Close makes Serve return as the end of its ctx does. It does not wait.
func (l *Link) Close() { l.stopOnce.Do(func() { close(l.stopping) }) }

// Idle reports whether no message is in flight in either direction.
func (l *Link) Idle() bool {
	t := l.requests.Tally()
	return t.Calls+t.Subscriptions+t.Notifications+t.Questions == 0
}

// Session returns the session of the connection; never nil.
func (l *Link) Session() *transport.Session { return l.session }

// Notify sends n outside any request. It returns when n is queued, and waits only if the queue is
// full.
func (l *Link) Notify(ctx context.Context, n *jsonrpc.Request) error {
	return l.out.request(ctx, n)
}

// Flush waits until all sent messages are written, or ctx ends.
func (l *Link) Flush(ctx context.Context) { l.out.drainUntil(ctx) }

// A sessionLink reaches the peer outside requests. It never waits.
type sessionLink struct{ l *Link }

func (s sessionLink) Notify(_ context.Context, n *jsonrpc.Request) error {
	return s.l.out.offer(n)
}
