package expvarmcp_test

import (
	"context"
	"expvar"
	"fmt"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/middleware/expvarmcp"
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

// The metrics appear at /debug/vars.
func ExampleNew() {
	ctx := context.Background()
	srv := mcpkit.MustNew(&Greeter{})
	srv.Use(middleware.Metrics(expvarmcp.New("example_mcp")))
	c, err := client.Dial(ctx, srv)
	if err != nil {
		panic(err)
	}
	defer c.Close()
	fmt.Println(client.Call[string](ctx, c, "greet", map[string]string{"name": "Ann"}))
	fmt.Println(expvar.Get("example_mcp") != nil)
	// Output:
	// Hello, Ann! <nil>
	// true
}
