// Command server-mcpgo serves the benchmark's tools with github.com/mark3labs/mcp-go.
package main

import (
	"net/http"

	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpkit/mcpkit-go/bench/internal/mcpgo"
	"github.com/mcpkit/mcpkit-go/bench/internal/work"
)

func main() {
	s := mcpgo.NewServer()
	work.Main(
		func() http.Handler { return server.NewStreamableHTTPServer(s, server.WithStateful(true)) },
		func() error { return server.ServeStdio(s) },
	)
}
