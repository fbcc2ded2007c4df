package duplex

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/ledger"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

// batchVersion is the one version that has batches.
const batchVersion = string(protocol.V20250326)

var internalError = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}

// A call is one request or notification of the peer. It is the handler's Peer.
type call struct {
	l      *Link
	req    *jsonrpc.Request
	entry  ledger.Call
	header transport.Header
	batch  *batch // that the request is part of; nil for none
	left   bool   // the order went on without this notification; guarded by order.mu

	handshake chan struct{} // to be closed when the call is over, if it is the handshake

	mu   sync.Mutex // held while something is sent for the call
	over bool       // the handler returned; guarded by mu
}

// serve runs a request and sends its response. One that was cancelled before does not run.
func (c *call) serve() {
	resp := &jsonrpc.Response{Error: internalError} // if run does not return
	defer func() {
		c.close()
		switch {
		case c.batch != nil:
			c.batch.end(c, resp)
		case streams(resp):
			c.stream(resp)
		case resp == nil:
			c.end()
		default:
			out := *resp
			out.ID = c.req.ID
			c.l.out.respond(&out, c.l.requests.Tally().Calls == 1, c.end)
		}
	}()
	if !c.entry.Wanted() {
		resp = nil
		return
	}
	resp = c.run()
}

// end ends the request, of which the response is next to be queued; see [ledger.Call.End].
func (c *call) end() (wanted bool) {
	if c.handshake != nil {
		close(c.handshake)
	}
	return c.entry.End()
}

// handle runs a notification.
func (c *call) handle() {
	defer func() {
		c.close()
		c.entry.End()
	}()
	c.run()
}

// close refuses further notifications of c.
func (c *call) close() {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
}

// run calls the handler. A panic is the handler's mistake, and here only kept from ending the process. Nor does run return
// when the handler calls runtime.Goexit, as testing.T.FailNow does.
func (c *call) run() (resp *jsonrpc.Response) {
	l := c.l
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
	}()
	if !l.served.Load() {
		l.served.Store(true)
	}
	resp = l.handler.ServeRPC(c.entry.Context(), c.req, c)
	returned = true
	return resp
}

// Notify sends n before the answer of the call. What comes after the peer cancelled the call is dropped.
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

// Call asks the peer, once a legacy version was agreed on.
func (c *call) Call(ctx context.Context, req *jsonrpc.Request) (*jsonrpc.Response, error) {
	// Before "initialized" a server asks nothing (2025-11-25, basic/lifecycle, "Initialization").
	if !c.l.opts.Client && (c.handshake != nil || c.l.session.Version() == "") {
		return nil, transport.ErrNoServerRequests
	}
	if c.req.IsNotification() {
		c.l.order.handOver(c)
	}
	return c.l.Call(ctx, req)
}

// Session returns the connection's session.
func (c *call) Session() *transport.Session { return c.l.session }

// Run implements [transport.Runner].
func (c *call) Run(f func()) { c.l.workers.run(f) }

// Header returns what the wire says came with the request.
func (c *call) Header() transport.Header { return c.header }

// Call sends req, under an ID of the Link's own, and waits for the answer. When ctx ends first, it tells the
// peer that the answer is no longer wanted, and returns ctx's error. [transport.ErrClosed] says
// that the connection ended.
func (l *Link) Call(ctx context.Context, req *jsonrpc.Request) (*jsonrpc.Response, error) {
	out := *req
	out.ID = jsonrpc.ID{}
	return l.Do(ctx, &out)
}

// Do is Call for a request that has an ID, which no other request of this side in flight may have. So a Link's user
// calls either Do or Call.
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
		l.out.wasRead(before) // a peer that answers has read what was sent before
		return resp, nil
	case <-ctx.Done():
		if question.End() && out.Method != protocol.MethodInitialize {
			l.tellCancelled(ctx, out.ID)
		}
		return nil, ctx.Err()
	case <-l.out.failed:
		return nil, transport.ErrClosed
	}
}

func (l *Link) tellCancelled(ctx context.Context, id jsonrpc.ID) {
	n, err := jsonrpc.NewNotification(protocol.NotificationCancelled, cancelledParams{id, context.Cause(ctx).Error()})
	if err == nil {
		_ = l.out.offer(n)
	}
}

type cancelledParams struct {
	RequestID jsonrpc.ID `json:"requestId"`
	Reason    string     `json:"reason"`
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
