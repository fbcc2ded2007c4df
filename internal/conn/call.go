package conn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// batchVersion is the only version that has batches.
const batchVersion = string(protocol.V20250326)

var internalError = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}

// A call is one request or notification of the peer, and its Peer for the handler.
type call struct {
	c      *Conn
	entry  *Entry
	header transport.Header
	batch  *batch // the batch of the request, or nil
	room   int64  // bytes of the connection that are reserved for the response; guarded by the output's mu
	memory int64  // bytes of all connections that the call has taken; guarded by the output's mu

	before <-chan struct{}    // closed when the call may begin; nil if it does not wait
	pass   context.CancelFunc // lets the messages begin that wait for the call; nil if none do

	mu   sync.Mutex // held while the call sends a message
	over bool       // the response is about to be sent, or the notification is handled; guarded by mu
}

// serve runs the handler and sends the response. A request that was cancelled before does not run.
func (k *call) serve() {
	var resp *jsonrpc.Response
	defer func() {
		k.respond(resp)
		if k.pass != nil {
			k.pass()
		}
	}()
	if k.before != nil {
		<-k.before
	}
	if k.entry.Wanted() {
		resp = &jsonrpc.Response{Error: internalError} // in case run does not return
		resp = k.run()
	}
}

// respond ends the call and sends the response, if there is one.
func (k *call) respond(resp *jsonrpc.Response) {
	k.mu.Lock()
	k.over = true
	k.mu.Unlock()
	message := k.encode(resp)
	if k.batch != nil {
		k.batch.closeOne(k, message)
		return
	}
	k.c.out.send(message, k)
}

// neverReplaced is the size of responses that are not replaced if there is no room for them: an
// error is as large.
const neverReplaced = 1 << 10

// encode returns the message of a response, for which it reserves room. It returns nil for nil and
// for notifications, and if the peer has cancelled the call. If there is no room, it returns an error
// instead.
func (k *call) encode(resp *jsonrpc.Response) []byte {
	if resp == nil || k.entry.Request.IsNotification() || !k.entry.Wanted() {
		return nil
	}
	out := *resp
	out.ID = k.entry.Request.ID
	message := jsonrpc.AppendResponse(nil, &out)
	if size := int64(len(message)); size > max(k.room, neverReplaced) {
		if refused := k.c.out.reserve(k, size, 0); refused != nil {
			return jsonrpc.AppendResponse(nil, &jsonrpc.Response{ID: out.ID, Error: refused})
		}
	}
	return message
}

// Reserve implements [transport.Reserver] for the limit of Options.Memory.
func (k *call) Reserve(n int64) error {
	if refused := k.c.out.reserve(k, k.room, n); refused != nil {
		return refused
	}
	return nil
}

// collect returns r with its streamed result in memory.
func (k *call) collect(r jsonrpc.Response) *jsonrpc.Response {
	held := Held{Limit: cmp.Or(r.MaxHeld, DefaultMaxHeld)}
	held.Spend = func(n int64) bool { return k.c.out.reserve(k, k.room+n, 0) == nil }
	err := r.Stream(&held)
	r.Stream, r.Result = nil, held.Text
	if err != nil {
		if k.entry.Context().Err() == nil {
			k.c.opts.Logger.Error("conn: a result was not sent", "method", k.entry.Request.Method, "error", err)
		}
		r.Result, r.Error = nil, r.Broken(err)
	}
	return &r
}

// run calls the handler, reads a streamed result, and recovers panics. It does not return if the
// handler calls runtime.Goexit, as testing.T.FailNow does.
func (k *call) run() (resp *jsonrpc.Response) {
	defer func() {
		if p := recover(); p != nil {
			k.c.opts.Logger.Error("conn: the handler panicked", "method", k.entry.Request.Method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			resp = &jsonrpc.Response{Error: internalError}
		}
	}()
	resp = k.c.handler.ServeRPC(k.entry.Context(), k.entry.Request, k)
	switch {
	case resp == nil && !k.c.opts.Client:
		return &jsonrpc.Response{Error: internalError}
	case resp != nil && resp.Stream != nil && resp.Error == nil && k.entry.Wanted():
		return k.collect(*resp)
	}
	return resp
}

// Notify sends n before the response of the call. After the peer has cancelled the call, n is
// dropped.
func (k *call) Notify(ctx context.Context, n *jsonrpc.Request) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case !k.entry.Wanted():
		return nil
	case k.over:
		return transport.ErrClosed
	}
	if err := k.c.out.request(ctx, n); err != nil && !errors.Is(err, transport.ErrClosed) {
		return err
	}
	return nil
}

// Call sends a request to the peer, if a legacy version was agreed on.
func (k *call) Call(ctx context.Context, req *jsonrpc.Request) (*jsonrpc.Response, error) {
	// A server sends no requests before "initialized" (2025-11-25, basic/lifecycle,
	// "Initialization").
	if !k.c.opts.Client && (k.entry.Request.Method == protocol.MethodInitialize || k.c.session.Version() == "") {
		return nil, transport.ErrNoServerRequests
	}
	// The peer may need the response to one of its own requests first.
	if k.pass != nil {
		k.pass()
	}
	out := *req
	out.ID = jsonrpc.ID{} // the ledger chooses one
	return k.c.Do(ctx, &out)
}

// Session returns the connection's session.
func (k *call) Session() *transport.Session { return k.c.session }

// Header returns the header from the origin of the request.
func (k *call) Header() transport.Header { return k.header }

// Do sends req and waits for the response. The ID must differ from those of our other requests in
// flight. If ctx ends first, it cancels the request at the peer and returns ctx's error. The error is
// [transport.ErrClosed] if the connection ends.
func (c *Conn) Do(ctx context.Context, req *jsonrpc.Request) (*jsonrpc.Response, error) {
	return c.requests.Do(ctx, req, c.out.failed, c.out.request, func(id jsonrpc.ID) {
		params := &protocol.CancelledParams{RequestID: id, Reason: context.Cause(ctx).Error()}
		n, err := jsonrpc.NewNotification(protocol.NotificationCancelled, params)
		if err == nil && req.Method != protocol.MethodInitialize {
			_ = c.out.offer(n)
		}
	})
}

// Answer delivers the response to a request of ours that the Wire knows without reading it, for
// example because the request could not be sent.
func (c *Conn) Answer(r *jsonrpc.Response) { c.requests.Answer(r) }
