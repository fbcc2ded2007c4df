package echomcp_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	echomw "github.com/labstack/echo/v4/middleware"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/echomcp"
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

// newApp returns an echo app with its own route and the server mounted at /mcp.
func newApp(srv *mcpkit.Server) (*echo.Echo, *streamable.Handler) {
	app := echo.New()
	app.HideBanner, app.HidePort = true, true
	app.Server.ReadHeaderTimeout = 10 * time.Second // echo sets none
	app.Use(echomw.Recover(), echomw.RequestID(), echomw.Gzip())
	app.GET("/healthz", func(c echo.Context) error { return c.String(http.StatusOK, "ok") })
	return app, echomcp.Mount(app, "/mcp", srv)
}

// serve serves until ctx ends. Then it ends the MCP streams, because the app would wait for
// them, shuts down the app and closes the services.
func serve(ctx context.Context, srv *mcpkit.Server, ln net.Listener) error {
	app, handler := newApp(srv)
	app.Listener = ln
	failed := make(chan error, 1)
	// Ends when the app is shut down.
	go func() { failed <- app.Start("") }()
	select {
	case err := <-failed:
		return errors.Join(err, srv.Close())
	case <-ctx.Done():
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(echomcp.Shutdown(bound, app, handler), srv.Close())
}

// The app keeps its routes, and its middleware runs before the server.
func Example() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	// Ends with ctx.
	go func() { ended <- serve(ctx, mcpkit.MustNew(&Greeter{}), ln) }()

	c, err := client.Dial(ctx, "http://"+ln.Addr().String()+"/mcp")
	if err != nil {
		panic(err)
	}
	fmt.Println(client.Call[string](ctx, c, "greet", map[string]string{"name": "Ann"}))
	fmt.Println(c.Close())
	stop()
	fmt.Println(<-ended)
	// Output:
	// Hello, Ann! <nil>
	// <nil>
	// <nil>
}
