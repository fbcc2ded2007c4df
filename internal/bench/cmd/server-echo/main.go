// Command server-echo serves the benchmark's tools in an echo app with Gzip, JWT and CORS, with the
// server that -sdk names.
package main

import (
	"context"
	"flag"
	"net/http"

	echojwt "github.com/labstack/echo-jwt/v4"
	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpkit/mcpkit-go/internal/bench/internal/floor"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/gosdk"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/mcpgo"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/ours"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/program"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/work"
	"github.com/mcpkit/mcpkit-go/transport/echomcp"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

func main() {
	sdk := flag.String("sdk", "floor", "floor, mcpkit, gosdk or mcpgo")
	program.Main(func(tools int) program.Program {
		e := echo.New()
		e.Use(middleware.Gzip(), middleware.CORS(), echojwt.JWT([]byte(work.Secret)))
		any := func(h http.Handler) { e.Any("/mcp", echo.WrapHandler(h)) }
		switch *sdk {
		case "floor":
			any(&floor.Handler{Server: floor.New(tools)})
		case "mcpkit":
			echomcp.Mount(e, "/mcp", ours.NewServer(), echomcp.Streamable(&streamable.Options{AllowedOrigins: []string{work.Origin}}))
		case "gosdk":
			any(gosdk.HTTP(gosdk.NewServer(), false))
		case "mcpgo":
			any(server.NewStreamableHTTPServer(mcpgo.NewServer(), server.WithStateful(true)))
		}
		return program.Program{HTTP: func(bool) http.Handler { return e }, Stdio: func() error { return context.Canceled }, Notify: func() {}}
	})
}
