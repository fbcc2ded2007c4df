package testkit

import (
	"context"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// An Unread is a handler for clients that do not read. All its messages are large. "flood" sends
// notifications until that fails. "block" waits for the end of its context and sends the time.
type Unread chan time.Time

// ServeRPC implements [transport.Handler].
func (u Unread) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	large := []byte(`{"x":"` + strings.Repeat("x", 64<<10) + `"}`)
	switch req.Method {
	case "flood":
		for ctx.Err() == nil && peer.Notify(ctx, &jsonrpc.Request{Method: "note", Params: large}) == nil {
		}
	case "block":
		<-ctx.Done()
		u <- time.Now()
	}
	return &jsonrpc.Response{Result: large}
}
