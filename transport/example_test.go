package transport_test

import (
	"context"
	"fmt"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/inmem"
)

// echo is a server without mcpkit: it answers each request with its params.
type echo struct{}

func (echo) ServeRPC(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
	return &jsonrpc.Response{Result: req.Params}
}

// Whatever implements Handler can be served over every transport.
func ExampleHandler() {
	ctx := context.Background()
	conn := inmem.Connect(ctx, echo{})
	defer conn.Close()
	resp, err := conn.Call(ctx, "say", map[string]string{"text": "Hello"})
	fmt.Println(string(resp.Result), err)
	// Output: {"text":"Hello"} <nil>
}
