package conn

import (
	"context"
	"errors"
	"sync"

	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// ErrCancelled is the cause of the end of a call's context when the peer cancelled the call.
var ErrCancelled = errors.New("cancelled by the peer")

// A Tally counts messages in flight.
type Tally struct {
	Calls         int   // requests of the peer, without subscriptions
	Subscriptions int   // requests of the peer that do not end by themselves: see protocol.StaysOpen
	Notifications int   // notifications of the peer
	Outgoing      int   // requests of ours
	Bytes         int64 // of all messages of the peer
}

// like returns the count of messages of the peer like req, and the text for one too many.
func (t *Tally) like(req *jsonrpc.Request) (count *int, busy string) {
	switch {
	case req.IsNotification():
		return &t.Notifications, "busy: %d notifications are unhandled"
	case protocol.StaysOpen(req.Method):
		return &t.Subscriptions, "busy: %d subscriptions are open; end one, or ask for more in one"
	}
	return &t.Calls, "busy: %d requests are in flight"
}

// Incoming returns how many messages of the peer are in flight.
func (t *Tally) Incoming() int { return t.Calls + t.Subscriptions + t.Notifications }

// A Ledger records the requests in flight. The zero value is ready to use. It is safe for
// concurrent use and must not be copied.
type Ledger struct {
	// Limits is the most that the peer may have in flight; zero means no limit. A single message may
	// have more bytes. It must not be changed once the Ledger is in use.
	Limits Tally

	mu       sync.Mutex
	calls    map[jsonrpc.ID]*Entry    // guarded by mu
	notes    map[*Entry]struct{}      // notifications of the peer; guarded by mu
	outgoing map[jsonrpc.ID]*Outgoing // guarded by mu
	tally    Tally                    // without Outgoing; guarded by mu
	lastID   int64                    // of Ask; guarded by mu
	idle     chan struct{}            // made by Stop and closed with the last message of the peer; guarded by mu
}

// An Entry is a request or notification of the peer while it is handled.
type Entry struct {
	Request *jsonrpc.Request

	ledger *Ledger
	ctx    context.Context
	cancel context.CancelCauseFunc
	bytes  int64
	open   bool // guarded by ledger.mu
}

// An Outgoing is a request of ours that is not answered yet.
type Outgoing struct {
	ID jsonrpc.ID // of the request

	// Answer delivers the response, once. It is closed without a response if the ledger is closed first.
	Answer chan *jsonrpc.Response

	ledger *Ledger
}

// change is the only function that adds messages of the peer to a Ledger or removes them. It returns
// false if c is in the wanted state already. The caller holds mu.
func (l *Ledger) change(c *Entry, open bool) bool {
	if c.open == open {
		return false
	}
	c.open = open
	by := -1
	if open {
		by = 1
	}
	l.tally.Bytes += int64(by) * c.bytes
	count, _ := l.tally.like(c.Request)
	*count += by
	switch {
	case c.Request.IsNotification() && open:
		l.notes[c] = struct{}{}
	case c.Request.IsNotification():
		delete(l.notes, c)
	case open:
		l.calls[c.Request.ID] = c
	default:
		delete(l.calls, c.Request.ID)
	}
	if l.idle != nil && l.tally.Incoming() == 0 {
		close(l.idle) // nothing is added after Stop
	}
	return true
}

// Begin records req, a request or notification of the peer whose message has so many bytes. The
// context of the call derives from ctx and ends with the call. The error is the response to send
// instead: the ID is in use, a limit is reached, or the ledger is closed.
func (l *Ledger) Begin(ctx context.Context, req *jsonrpc.Request, bytes int) (*Entry, *jsonrpc.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refusal(req, int64(bytes)); err != nil {
		return nil, err
	}
	if l.calls == nil {
		l.calls, l.notes = map[jsonrpc.ID]*Entry{}, map[*Entry]struct{}{}
	}
	c := &Entry{Request: req, ledger: l, bytes: int64(bytes)}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	l.change(c, true)
	return c, nil
}

// refusal returns why req must be refused, or nil. The caller holds mu.
func (l *Ledger) refusal(req *jsonrpc.Request, bytes int64) *jsonrpc.Error {
	most, _ := l.Limits.like(req)
	now, busy := l.tally.like(req)
	switch {
	case l.idle != nil:
		return jsonrpc.Errorf(jsonrpc.CodeInternalError, "the connection is shutting down")
	case !req.IsNotification() && l.calls[req.ID] != nil:
		return inFlight(req.ID)
	case *most > 0 && *now >= *most:
		return jsonrpc.Errorf(jsonrpc.CodeInternalError, busy, *now)
	case l.Limits.Bytes > 0 && l.tally.Bytes > 0 && l.tally.Bytes+bytes > l.Limits.Bytes:
		return jsonrpc.Errorf(jsonrpc.CodeInternalError, "busy: requests of %d bytes are in flight", l.tally.Bytes)
	}
	return nil
}

func inFlight(id jsonrpc.ID) *jsonrpc.Error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "a request with the id %.60s is in flight", id)
}

// Context returns the context of the call. It ends when the peer cancels the call (the cause is
// [ErrCancelled]), when [Ledger.Stop] or [Ledger.Close] cancels it, when the context passed to
// Begin ends, and when the call ends.
func (c *Entry) Context() context.Context { return c.ctx }

// Cancel cancels the context of the call with this cause. The call stays in flight until
// [Entry.End].
func (c *Entry) Cancel(cause error) { c.cancel(cause) }

// Wanted reports whether the peer still waits for the response: it has not cancelled the call.
func (c *Entry) Wanted() bool { return context.Cause(c.ctx) != ErrCancelled }

// End removes the call, after which the peer may reuse its ID. It reports whether the peer still
// waits for the response. A second End does nothing and returns false.
func (c *Entry) End() (wanted bool) {
	c.ledger.mu.Lock()
	wanted = c.ledger.change(c, false) && c.Wanted()
	c.ledger.mu.Unlock()
	c.cancel(context.Canceled)
	return wanted
}

// Cancel handles n, a notifications/cancelled of the peer: it cancels the call that n names. A
// request that is not in flight is ignored, since its response and the cancellation may have
// crossed. The handshake cannot be cancelled (2025-11-25, basic/utilities/cancellation).
func (l *Ledger) Cancel(n *jsonrpc.Request) {
	id, ok := jsonrpc.ParseID(n.Param("requestId"))
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.calls[id]; c != nil && c.Request.Method != protocol.MethodInitialize {
		c.cancel(ErrCancelled)
	}
}

// Ask records a request of ours. If id is absent, the ledger assigns one: 1, 2, 3 and so on.
// Otherwise the ID must differ from those of other outgoing in flight. The error is
// [transport.ErrClosed] if the ledger is closed.
func (l *Ledger) Ask(id jsonrpc.ID) (*Outgoing, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.idle != nil {
		return nil, transport.ErrClosed
	}
	if !id.IsValid() {
		l.lastID++
		id = jsonrpc.NumberID(l.lastID)
	}
	if l.outgoing[id] != nil {
		return nil, inFlight(id)
	}
	if l.outgoing == nil {
		l.outgoing = map[jsonrpc.ID]*Outgoing{}
	}
	q := &Outgoing{ID: id, ledger: l, Answer: make(chan *jsonrpc.Response, 1)}
	l.outgoing[id] = q
	return q, nil
}

// Do records a request of ours, sends it and returns the response. If ctx ends first, it lets cancel
// cancel the request at the peer. The error is [transport.ErrClosed] if the ledger or failed is closed.
func (l *Ledger) Do(
	ctx context.Context, req *jsonrpc.Request, failed <-chan struct{},
	send func(context.Context, *jsonrpc.Request) error, cancel func(jsonrpc.ID),
) (*jsonrpc.Response, error) {
	q, err := l.Ask(req.ID)
	if err != nil {
		return nil, err
	}
	defer q.End()
	out := *req
	out.ID = q.ID
	if err := send(ctx, &out); err != nil {
		return nil, err
	}
	select {
	case resp, ok := <-q.Answer:
		if !ok {
			return nil, transport.ErrClosed
		}
		return resp, nil
	case <-ctx.Done():
		if q.End() {
			cancel(q.ID)
		}
		return nil, ctx.Err()
	case <-failed:
		return nil, transport.ErrClosed
	}
}

// End removes the question; a later response is dropped. It reports whether the question was still
// unanswered, so that the caller can cancel it at the peer.
func (q *Outgoing) End() (unanswered bool) {
	l := q.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	unanswered = l.outgoing[q.ID] == q
	if unanswered {
		delete(l.outgoing, q.ID)
	}
	return unanswered
}

// Answer delivers a response to the question with its ID. It returns false if there is none: the
// response is late, or no request has its ID.
func (l *Ledger) Answer(r *jsonrpc.Response) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.outgoing[r.ID]
	if q == nil {
		return false
	}
	delete(l.outgoing, q.ID)
	q.Answer <- r // it has room for one
	return true
}

// OnlyOutgoing returns the ID of the only unanswered question, or an absent ID if there are several
// or none. A response whose ID cannot be read can only be meant for it.
func (l *Ledger) OnlyOutgoing() (id jsonrpc.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.outgoing) == 1 {
		for id = range l.outgoing {
		}
	}
	return id
}

// Tally returns what is in flight.
func (l *Ledger) Tally() Tally {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tally
	t.Outgoing = len(l.outgoing)
	return t
}

// Stop refuses further messages of the peer and further outgoing, stops waiting for responses, and
// cancels the subscriptions with this cause, since they do not end by themselves. Other calls
// continue. It may be called more than once. The channel is closed when no message of the peer is in
// flight.
func (l *Ledger) Stop(cause error) (idle <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range l.outgoing {
		close(q.Answer)
	}
	clear(l.outgoing)
	for _, c := range l.calls {
		if protocol.StaysOpen(c.Request.Method) {
			c.cancel(cause)
		}
	}
	if l.idle == nil {
		l.idle = make(chan struct{})
		if l.tally.Incoming() == 0 {
			close(l.idle)
		}
	}
	return l.idle
}

// Close is like Stop but cancels all messages of the peer.
func (l *Ledger) Close(cause error) (idle <-chan struct{}) {
	idle = l.Stop(cause)
	l.CancelAll(cause)
	return idle
}

// CancelAll cancels all messages of the peer. They stay in flight until [Entry.End].
func (l *Ledger) CancelAll(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		c.cancel(cause)
	}
	for c := range l.notes {
		c.cancel(cause)
	}
}
