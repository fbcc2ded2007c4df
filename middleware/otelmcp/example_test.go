package otelmcp_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware/otelmcp"
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

// Each call has a span. The providers are those of your program; without options, the global ones.
func ExampleMiddleware() {
	ctx := context.Background()
	spans := tracetest.NewSpanRecorder()
	srv := mcpkit.MustNew(&Greeter{})
	srv.Use(otelmcp.Middleware(otelmcp.TracerProvider(trace.NewTracerProvider(trace.WithSpanProcessor(spans)))))
	c, err := client.Dial(ctx, srv)
	if err != nil {
		panic(err)
	}
	defer c.Close()
	fmt.Println(client.Call[string](ctx, c, "greet", map[string]string{"name": "Ann"}))
	ended := spans.Ended()
	fmt.Println(ended[len(ended)-1].Name())
	// Output:
	// Hello, Ann! <nil>
	// tools/call greet
}
