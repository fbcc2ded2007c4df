package inmem

import (
	"bytes"
	"context"
	"sync/atomic"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A call is one call of the handler, and its Peer.
type call struct {
	conn  *Conn
	entry *conn.Entry
	over  atomic.Bool
}

// beginCall records a call. It returns an error if the connection is closed or the ID is in use.
func (c *Conn) beginCall(ctx context.Context, req *jsonrpc.Request) (*call, error) {
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

func (k *call) endCall() {
	k.over.Store(true)
	k.entry.End()
}

// shutDown refuses further calls and cancels those in flight.
func (c *Conn) shutDown() {
	c.closed.Store(true)
	c.requests.Close(transport.ErrClosed)
}

// collect returns resp with its whole result and the ID of its request.
func collect(req *jsonrpc.Request, resp *jsonrpc.Response) *jsonrpc.Response {
	if resp == nil {
		return &jsonrpc.Response{ID: req.ID, Error: jsonrpc.Errorf(jsonrpc.CodeInternalError, "internal error")}
	}
	if resp.ID == req.ID && resp.Stream == nil {
		return resp
	}
	out := *resp // the handler may reuse its response
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

// Notify passes n to the client.
func (k *call) Notify(_ context.Context, n *jsonrpc.Request) error {
	if k.over.Load() {
		return transport.ErrClosed
	}
	k.conn.notifyClient(n)
	return nil
}

// Call sends a request to the client, if a legacy version was agreed on.
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
	resp := ask(ctx, &out)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return collect(&out, resp), nil
}

// Session returns the connection's session.
func (k *call) Session() *transport.Session { return k.conn.session }

// Header returns nil: there are no header fields.
func (k *call) Header() transport.Header { return nil }

// notifyClient passes n to the function set by OnNotification.
func (c *Conn) notifyClient(n *jsonrpc.Request) {
	c.mu.Lock()
	hear := c.onNotification
	c.mu.Unlock()
	if hear != nil && !c.closed.Load() {
		hear(n)
	}
}

// A link reaches the client outside any call.
type link struct{ c *Conn }

func (l link) Notify(_ context.Context, n *jsonrpc.Request) error {
	l.c.notifyClient(n)
	return nil
}
