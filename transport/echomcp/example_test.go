package echomcp_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/labstack/echo/v4"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/echomcp"
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

// The app keeps its routes, and its middleware runs before the server.
func ExampleMount() {
	app := echo.New()
	app.GET("/", func(c echo.Context) error { return c.String(200, "the app") })
	mcp := echomcp.Mount(app, "/mcp", mcpkit.MustNew(&Greeter{}))
	defer mcp.Close()
	server := httptest.NewServer(app) // a program calls app.Start, and echomcp.Shutdown at its end
	defer server.Close()

	ctx := context.Background()
	c, err := client.Dial(ctx, server.URL+"/mcp")
	if err != nil {
		panic(err)
	}
	defer c.Close()
	fmt.Println(client.Call[string](ctx, c, "greet", map[string]string{"name": "Ann"}))
	// Output: Hello, Ann! <nil>
}
