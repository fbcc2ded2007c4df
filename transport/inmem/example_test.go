package inmem_test

import (
	"context"
	"fmt"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/inmem"
)

// Greeter greets people.
type Greeter struct {
	_ mcpkit.Info `name:"greeter" version:"1.0.0"`
}

// Greet greets somebody by name.
func (*Greeter) Greet(in struct {
	Name string `json:"name"`
}) string {
	return "Hello, " + in.Name + "!"
}

// A connection within the process, for tests that look at messages. Package client dials a server
// directly.
func ExampleConnect() {
	ctx := context.Background()
	conn := inmem.Connect(ctx, mcpkit.MustNew(&Greeter{}))
	defer conn.Close()
	resp, err := conn.Call(ctx, "tools/call", map[string]any{
		"name": "greet", "arguments": map[string]string{"name": "Ann"},
		"_meta": map[string]any{"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": struct{}{}},
	})
	fmt.Println(resp.Error, len(resp.Result) > 0, err)
	// Output: <nil> true <nil>
}

// echo is a server without mcpkit: it answers each request with its params.
type echo struct{}

func (echo) ServeRPC(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
	return &jsonrpc.Response{Result: req.Params}
}

// Whatever implements transport.Handler can be served over every transport.
func ExampleConnect_handler() {
	ctx := context.Background()
	conn := inmem.Connect(ctx, echo{})
	defer conn.Close()
	resp, err := conn.Call(ctx, "say", map[string]string{"text": "Hello"})
	fmt.Println(string(resp.Result), err)
	// Output: {"text":"Hello"} <nil>
}
