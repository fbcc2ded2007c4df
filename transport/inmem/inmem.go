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
	// OnRequest handles requests of the server, on the goroutine of the handler that sends the
	// request. The connection sets the ID of its response. If it is nil, requests get the error
	// CodeMethodNotFound. Set it before the first call.
	OnRequest func(ctx context.Context, req *jsonrpc.Request) *jsonrpc.Response

	// OnNotification receives notifications of the server. The notifications of a call arrive in
	// order and before Call returns, on the goroutine of the handler that sends them. If it is nil,
	// they are dropped. Set it before the first call.
	OnNotification func(n *jsonrpc.Request)

	handler  transport.Handler
	session  *transport.Session
	requests conn.Ledger
	lastID   atomic.Int64 // of Call
	unbind   func() bool  // from the context of Connect
	over     sync.Once    // calls SessionEnded
	closed   atomic.Bool
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
func (c *Conn) Do(ctx context.Context, req *jsonrpc.Request) (resp *jsonrpc.Response, err error) {
	err = c.serve(ctx, req, func(ctx context.Context, k *call) error {
		resp = c.handler.ServeRPC(ctx, req, k)
		if ctx.Err() == nil {
			resp = collect(req, resp)
		}
		return context.Cause(ctx) // ctx may also have ended while a streamed result was read
	})
	if err != nil {
		return nil, err
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
	if n.Method == protocol.NotificationCancelled {
		c.requests.Cancel(n)
		return nil
	}
	return c.serve(ctx, n, func(ctx context.Context, k *call) error {
		c.handler.ServeRPC(ctx, n, k)
		return nil
	})
}

// serve records a message and calls f, which passes it to the handler. It returns an error if the
// connection is closed or the ID is in use.
func (c *Conn) serve(ctx context.Context, req *jsonrpc.Request, f func(ctx context.Context, k *call) error) error {
	entry, refused := c.requests.Begin(ctx, req, 0)
	if c.closed.Load() {
		if refused == nil {
			entry.End()
		}
		return transport.ErrClosed
	}
	if refused != nil {
		return refused
	}
	k := &call{conn: c}
	defer entry.End()
	defer k.over.Store(true)
	return f(entry.Context(), k)
}

// shutDown refuses further calls and cancels those in flight.
func (c *Conn) shutDown() {
	c.closed.Store(true)
	c.requests.Close(transport.ErrClosed)
}

// Close ends the session: it cancels the calls in flight, waits for them to return, and notifies
// the handler. Later calls return [transport.ErrClosed]. A handler must not call it.
func (c *Conn) Close() error {
	c.unbind()
	c.shutDown()
	<-c.requests.Close(transport.ErrClosed)
	c.over.Do(func() {
		if sh, ok := c.handler.(transport.SessionHandler); ok {
			sh.SessionEnded(c.session)
		}
	})
	return nil
}
