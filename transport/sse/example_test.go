package sse_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	mcpclient "github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/sse"
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

// Clients of 2024-11-05 connect to this transport. Package client falls back to it.
func ExampleNewHandler() {
	handler := sse.NewHandler(mcpkit.MustNew(&Greeter{}), nil)
	server := httptest.NewServer(handler)
	defer server.Close()
	defer handler.Close()

	ctx := context.Background()
	c, err := mcpclient.Dial(ctx, server.URL)
	if err != nil {
		panic(err)
	}
	defer c.Close()
	fmt.Println(mcpclient.Call[string](ctx, c, "greet", map[string]string{"name": "Ann"}))
	// Output: Hello, Ann! <nil>
}
