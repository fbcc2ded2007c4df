package middleware_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
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

// The middleware that is added first is the outermost: it sees what the rest refuses.
func Example() {
	ctx := context.Background()
	srv := mcpkit.MustNew(&Greeter{})
	withoutTimes := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == "method" || a.Key == "name" || a.Key == "outcome" {
			return a
		}
		return slog.Attr{}
	}}))
	srv.Use(middleware.When(func(call *mcpkit.Call) bool { return call.Method() == "tools/call" },
		middleware.Logging(withoutTimes), middleware.RateLimit(1, 1), middleware.ResultLimit(64<<10)))
	c, err := client.Dial(ctx, srv)
	if err != nil {
		panic(err)
	}
	defer c.Close()
	text, err := client.Call[string](ctx, c, "greet", map[string]string{"name": "Ann"})
	fmt.Println(text, err)
	// Output:
	// method=tools/call outcome=ok name=greet
	// Hello, Ann! <nil>
}

// When applies middleware to the calls that a function selects.
func ExampleWhen() {
	ctx := context.Background()
	srv := mcpkit.MustNew(&Greeter{})
	isTool := func(c *mcpkit.Call) bool { return c.Method() == "tools/call" }
	srv.Use(middleware.When(isTool, middleware.ResultLimit(8)))
	c, err := client.Dial(ctx, srv)
	if err != nil {
		panic(err)
	}
	defer c.Close()
	text, err := client.Call[string](ctx, c, "greet", map[string]string{"name": "Ann"})
	if err != nil {
		panic(err)
	}
	fmt.Println(text)
	// Output:
	// Hello, A
	// [truncated: this result has 11 bytes, and the limit is 8; ask for less to see the rest]
}
