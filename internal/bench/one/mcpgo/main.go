// Command mcpgo is a program with one tool, on stdio.
package main

import (
	"context"
	"log"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpkit/mcpkit-go/internal/bench/work"
)

func main() {
	s := server.NewMCPServer("one", "1", server.WithToolCapabilities(true))
	tool := mcp.NewTool("add", mcp.WithInputSchema[work.AddInput](), mcp.WithOutputSchema[work.AddOutput]())
	s.AddTool(tool, mcp.NewStructuredToolHandler(
		func(_ context.Context, _ mcp.CallToolRequest, in work.AddInput) (work.AddOutput, error) {
			return work.Add(in), nil
		}))
	if err := server.ServeStdio(s); err != nil {
		log.Fatal(err)
	}
}
