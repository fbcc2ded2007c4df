package inmem

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"

	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// errCancelled is what a call returns that the client cancelled by a notification.
var errCancelled = errors.New("transport/inmem: the call was cancelled")

// A call is one call of the handler, whose Peer it is.
type call struct {
	conn   *Conn
	cancel context.CancelCauseFunc // nil for a notification
	over   atomic.Bool
}

// begin enters a call, unless the connection is closed or the ID taken.
func (c *Conn) begin(req *jsonrpc.Request, k *call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return transport.ErrClosed
	}
	if !req.IsNotification() {
		if c.calls[req.ID] != nil {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "a request with the id %.60s is in flight", req.ID)
		}
		c.calls[req.ID] = k
	}
	c.served = true
	c.active++
	return nil
}

func (c *Conn) end(req *jsonrpc.Request, k *call) {
	k.over.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !req.IsNotification() {
		delete(c.calls, req.ID)
	}
	c.active--
	if c.closed && c.active == 0 {
		close(c.idle)
	}
}

// shut refuses further calls and cancels those in flight.
func (c *Conn) shut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	if c.active == 0 {
		close(c.idle)
	}
	for _, k := range c.calls {
		k.cancel(transport.ErrClosed)
	}
}

// cancelled ends the call that n names. One that is not in flight is no mistake.
func (c *Conn) cancelled(n *jsonrpc.Request) {
	id, ok := jsonrpc.ParseID(n.Param("requestId"))
	if !ok {
		return
	}
	c.mu.Lock()
	k := c.calls[id]
	c.mu.Unlock()
	if k != nil {
		k.cancel(errCancelled)
	}
}

// collect returns resp as the client gets it: whole, and under the ID of its request.
func collect(req *jsonrpc.Request, resp *jsonrpc.Response) *jsonrpc.Response {
	if resp == nil {
		return &jsonrpc.Response{ID: req.ID, Error: jsonrpc.Errorf(jsonrpc.CodeInternalError, "internal error")}
	}
	if resp.ID == req.ID && resp.Stream == nil {
		return resp
	}
	out := *resp // which may be one that the handler uses again
	out.ID = req.ID
	if out.Stream != nil && out.Error == nil {
		var text bytes.Buffer
		if err := out.Stream(&text); err != nil {
			return &jsonrpc.Response{ID: req.ID, Error: out.Broken(err)}
		}
		out.Result, out.Stream = text.Bytes(), nil
	}
	return &out
}

// Notify hands n to the client.
func (k *call) Notify(_ context.Context, n *jsonrpc.Request) error {
	if k.over.Load() {
		return transport.ErrClosed
	}
	k.conn.tell(n)
	return nil
}

// Call asks the client, once a legacy revision was agreed on.
func (k *call) Call(ctx context.Context, req *jsonrpc.Request) (*jsonrpc.Response, error) {
	c := k.conn
	if c.session.Version() == "" {
		return nil, transport.ErrNoServerRequests
	}
	c.mu.Lock()
	ask := c.onRequest
	c.mu.Unlock()
	if ask == nil {
		return &jsonrpc.Response{Error: jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", req.Method)}, nil
	}
	out := *req
	out.ID = jsonrpc.NumberID(c.lastID.Add(1))
	resp := ask(ctx, &out)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return collect(&out, resp), nil
}

// Session returns the connection's session.
func (k *call) Session() *transport.Session { return k.conn.session }

// Header returns nil.
func (k *call) Header() transport.Header { return nil }

// tell hands n to who listens.
func (c *Conn) tell(n *jsonrpc.Request) {
	c.mu.Lock()
	hear, closed := c.onNotification, c.closed
	c.mu.Unlock()
	if hear != nil && !closed {
		hear(n)
	}
}

// link is the way to the client outside any call.
type link struct{ c *Conn }

func (l link) Notify(_ context.Context, n *jsonrpc.Request) error {
	l.c.tell(n)
	return nil
}
