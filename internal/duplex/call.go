package duplex

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/buffers"
	"github.com/mcpkit/mcpkit-go/internal/ledger"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// batchVersion is the only version that has batches.
const batchVersion = string(protocol.V20250326)

var internalError = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}

// A call is one request or notification of the peer, and its Peer for the handler.
type call struct {
	l      *Link
	entry  ledger.Call
	header transport.Header
	batch  *batch // the batch of the request, or nil
	began  int64  // of leader.watch, if the leader runs the request; else 0
	took   int64  // how many nanoseconds it ran, if the leader has run it

	lent *[]byte // for the result; see Lend

	handshake chan struct{} // closed when the call ends; nil unless it is initialize

	mu   sync.Mutex // held while the call sends a message
	over bool       // the response is about to be sent, or the notification is handled; guarded by mu
	left bool       // another goroutine has taken over the queue; guarded by order.mu
}

// serve runs a request and sends its response. A request that was cancelled before does not run.
func (c *call) serve() {
	resp := &jsonrpc.Response{Error: internalError} // in case run does not return
	defer func() {
		c.respond(resp)
		if c.lent != nil {
			buffers.Put(c.lent)
		}
	}()
	if !c.entry.Wanted() {
		resp = nil
		return
	}
	resp = c.run()
	if c.began != 0 {
		c.took = c.l.leader.watch.now() - c.began
	}
}

// respond sends the response of a request, unless it has one.
func (c *call) respond(resp *jsonrpc.Response) {
	switch {
	case !c.closePeer():
	case c.batch != nil:
		c.batch.endRequest(c, resp)
	case streams(resp):
		c.stream(resp)
	case resp == nil:
		c.endCall()
	default:
		out := *resp
		out.ID = c.entry.Request.ID
		// If the leader runs this call (began is set), no other starts meanwhile.
		gather := c.l.requests.Tally().Calls > 1 || c.began == 0 && c.l.out.more.Load()
		c.l.out.respond(&out, gather, c.endCall)
	}
}

// RespondEarly implements [transport.EarlyResponder].
func (c *call) RespondEarly(r *jsonrpc.Response) { c.respond(r) }

// Lend implements [transport.Lender]: respond copies the result.
func (c *call) Lend(size int) *[]byte {
	if c.lent != nil {
		return new([]byte)
	}
	c.lent = buffers.Get(size)
	return c.lent
}

// endCall ends the request, whose response is about to be queued; see [ledger.Call.End].
func (c *call) endCall() (wanted bool) {
	if c.handshake != nil {
		close(c.handshake)
	}
	return c.entry.End()
}

// handle runs a notification.
func (c *call) handle() {
	defer func() {
		c.closePeer()
		c.entry.End()
	}()
	c.run()
}

// closePeer refuses further notifications of c, and a second response. It returns false if they are
// refused already.
func (c *call) closePeer() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.over
	c.over = true
	return !was
}

// run calls the handler and recovers its panics. It does not return if the handler calls
// runtime.Goexit, as testing.T.FailNow does.
func (c *call) run() (resp *jsonrpc.Response) {
	l := c.l
	returned := false
	defer func() {
		if p := recover(); p == nil && !returned {
			l.opts.Logger.Error("duplex: the handler ended its goroutine", "method", c.entry.Request.Method)
		} else if p != nil {
			l.opts.Logger.Error("duplex: the handler panicked", "method", c.entry.Request.Method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			resp = &jsonrpc.Response{Error: internalError}
		}
		if resp == nil && !l.opts.Client {
			resp = &jsonrpc.Response{Error: internalError}
		}
	}()
	if !l.served.Load() {
		l.served.Store(true)
	}
	resp = l.handler.ServeRPC(c.entry.Context(), c.entry.Request, c)
	returned = true
	return resp
}

// Notify sends n before the response of the call. After the peer has cancelled the call, n is
// dropped.
func (c *call) Notify(ctx context.Context, n *jsonrpc.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.entry.Wanted():
		return nil
	case c.over:
		return transport.ErrClosed
	}
	if err := c.l.out.request(ctx, n); err != nil && !errors.Is(err, transport.ErrClosed) {
		return err
	}
	return nil
}

// Call sends a request to the peer, if a legacy version was agreed on.
func (c *call) Call(ctx context.Context, req *jsonrpc.Request) (*jsonrpc.Response, error) {
	// A server sends no requests before "initialized" (2025-11-25, basic/lifecycle,
	// "Initialization").
	if !c.l.opts.Client && (c.handshake != nil || c.l.session.Version() == "") {
		return nil, transport.ErrNoServerRequests
	}
	switch {
	case c.entry.Request.IsNotification():
		c.l.order.handOver(c)
	case c.began != 0:
		c.l.leader.watch.expire(c.began)
	}
	return c.l.Call(ctx, req)
}

// Session returns the connection's session.
func (c *call) Session() *transport.Session { return c.l.session }

// Run implements [transport.Runner].
func (c *call) Run(f func()) { c.l.workers.run(f) }

// Header returns the header from the origin of the request.
func (c *call) Header() transport.Header { return c.header }

// Call sends req with an ID that the Link chooses, and waits for the response. If ctx ends first,
// it cancels the request at the peer and returns ctx's error. The error is [transport.ErrClosed] if
// the connection ends.
func (l *Link) Call(ctx context.Context, req *jsonrpc.Request) (*jsonrpc.Response, error) {
	out := *req
	out.ID = jsonrpc.ID{}
	return l.Do(ctx, &out)
}

// Do is like Call for a request that has an ID, which must differ from those of our other requests
// in flight. So the user of a Link calls either Do or Call.
func (l *Link) Do(ctx context.Context, req *jsonrpc.Request) (*jsonrpc.Response, error) {
	question, err := l.requests.Ask(req.ID)
	if err != nil {
		return nil, err
	}
	defer question.End()
	out := *req
	out.ID = question.ID
	before := l.out.sent.Load()
	alone := l.requests.Tally().Questions == 1
	if err := l.out.ask(ctx, &out, alone); err != nil {
		return nil, err
	}
	transport.Sent(ctx)
	select {
	case resp, ok := <-question.Answered():
		if !ok {
			return nil, transport.ErrClosed
		}
		l.out.wasRead(before) // the peer has read everything sent before the request
		return resp, nil
	case <-ctx.Done():
		if question.End() && out.Method != protocol.MethodInitialize {
			l.cancelRequest(ctx, out.ID)
		}
		return nil, ctx.Err()
	case <-l.out.failed:
		return nil, transport.ErrClosed
	}
}

// cancelRequest cancels our request id at the peer.
func (l *Link) cancelRequest(ctx context.Context, id jsonrpc.ID) {
	n, err := jsonrpc.NewNotification(protocol.NotificationCancelled, cancelledParams{id, context.Cause(ctx).Error()})
	if err == nil {
		_ = l.out.offer(n)
	}
}

type cancelledParams struct {
	RequestID jsonrpc.ID `json:"requestId"`
	Reason    string     `json:"reason"`
}

// writeStream writes r. It turns a panic of its Stream into an error.
func writeStream(w io.Writer, r *jsonrpc.Response) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("duplex: the response panicked: %v", p)
		}
	}()
	return jsonrpc.WriteResponse(w, r)
}
