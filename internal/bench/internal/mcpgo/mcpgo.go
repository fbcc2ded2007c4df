// Package mcpgo is the benchmark's server and client built with github.com/mark3labs/mcp-go. As by
// default, the server does not validate arguments.
package mcpgo

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpkit/mcpkit-go/internal/bench/internal/work"
)

// NewServer registers the tools.
func NewServer() *server.MCPServer {
	s := server.NewMCPServer("bench", "1", server.WithToolCapabilities(true))
	s.AddTool(tool("add", work.AddSchema, work.AddOutSchema), mcp.NewStructuredToolHandler(
		func(_ context.Context, _ mcp.CallToolRequest, in work.AddInput) (work.AddOutput, error) {
			return work.Add(in), nil
		}))
	s.AddTool(tool("search", work.SearchSchema, work.SearchOutSchema), mcp.NewStructuredToolHandler(
		func(_ context.Context, _ mcp.CallToolRequest, in work.SearchInput) (work.SearchOutput, error) {
			if in.Limit == 0 {
				in.Limit = 10
			}
			return work.Search(in), nil
		}))
	s.AddTool(tool("echo", work.EchoSchema, ""), mcp.NewTypedToolHandler(
		func(_ context.Context, _ mcp.CallToolRequest, in work.EchoInput) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(in.Text), nil
		}))
	s.AddTool(tool("blob", work.BlobSchema, ""), mcp.NewTypedToolHandler(
		func(_ context.Context, _ mcp.CallToolRequest, in work.BlobInput) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(work.Blob(in)), nil
		}))
	return s
}

func tool(name, input, output string) mcp.Tool {
	t := mcp.NewToolWithRawSchema(name, "", json.RawMessage(input))
	if output != "" {
		t.RawOutputSchema = json.RawMessage(output)
	}
	return t
}
