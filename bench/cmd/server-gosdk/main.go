// Command server-gosdk serves the benchmark's tools with github.com/modelcontextprotocol/go-sdk.
package main

import (
	"context"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpkit/mcpkit-go/bench/internal/gosdk"
	"github.com/mcpkit/mcpkit-go/bench/internal/work"
)

func main() {
	s := gosdk.NewServer()
	work.Main(
		func() http.Handler { return gosdk.HTTP(s) },
		func() error { return s.Run(context.Background(), &mcp.StdioTransport{}) },
	)
}
