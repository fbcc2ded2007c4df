// Command server-mcpgo serves the benchmark's tools with github.com/mark3labs/mcp-go.
package main

import (
	"net/http"

	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpkit/mcpkit-go/internal/bench/internal/mcpgo"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/program"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/work"
)

func main() {
	program.Main(func(tools int) program.Program {
		s := mcpgo.NewServer()
		mcpgo.Wide(s, tools-len(work.Names))
		return program.Program{
			HTTP: func(stateless bool) http.Handler {
				return server.NewStreamableHTTPServer(s, server.WithStateful(!stateless), server.WithStateLess(stateless))
			},
			Stdio: func() error { return server.ServeStdio(s) },
			Notify: func() {
				s.SendNotificationToAllClients("notifications/resources/updated", map[string]any{"uri": work.URI})
			},
		}
	})
}
