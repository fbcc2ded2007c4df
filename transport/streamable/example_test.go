package streamable_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
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

// A handler is an http.Handler, for any router. Listen runs an HTTP server by itself.
func ExampleNewHandler() {
	handler := streamable.NewHandler(mcpkit.MustNew(&Greeter{}), nil)
	server := httptest.NewServer(handler)
	defer server.Close()
	defer handler.Close()

	ctx := context.Background()
	c, err := client.Dial(ctx, server.URL)
	if err != nil {
		panic(err)
	}
	defer c.Close()
	fmt.Println(client.Call[string](ctx, c, "greet", map[string]string{"name": "Ann"}))
	// Output: Hello, Ann! <nil>
}
