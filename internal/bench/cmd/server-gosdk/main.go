// Command server-gosdk serves the benchmark's tools with github.com/modelcontextprotocol/go-sdk.
package main

import (
	"context"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpkit/mcpkit-go/internal/bench/internal/gosdk"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/program"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/work"
)

func main() {
	program.Main(func(tools int) program.Program {
		s := gosdk.NewServer()
		gosdk.Wide(s, tools-len(work.Names))
		return program.Program{
			HTTP:  func(stateless bool) http.Handler { return gosdk.HTTP(s, stateless) },
			Stdio: func() error { return s.Run(context.Background(), &mcp.StdioTransport{}) },
			Notify: func() {
				_ = s.ResourceUpdated(context.Background(), &mcp.ResourceUpdatedNotificationParams{URI: work.URI})
			},
		}
	})
}
