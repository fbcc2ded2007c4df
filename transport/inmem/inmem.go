// Package inmem connects a client and a handler in the same process, for tests and for programs
// that embed a server.
//
// Nothing is sent: a call of the client is a call of the handler on the same goroutine. Both see
// only what could be sent: params are encoded and checked, results are JSON, and requests have IDs
// of their own.
//
//	conn := inmem.Connect(ctx, server)
//	defer conn.Close()
//	resp, err := conn.Call(ctx, "tools/list", nil)
package inmem

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A Conn is the client's end of a connection. Its methods may be called concurrently.
type Conn struct {
	handler  transport.Handler
	session  *transport.Session
	requests conn.Ledger
	lastID   atomic.Int64 // of Call
	unbind   func() bool  // from the context of Connect
	over     sync.Once    // calls SessionEnded
	served   atomic.Bool  // the handler has seen the session
	closed   atomic.Bool

	mu             sync.Mutex
	onRequest      func(ctx context.Context, req *jsonrpc.Request) *jsonrpc.Response // guarded by mu
	onNotification func(n *jsonrpc.Request)                                          // guarded by mu
}

// Connect returns a connection to h, which is one session. When ctx ends, calls in flight are
// cancelled and new ones are refused. Close is still needed to end the session.
func Connect(ctx context.Context, h transport.Handler) *Conn {
	c := &Conn{handler: h}
	c.session = transport.NewSession("", link{c})
	c.unbind = context.AfterFunc(ctx, c.shutDown)
	return c
}

// Session returns the session of the connection; never nil.
func (c *Conn) Session() *transport.Session { return c.session }

// OnRequest sets the function that handles requests of the server. It runs on the goroutine of the
// handler that sends the request. The connection sets the ID of its response. Without it, requests
// get the error CodeMethodNotFound.
func (c *Conn) OnRequest(f func(ctx context.Context, req *jsonrpc.Request) *jsonrpc.Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onRequest = f
}

// OnNotification sets the function that receives notifications of the server. The notifications of
// a call arrive in order and before Call returns, on the goroutine of the handler that sends them.
// Without it they are dropped.
func (c *Conn) OnNotification(f func(n *jsonrpc.Request)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onNotification = f
}

// Call sends a request, with params as for [jsonrpc.NewRequest], and returns the response, which
// may contain a protocol error. The error is that of ctx if it ends before the handler returns,
// [transport.ErrClosed] after Close, or the reason why params cannot be encoded.
func (c *Conn) Call(ctx context.Context, method string, params any) (*jsonrpc.Response, error) {
	req, err := jsonrpc.NewRequest(jsonrpc.NumberID(c.lastID.Add(1)), method, params)
	if err != nil {
		return nil, err
	}
	return c.Do(ctx, req)
}

// Do is like Call with a complete request. Its ID must differ from those of calls in flight. The
// context of the handler has the values of ctx.
func (c *Conn) Do(ctx context.Context, req *jsonrpc.Request) (*jsonrpc.Response, error) {
	k, err := c.beginCall(ctx, req)
	if err != nil {
		return nil, err
	}
	defer k.endCall()
	ctx = k.entry.Context()
	resp := c.handler.ServeRPC(ctx, req, k)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	resp = collect(req, resp)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // ctx ended while a streamed result was read
	}
	return resp, nil
}

// Notify sends a notification, with params as for [jsonrpc.NewRequest], and returns when the
// handler has handled it. A cancellation ("notifications/cancelled") cancels the call that it
// names.
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
	k, err := c.beginCall(ctx, n)
	if err != nil {
		return err
	}
	defer k.endCall()
	c.handler.ServeRPC(k.entry.Context(), n, k)
	return nil
}

// Raw handles one encoded message and returns the encoded response; nil for notifications and
// cancelled calls. The message must not be changed afterwards.
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

// Close ends the session: it cancels the calls in flight, waits for them to return, and notifies
// the handler. Later calls return [transport.ErrClosed]. A handler must not call it.
func (c *Conn) Close() error {
	c.unbind()
	c.shutDown()
	<-c.requests.Idle()
	c.over.Do(func() {
		if sh, ok := c.handler.(transport.SessionHandler); ok && c.served.Load() {
			sh.SessionEnded(c.session)
		}
	})
	return nil
}
