package duplex

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

// The methods that this package knows, since they are about messages, not about what messages say.
const (
	methodInitialize = "initialize"
	methodPing       = "ping"
	methodCancelled  = "notifications/cancelled"
)

// batchVersion is the one revision that has batches.
const batchVersion = "2025-03-26"

var internalError = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}

// A task is what a message makes the leader do once others may read on. The zero task is nothing.
type task struct {
	refusal *jsonrpc.Response // to be sent
	call    *call             // to be run
	ctx     context.Context   // of the call
	notes   bool              // notifications are to be handled
	batch   *batch
}

// prepare enters what was read into the tables. It waits for nothing but the handshake. It returns false when nothing is to be read any more.
func (l *Link) prepare(data []byte, err error) (k task, ok bool) {
	if err != nil {
		bad, isBad := errors.AsType[*BadMessageError](err)
		if !isBad {
			l.inputErr = err
			close(l.inputEnd)
			return task{}, false
		}
		return l.unread(bad), true
	}
	var from Origin
	if l.origins != nil {
		from = l.origins.Origin()
	}
	m, bad := jsonrpc.Decode(data)
	switch {
	case m.Response != nil:
		// One that is malformed is not answered: the peer waits for no answer to an answer.
		l.answered(m.Response)
	case bad != nil:
		elements, isBatch, badBatch := jsonrpc.Batch(data)
		if isBatch {
			return l.prepareBatch(elements, badBatch, from), true
		}
		k.refusal = bad
	case m.Request.IsNotification():
		l.awaitHandshake()
		k.notes = l.note(m.Request, from)
	default:
		if m.Request.Method != methodPing {
			l.awaitHandshake()
		}
		var refused *jsonrpc.Error
		if k.call, k.ctx, refused = l.admit(m.Request, len(data), from); refused != nil {
			k.refusal = &jsonrpc.Response{ID: m.Request.ID, Error: refused}
		} else if m.Request.Method == methodInitialize {
			k.call.handshake = make(chan struct{})
			l.handshake = k.call.handshake
		}
	}
	return k, true
}

// awaitHandshake waits until the initialize that came before has been answered: what comes behind it depends on it.
func (l *Link) awaitHandshake() {
	if l.handshake == nil {
		return
	}
	l.out.flush() // the answer of a ping, put off because there was more to read
	<-l.handshake
	l.handshake = nil
}

// perform does k, in turn t, for as long as it takes. More says that there is more to read at once, so that what is
// sent may wait for what comes next.
func (l *Link) perform(k *task, t uint64, more bool) {
	returned := false
	defer func() {
		if !returned {
			l.yield(t) // the handler ended this goroutine
		}
		l.end()
	}()
	switch {
	case k.refusal != nil:
		l.refuse(k.refusal, more)
	case k.call != nil:
		k.call.turn = t
		l.serve(k.call, k.ctx, more)
	case k.notes:
		l.handleNotes(t)
	case k.batch != nil:
		l.handleBatch(k.batch, t)
	}
	returned = true
}

// refuse answers what is no proper message, or one too many. A client does not: what a server's program printed
// between the messages is no request, and in the modern revisions clients send no responses at all.
func (l *Link) refuse(bad *jsonrpc.Response, more bool) {
	if l.opts.Client && !bad.ID.IsValid() {
		l.opts.Logger.Warn("duplex: the peer sent what is no message", "fault", bad.Error.Message)
		return
	}
	_ = l.out.response(l.base, more, bad.ID, bad)
}

// A call is one request of the peer in flight, or one notification: then it has no ID and is in no table.
// It is the handler's Peer.
type call struct {
	l      *Link
	req    *jsonrpc.Request
	turn   uint64 // in which the leader runs it; set before it runs
	size   int
	header transport.Header
	cancel context.CancelCauseFunc
	gone   atomic.Bool // cancelled by the peer: nothing may be sent for it any more

	handshake chan struct{} // to be closed when the call is over, if it is the handshake

	mu   sync.Mutex // held while something is sent for the call
	over bool       // the handler returned; guarded by mu
}

// serve runs a call and sends what it answers.
func (l *Link) serve(c *call, ctx context.Context, more bool) {
	if l.average.Load() > int64(quick) {
		l.yield(c.turn)
		more = false
	}
	resp := &jsonrpc.Response{Error: internalError} // if run does not return
	defer func() {
		if streams(resp) {
			c.stream(ctx, resp)
		} else if l.release(c) && resp != nil {
			c.send(resp, more && l.turn.Load() == c.turn)
		}
		if c.handshake != nil {
			close(c.handshake)
		}
	}()
	resp = c.run(ctx)
}

// maxListens is how many subscriptions a peer may have open. They end with the connection, so that they would use up what there is for
// calls.
const maxListens = 128

// admit enters req into the table, unless it is too much or its ID is taken.
func (l *Link) admit(req *jsonrpc.Request, size int, from Origin) (*call, context.Context, *jsonrpc.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.calls[req.ID] != nil:
		return nil, nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "a request with the id %.60s is in flight", req.ID)
	case req.Method == protocol.MethodSubscriptionsListen && l.listens >= maxListens:
		return nil, nil, jsonrpc.Errorf(jsonrpc.CodeInternalError, "busy: %d subscriptions are open; end one, or ask for more in one", l.listens)
	case len(l.calls)-l.listens >= l.opts.MaxInFlight:
		return nil, nil, jsonrpc.Errorf(jsonrpc.CodeInternalError, "busy: %d requests are in flight", len(l.calls)-l.listens)
	case l.bytes > 0 && l.bytes+int64(size) > l.opts.MaxInFlightBytes:
		return nil, nil, jsonrpc.Errorf(jsonrpc.CodeInternalError, "busy: requests of %d bytes are in flight", l.bytes)
	}
	c := &call{l: l, req: req, size: size, header: from.Header}
	ctx, cancel := context.WithCancelCause(l.contextFor(from))
	c.cancel = cancel
	l.calls[req.ID] = c
	l.bytes += int64(size)
	if req.Method == protocol.MethodSubscriptionsListen {
		l.listens++
	}
	return c, ctx, nil
}

// contextFor returns the context of calls that come from there.
func (l *Link) contextFor(from Origin) context.Context {
	if from.Context == nil {
		return l.base
	}
	return valued{l.base, context.WithoutCancel(from.Context)}
}

// valued is a context with the values of another besides.
type valued struct {
	context.Context
	values context.Context
}

func (c valued) Value(key any) any {
	if v := c.values.Value(key); v != nil {
		return v
	}
	return c.Context.Value(key)
}

// release takes c out of the table and reports whether the peer still wants its answer.
func (l *Link) release(c *call) bool {
	l.mu.Lock()
	delete(l.calls, c.req.ID)
	l.bytes -= int64(c.size)
	if c.req.Method == protocol.MethodSubscriptionsListen {
		l.listens--
	}
	wanted := !c.gone.Load()
	l.mu.Unlock()
	c.cancel(nil)
	c.finish()
	return wanted
}

// finish refuses further notifications of c.
func (c *call) finish() {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
}

// send sends the answer of c.
func (c *call) send(resp *jsonrpc.Response, later bool) {
	err := c.l.out.response(c.l.base, later, c.req.ID, resp)
	if err != nil && !gone(err) && c.l.base.Err() == nil {
		c.l.opts.Logger.Error("duplex: a response was not sent", "method", c.req.Method, "error", err)
	}
}

// run calls the handler. A panic is the handler's mistake, and here only kept from ending the process. Nor does run return
// when the handler calls runtime.Goexit, as testing.T.FailNow does.
func (c *call) run(ctx context.Context) (resp *jsonrpc.Response) {
	l := c.l
	begun := time.Now()
	returned := false
	defer func() {
		if p := recover(); p == nil && !returned {
			l.opts.Logger.Error("duplex: the handler ended its goroutine", "method", c.req.Method)
		} else if p != nil {
			l.opts.Logger.Error("duplex: the handler panicked", "method", c.req.Method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			resp = &jsonrpc.Response{Error: internalError}
		}
		if resp == nil && !l.opts.Client {
			resp = &jsonrpc.Response{Error: internalError}
		}
		old := l.average.Load()
		l.average.Store(old + (int64(min(time.Since(begun), 10*quick))-old)/8)
	}()
	if !l.served.Load() {
		l.served.Store(true)
	}
	resp = l.handler.ServeRPC(ctx, c.req, c)
	returned = true
	return resp
}

// A note is a notification that waits for being handled.
type note struct {
	req  *jsonrpc.Request
	from Origin
}

// minNotes is how many notifications may wait at least. They are small, and come in bursts.
const minNotes = 1024

// note queues the notification n and reports whether the caller is to handle what is queued. A cancellation is
// done here and now.
func (l *Link) note(n *jsonrpc.Request, from Origin) bool {
	if n.Method == methodCancelled {
		l.cancelled(n)
		return false
	}
	if l.opts.First != nil && l.opts.First(n) {
		return false
	}
	l.mu.Lock()
	full := len(l.notes) >= max(l.opts.MaxInFlight, minNotes)
	if !full {
		l.notes = append(l.notes, note{n, from})
	}
	begin := !l.noting
	l.noting = true
	l.mu.Unlock()
	if full {
		l.opts.Logger.Warn("duplex: a notification was dropped, since too many wait", "method", n.Method)
	}
	return begin
}

// handleNotes handles notifications until none is queued.
func (l *Link) handleNotes(t uint64) {
	returned := false
	defer func() {
		if !returned && l.begin() {
			// Ends when no notification is left.
			go func() {
				defer l.end()
				l.handleNotes(0)
			}()
		}
	}()
	for n := l.nextNote(); n.req != nil; n = l.nextNote() {
		c := &call{l: l, req: n.req, turn: t, header: n.from.Header}
		ctx, cancel := context.WithCancelCause(l.contextFor(n.from))
		c.run(ctx)
		cancel(nil)
	}
	returned = true
}

func (l *Link) nextNote() note {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.notes) == 0 {
		l.noting, l.notes = false, nil
		return note{}
	}
	n := l.notes[0]
	l.notes = l.notes[1:]
	return n
}

// cancelled ends the call that n names. A request that is not in flight is no mistake: its answer and the
// cancellation may have crossed. The handshake cannot be cancelled (2025-11-25, basic/utilities/cancellation).
func (l *Link) cancelled(n *jsonrpc.Request) {
	id, ok := jsonrpc.ParseID(n.Param("requestId"))
	if !ok {
		return
	}
	l.mu.Lock()
	c := l.calls[id]
	if c != nil && c.req.Method == methodInitialize {
		c = nil
	}
	if c != nil {
		c.gone.Store(true)
	}
	l.mu.Unlock()
	if c != nil {
		c.cancel(errCancelled)
	}
}

// Notify sends n before the answer of the call. What comes after the peer cancelled the call is dropped.
func (c *call) Notify(ctx context.Context, n *jsonrpc.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.gone.Load():
		return nil
	case c.over:
		return transport.ErrClosed
	}
	if err := c.l.out.request(ctx, n); err != nil && !errors.Is(err, transport.ErrClosed) {
		return err
	}
	return nil
}

// Call asks the peer, once a legacy revision was agreed on.
func (c *call) Call(ctx context.Context, req *jsonrpc.Request) (*jsonrpc.Response, error) {
	// Before "initialized" a server asks nothing (2025-11-25, basic/lifecycle, "Initialization").
	if !c.l.opts.Client && (c.handshake != nil || c.l.session.Version() == "") {
		return nil, transport.ErrNoServerRequests
	}
	c.l.yield(c.turn)
	return c.l.Call(ctx, req)
}

// Session returns the connection's session.
func (c *call) Session() *transport.Session { return c.l.session }

// Header returns what the wire says came with the request.
func (c *call) Header() transport.Header { return c.header }

// Call sends req, under an ID of the Link's own, and waits for the answer. When ctx ends first, it tells the
// peer that the answer is no longer wanted, and returns ctx's error. [transport.ErrClosed] says
// that the connection ended.
//
// A Handler uses Peer.Call instead, which hands the reading on at once.
func (l *Link) Call(ctx context.Context, req *jsonrpc.Request) (*jsonrpc.Response, error) {
	l.mu.Lock()
	l.lastID++
	out := *req
	out.ID = jsonrpc.NumberID(l.lastID)
	l.mu.Unlock()
	return l.Do(ctx, &out)
}

// asked is a request of ours that was not answered yet. Its answer shows that the peer read what had been sent before.
type asked struct {
	answer chan<- *jsonrpc.Response
	before int64 // bytes
}

// Do is Call for a request that has an ID, which no other request of this side in flight may have. So a Link's user
// calls either Do or Call.
func (l *Link) Do(ctx context.Context, out *jsonrpc.Request) (*jsonrpc.Response, error) {
	answer := make(chan *jsonrpc.Response, 1)
	l.mu.Lock()
	if l.asked == nil {
		l.mu.Unlock()
		return nil, transport.ErrClosed
	}
	l.asked[out.ID] = asked{answer, l.out.sent.Load()}
	alone := len(l.asked) == 1
	l.mu.Unlock()
	if err := l.out.ask(ctx, out, alone); err != nil {
		l.forget(out.ID)
		return nil, err
	}
	select {
	case resp, ok := <-answer:
		if !ok {
			return nil, transport.ErrClosed
		}
		return resp, nil
	case <-ctx.Done():
		if l.forget(out.ID) && out.Method != methodInitialize {
			l.tellCancelled(ctx, out.ID)
		}
		return nil, ctx.Err()
	case <-l.out.failed:
		l.forget(out.ID)
		return nil, transport.ErrClosed
	}
}

// forget reports whether the answer to id was still awaited, which it is not any more.
func (l *Link) forget(id jsonrpc.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.asked[id]
	delete(l.asked, id)
	return ok
}

func (l *Link) tellCancelled(ctx context.Context, id jsonrpc.ID) {
	n, err := jsonrpc.NewNotification(methodCancelled, cancelledParams{id, context.Cause(ctx).Error()})
	if err == nil {
		_ = l.out.offer(n)
	}
}

type cancelledParams struct {
	RequestID jsonrpc.ID `json:"requestId"`
	Reason    string     `json:"reason"`
}

// answered hands r to who waits for it. An answer that nobody waits for came too late, and is no mistake.
func (l *Link) answered(r *jsonrpc.Response) {
	l.mu.Lock()
	a := l.asked[r.ID]
	delete(l.asked, r.ID)
	if a.before > l.out.read.Load() {
		l.out.read.Store(a.before)
	}
	l.mu.Unlock()
	if a.answer != nil {
		a.answer <- r
	}
}

// writeStream writes r. A panic of its Stream is like an error.
func writeStream(w io.Writer, r *jsonrpc.Response) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("duplex: the response panicked: %v", p)
		}
	}()
	return jsonrpc.WriteResponse(w, r)
}
