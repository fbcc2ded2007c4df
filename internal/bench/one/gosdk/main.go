// Command gosdk is a program with one tool, on stdio.
package main

import (
	"context"
	"log"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpkit/mcpkit-go/internal/bench/work"
)

func add(_ context.Context, _ *mcp.CallToolRequest, in work.AddInput) (*mcp.CallToolResult, work.AddOutput, error) {
	return nil, work.Add(in), nil
}

func main() {
	s := mcp.NewServer(&mcp.Implementation{Name: "one", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "add"}, add)
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}
