// Package duplex runs one connection that carries messages both ways: what stdio, sockets and WebSockets share,
// on either side of the connection.
//
// It records the requests in flight, matches responses and cancellations, and keeps the order that
// peers rely on. How messages are framed is the [Wire]'s affair, what they mean the Handler's.
//
// Reading. One goroutine reads. It decodes and records each message, delivers responses and
// cancellations, and runs no code of the handler, so a slow call never holds up what arrives behind
// it.
//
// Order. Notifications are handled one after the other on a goroutine of their own. On a server, a
// request starts when the notifications before it have returned, however long they take, or wait for
// the peer themselves; a ping starts at once. Each request has its own goroutine. What arrives behind
// initialize, except ping, waits until that is answered: a client that sends all at once gets the
// answers of one that waits. What a handler sends with Peer.Notify goes out before its response.
//
// Limits. They are listed in limits.go. Requests over the limits in flight are refused at once:
// making them wait would hold up the cancellations behind them. A peer that does not read its
// responses is not read from, and one that reads nothing for Options.WriteTimeout is cut off.
package duplex

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A Wire reads and writes messages. Read is called by one goroutine at a time, and so is Write.
type Wire interface {
	// Read returns the next message, which must never be written to again. [io.EOF] says that there are no more.
	// A [*BadMessageError] concerns one message: it is answered, and reading goes on. Any other error ends the connection.
	Read() ([]byte, error)

	// Write sends messages, each ended by '\n', with no other '\n' or '\r' in it. There may be several, and a long one may
	// come in parts. The bytes must not be kept. [io.ErrClosedPipe] and its likes say that the peer is gone.
	Write(lines []byte) (int, error)

	// CloseRead makes Read return, if it can be made to, with any error. It may be called while Read and Write run.
	CloseRead() error

	// Close ends the connection. It may be called while Read and Write run, and more than once. It should make them
	// return.
	Close() error
}

// A BufferedWire is a [Wire] that knows whether the next Read returns at once.
type BufferedWire interface {
	Wire

	// Buffered reports whether a whole message has been read already. It is called like Read.
	Buffered() bool
}

// An OriginWire is a [Wire] whose messages come with something of their own, as those that are POSTed do.
type OriginWire interface {
	Wire

	// Origin says where the message came from that Read returned last. It is called before the next Read.
	Origin() Origin
}

// A RoomyWire is a [Wire] that takes some bytes even while the peer does not read, as what the operating system has for talking does.
type RoomyWire interface {
	Wire

	// Room is how many bytes Write takes at once when the peer has read all that was written before; it does not change. A client's
	// callers write themselves as long as there is room: their contexts, which Write does not know, have to end their waiting.
	Room() int64
}

// A DroppingWire is a [Wire] that may hold a message until its end was written.
type DroppingWire interface {
	Wire

	// Drop forgets the message whose end was not written yet. It reports false where a part of it is on its way. It is called like Write.
	Drop() bool
}

// An Origin is what came with a message.
type Origin struct {
	// Context has the values that the handler's context gets besides those of Serve's; its end means nothing. Nil for none.
	Context context.Context

	// Header is what [transport.Peer] shows the handler.
	Header transport.Header
}

// A BadMessageError says that one message could not be read, and the text to answer.
type BadMessageError struct {
	Text string
	Head []byte // how the message begins, so that whoever waits for it can be told; nil where that is not known
}

// Error returns the text.
func (e *BadMessageError) Error() string { return e.Text }

// A GoneError of a Wire says that nothing can be read or written any more, for a reason that Serve is to return.
type GoneError struct{ Err error }

// Error returns the reason.
func (e *GoneError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *GoneError) Unwrap() error { return e.Err }

// Options configures a Link. The zero value serves.
type Options struct {
	// MaxInFlight is how many requests of the peer may be unanswered. Zero means [DefaultMaxInFlight].
	MaxInFlight int

	// MaxInFlightBytes is how many bytes these requests, and the notifications that wait, may have together. A single one
	// may have more. Zero means [DefaultMaxInFlightBytes].
	MaxInFlightBytes int64

	// MaxUnsentBytes is how many bytes of responses may wait for the peer to read. A single one may have more. Zero means
	// [DefaultMaxUnsentBytes].
	MaxUnsentBytes int64

	// DrainTimeout is how long calls may go on after the peer ended its side or ctx ended, and their responses may take to
	// be read. Zero means [DefaultDrainTimeout].
	DrainTimeout time.Duration

	// WriteTimeout is how long the peer may read nothing of what is being written to it. Then the connection is closed,
	// and Serve returns a [StalledError]. Zero means [DefaultWriteTimeout], less than zero for ever.
	WriteTimeout time.Duration

	// Cancelling, if not nil, cancels the calls in flight when it ends. Serve goes on.
	Cancelling context.Context

	// Logger receives panics and messages that cannot be sent. Nil means slog.Default.
	Logger *slog.Logger

	// Client says that this is the client's end of the connection: it may ask the peer before initialize, its Handler
	// may return nil to leave a request unanswered, and what is no message is logged instead of answered.
	Client bool

	// First, if not nil, is shown each notification as soon as it was read, before anything that came behind it is looked at: it must not wait.
	// True means that the Handler need not see it.
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

// grace is how long calls have to come back once their context is cancelled.
const grace = time.Second

// Serve runs a connection as its only user; see [Link.Serve].
func Serve(ctx context.Context, w Wire, h transport.Handler, opts *Options) error {
	return New(w, h, opts).Serve(ctx)
}

// Serve handles messages until the peer ends its side, the connection breaks, or ctx ends. Then calls in flight
// may finish for Options.DrainTimeout, are cancelled, and have another second. What they answer is sent. An
// open subscriptions/listen is not waited for but cancelled at once, since it would never end.
//
// An error of Read that says that the peer is gone altogether, not just done with sending, ends the calls at once.
//
// A peer that is gone is the usual end: the error is nil. It is not when reading or writing failed otherwise.
// Serve is called once. It leaves no goroutine behind, except one in a Read that CloseRead could not end, and
// those of handlers that ignore their context.
func (l *Link) Serve(ctx context.Context) error {
	// The end of ctx ends reading; the calls end when they had their time.
	l.base, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	if l.opts.Cancelling != nil {
		// Runs once at most.
		defer context.AfterFunc(l.opts.Cancelling, func() { l.cancel(transport.ErrClosed) })()
	}
	// Ends when the input does, or when nothing can be written any more.
	go l.read()

	err := l.await(ctx)
	l.drain()
	if werr := l.out.failure(); err == nil && !gone(werr) {
		err = werr
	}
	l.finish()
	return err
}

// await returns when there is nothing more to read, with what went wrong with reading.
func (l *Link) await(ctx context.Context) error {
	select {
	case <-l.inputEnd:
		switch {
		case errors.Is(l.inputErr, io.EOF):
		case gone(l.inputErr):
			l.out.close() // nobody is there to read what calls would still answer
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

// drain lets the calls in flight come to their end, and the peer read their responses.
func (l *Link) drain() {
	l.draining.Store(true)
	// Nothing of ours can be answered any more, and what has no end of its own is ended.
	l.requests.Stop(transport.ErrClosed)
	_ = l.wire.CloseRead()
	limit := time.NewTimer(l.opts.DrainTimeout)
	defer limit.Stop()
	select {
	case <-l.requests.Idle():
		l.out.drain(limit.C)
	case <-limit.C:
	case <-l.out.failed:
	}
	l.cancel(transport.ErrClosed)

	last := time.NewTimer(grace)
	defer last.Stop()
	select {
	case <-l.requests.Idle():
		l.out.drain(last.C)
	case <-last.C:
		t := l.requests.Tally()
		l.opts.Logger.Warn("duplex: calls go on after their context ended", "calls", t.Calls+t.Subscriptions+t.Notifications)
	}
}

// finish releases everything and tells the handler.
func (l *Link) finish() {
	l.out.close()
	_ = l.wire.Close()
	l.workers.close()
	if sh, ok := l.handler.(transport.SessionHandler); ok && l.served.Load() {
		sh.SessionEnded(l.session)
	}
}

// Close ends Serve as the end of its ctx does. It does not wait for it.
func (l *Link) Close() { l.stopOnce.Do(func() { close(l.stopping) }) }

// Idle reports whether nothing is being handled or awaited, in either direction.
func (l *Link) Idle() bool {
	t := l.requests.Tally()
	return t.Calls+t.Subscriptions+t.Notifications+t.Questions == 0
}

// Session is the connection's session; never nil.
func (l *Link) Session() *transport.Session { return l.session }

// Notify sends n outside any request. It returns when n is queued, and waits only when the queue is full.
func (l *Link) Notify(ctx context.Context, n *jsonrpc.Request) error {
	return l.out.request(ctx, n)
}

// Flush waits until everything that was sent is written, or ctx ends.
func (l *Link) Flush(ctx context.Context) { l.out.drainUntil(ctx) }

// sessionLink is the way to the peer outside any request, for sessions: it never waits.
type sessionLink struct{ l *Link }

func (s sessionLink) Notify(_ context.Context, n *jsonrpc.Request) error {
	return s.l.out.offer(n)
}
