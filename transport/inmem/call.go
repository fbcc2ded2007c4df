package inmem

import (
	"bytes"
	"context"
	"sync/atomic"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A call is the Peer of one call of the handler.
type call struct {
	conn *Conn
	over atomic.Bool
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
func (k *call) Notify(ctx context.Context, n *jsonrpc.Request) error {
	if k.over.Load() {
		return transport.ErrClosed
	}
	return link{k.conn}.Notify(ctx, n)
}

// Call sends a request to the client, if a legacy version was agreed on.
func (k *call) Call(ctx context.Context, req *jsonrpc.Request) (*jsonrpc.Response, error) {
	c := k.conn
	if c.session.Version() == "" {
		return nil, transport.ErrNoServerRequests
	}
	if c.OnRequest == nil {
		return &jsonrpc.Response{Error: jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", req.Method)}, nil
	}
	question, err := c.requests.Ask(jsonrpc.ID{})
	if err != nil {
		return nil, err
	}
	defer question.End()
	out := *req
	out.ID = question.ID
	resp := c.OnRequest(ctx, &out)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return collect(&out, resp), nil
}

// Session returns the connection's session.
func (k *call) Session() *transport.Session { return k.conn.session }

// Header returns nil: there are no header fields.
func (k *call) Header() transport.Header { return nil }

// A link reaches the client outside any call.
type link struct{ c *Conn }

// Notify passes n to the client.
func (l link) Notify(_ context.Context, n *jsonrpc.Request) error {
	if l.c.OnNotification != nil && !l.c.closed.Load() {
		l.c.OnNotification(n)
	}
	return nil
}
