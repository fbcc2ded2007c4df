package playground_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/labstack/echo/v4"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/playground"
	"github.com/mcpkit/mcpkit-go/transport/echomcp"
)

// docs:begin mount

// mount mounts a server in an app, and its playground while it is developed.
func mount(app *echo.Echo, srv *mcpkit.Server) (*playground.Handler, func()) {
	mcp := echomcp.Mount(app, "/mcp", srv)
	play := playground.NewHandler(srv, nil)
	app.Any("/playground/*", echo.WrapHandler(play))
	return play, func() { play.Close(); mcp.Close() }
}

// docs:end mount

// A program mounts the playground in its app while it is developed.
func ExampleNewHandler() {
	app := echo.New()
	play, stop := mount(app, mcpkit.MustNew(&shop{}, mcpkit.Authenticated()))
	defer stop()
	server := httptest.NewServer(app) // a program calls app.Start("127.0.0.1:8080")
	defer server.Close()

	url := play.URL(server.URL + "/playground/") // to be opened in a browser
	resp, err := http.Get(url)
	if err != nil {
		panic(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	fmt.Println(resp.Status, resp.Header.Get("Content-Type"))
	// Output: 200 OK text/html; charset=utf-8
}
