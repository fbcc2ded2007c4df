// Package inmem connects a handler with a client in the same process: for tests, and for programs that embed a server.
//
// There is no wire: a call of the client is a call of the handler, on the same goroutine. Both still see what a
// wire would let through: params are encoded and checked, results are JSON, requests have IDs of their own.
//
//	conn := inmem.Connect(ctx, server)
//	defer conn.Close()
//	resp, err := conn.Call(ctx, "tools/list", nil)
package inmem

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/mcpkit/mcpkit-go/internal/ledger"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

// Conn is the client's end of a connection. Its methods may be called concurrently.
type Conn struct {
	handler  transport.Handler
	session  *transport.Session
	requests ledger.Ledger
	lastID   atomic.Int64 // of Call
	unbind   func() bool  // from the context of Connect
	over     sync.Once    // the handler was told of the end
	served   atomic.Bool  // the handler has seen the session
	closed   atomic.Bool

	mu             sync.Mutex
	onRequest      func(ctx context.Context, req *jsonrpc.Request) *jsonrpc.Response // guarded by mu
	onNotification func(n *jsonrpc.Request)                                          // guarded by mu
}

// Connect returns a connection to h, which is one session. When ctx ends, the calls in flight do, and others
// are refused; Close is still needed to end the session.
func Connect(ctx context.Context, h transport.Handler) *Conn {
	c := &Conn{handler: h}
	c.session = transport.NewSession("", link{c})
	c.unbind = context.AfterFunc(ctx, c.shut)
	return c
}

// Session is the session of the connection; never nil.
func (c *Conn) Session() *transport.Session { return c.session }

// OnRequest sets what answers the requests of the server; the ID of the response does not matter. It runs on the goroutine of the handler that asks.
// Without it they are answered with CodeMethodNotFound.
func (c *Conn) OnRequest(f func(ctx context.Context, req *jsonrpc.Request) *jsonrpc.Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onRequest = f
}

// OnNotification sets what hears the notifications of the server: those of a call in their order and before Call
// returns, on the goroutine of the handler that sends them. Without it they are dropped.
func (c *Conn) OnNotification(f func(n *jsonrpc.Request)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onNotification = f
}

// Call sends a request, with params as for [jsonrpc.NewRequest], and returns the answer. A protocol error is in the
// response. The error is that of ctx when it ended before the handler came back with an answer, which is then dropped;
// [transport.ErrClosed] after Close; or says that params do not encode.
func (c *Conn) Call(ctx context.Context, method string, params any) (*jsonrpc.Response, error) {
	req, err := jsonrpc.NewRequest(jsonrpc.NumberID(c.lastID.Add(1)), method, params)
	if err != nil {
		return nil, err
	}
	return c.Do(ctx, req)
}

// Do is Call with a request that is made already; its ID must not be that of another call in flight. The handler's context
// has the values of ctx.
func (c *Conn) Do(ctx context.Context, req *jsonrpc.Request) (*jsonrpc.Response, error) {
	k, err := c.begin(ctx, req)
	if err != nil {
		return nil, err
	}
	defer k.end()
	ctx = k.entry.Context()
	resp := c.handler.ServeRPC(ctx, req, k)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	resp = collect(req, resp)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // a result that was still being read
	}
	return resp, nil
}

// Notify sends a notification, with params as for [jsonrpc.NewRequest], and returns when the handler is done with it.
// A cancellation ("notifications/cancelled") ends the call that it names.
func (c *Conn) Notify(ctx context.Context, method string, params any) error {
	n, err := jsonrpc.NewNotification(method, params)
	if err != nil {
		return err
	}
	return c.notify(ctx, n)
}

func (c *Conn) notify(ctx context.Context, n *jsonrpc.Request) error {
	if n.Method == protocol.NotificationCancelled {
		c.requests.Cancel(n)
		return nil
	}
	k, err := c.begin(ctx, n)
	if err != nil {
		return err
	}
	defer k.end()
	c.handler.ServeRPC(k.entry.Context(), n, k)
	return nil
}

// Raw handles one message as it would be on a wire, and returns the answer as it would be there: nil where there is none,
// as for notifications and for calls that were cancelled. The message must not be changed afterwards.
func (c *Conn) Raw(ctx context.Context, message []byte) []byte {
	m, bad := jsonrpc.Decode(message)
	switch {
	case bad != nil && m.Response == nil:
		return jsonrpc.AppendResponse(nil, bad)
	case m.Request == nil:
		return nil
	case m.Request.IsNotification():
		_ = c.notify(ctx, m.Request)
		return nil
	}
	resp, err := c.Do(ctx, m.Request)
	if err != nil {
		return nil
	}
	return jsonrpc.AppendResponse(nil, resp)
}

// Close ends the session: it cancels the calls in flight, waits for them to come back, and tells the handler.
// Later calls return [transport.ErrClosed]. A handler must not call it.
func (c *Conn) Close() error {
	c.unbind()
	c.shut()
	<-c.requests.Idle()
	c.over.Do(func() {
		if sh, ok := c.handler.(transport.SessionHandler); ok && c.served.Load() {
			sh.SessionEnded(c.session)
		}
	})
	return nil
}
