// Command todo keeps a list of things to do.
package main

import (
	"flag"
	"log"

	"github.com/labstack/echo/v4"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/echomcp"
)

func main() {
	addr := flag.String("http", "", "serve over HTTP on this `address`")
	flag.Parse()
	if err := run(*addr); err != nil {
		log.Fatal(err)
	}
}

func run(addr string) error {
	if addr == "" {
		return mcpkit.Serve(&Todo{})
	}
	srv, err := mcpkit.New(&Todo{})
	if err != nil {
		return err
	}
	return newApp(srv).Start(addr)
}

// newApp is an echo app with the server at /mcp.
func newApp(srv *mcpkit.Server) *echo.Echo {
	app := echo.New()
	echomcp.Mount(app, "/mcp", srv)
	return app
}
