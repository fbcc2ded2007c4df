package inmem

import (
	"bytes"
	"context"
	"sync/atomic"

	"github.com/mcpkit/mcpkit-go/internal/ledger"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A call is one call of the handler, whose Peer it is.
type call struct {
	conn  *Conn
	entry *ledger.Call
	over  atomic.Bool
}

// begin records a call, unless the connection is closed or the ID taken.
func (c *Conn) begin(ctx context.Context, req *jsonrpc.Request) (*call, error) {
	entry, refused := c.requests.Begin(ctx, req, 0)
	switch {
	case c.closed.Load():
		if refused == nil {
			entry.End()
		}
		return nil, transport.ErrClosed
	case refused != nil:
		return nil, refused
	}
	c.served.Store(true)
	return &call{conn: c, entry: entry}, nil
}

func (k *call) end() {
	k.over.Store(true)
	k.entry.End()
}

// shut refuses further calls and cancels those in flight.
func (c *Conn) shut() {
	c.closed.Store(true)
	c.requests.Close(transport.ErrClosed)
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
	question, err := c.requests.Ask(jsonrpc.ID{})
	if err != nil {
		return nil, err
	}
	defer question.End()
	out := *req
	out.ID = question.ID
	transport.Sent(ctx) // the client is called on this goroutine
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
	hear := c.onNotification
	c.mu.Unlock()
	if hear != nil && !c.closed.Load() {
		hear(n)
	}
}

// link is the way to the client outside any call.
type link struct{ c *Conn }

func (l link) Notify(_ context.Context, n *jsonrpc.Request) error {
	l.c.tell(n)
	return nil
}
