package client

import (
	"context"

	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/inmem"
)

// A memoryConn calls a handler of this process.
type memoryConn struct{ conn *inmem.Conn }

func newMemoryConn(c *Client, h transport.Handler) *memoryConn {
	m := &memoryConn{inmem.Connect(c.base, h)}
	m.conn.OnNotification = func(n *jsonrpc.Request) { c.hear(n, nil) }
	m.conn.OnRequest = func(ctx context.Context, req *jsonrpc.Request) *jsonrpc.Response {
		if resp := c.serve(ctx, req, nil); resp != nil {
			return resp
		}
		return &jsonrpc.Response{Error: jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "servers send no requests in this version")}
	}
	return m
}

// roundTrip calls the handler, on the goroutine of the caller.
func (m *memoryConn) roundTrip(ctx context.Context, x *exchange) (*jsonrpc.Response, error) {
	return m.conn.Do(ctx, x.req)
}

func (m *memoryConn) notify(ctx context.Context, n *jsonrpc.Request) error {
	return m.conn.Notify(ctx, n.Method, n.Params)
}

func (m *memoryConn) renew(context.Context, error) error { return nil }
func (m *memoryConn) settled(protocol.Version)           {}
func (m *memoryConn) listen() <-chan struct{}            { return nil }
func (m *memoryConn) mirrors() bool                      { return false }

// close waits for the calls in flight, but at most closePatience: a handler of the client, which a
// call waits for, may itself have called Close.
func (m *memoryConn) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	await(ctx, func() { _ = m.conn.Close() })
	return nil
}
