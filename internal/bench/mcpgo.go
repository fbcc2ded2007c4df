package main

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpkit/mcpkit-go/internal/bench/work"
)

// newMCPGo returns a server that does not validate arguments, which is mcp-go's default.
func newMCPGo(tools int) program {
	s := server.NewMCPServer("bench", "1", server.WithToolCapabilities(true))
	addToMCPGo(s, "add", work.AddSchema, work.AddOutSchema, work.Add)
	addToMCPGo(s, "search", work.SearchSchema, work.SearchOutSchema, func(in work.SearchInput) work.SearchOutput {
		if in.Limit == 0 {
			in.Limit = 10
		}
		return work.Search(in)
	})
	addTextToMCPGo(s, "echo", work.EchoSchema, func(in work.EchoInput) string { return in.Text })
	addTextToMCPGo(s, "blob", work.BlobSchema, work.Blob)
	for name, t := range more(tools) {
		t.mcpGo(s, name)
	}
	return program{
		memory: func() answer {
			return func(dst, msg []byte) []byte {
				response, err := json.Marshal(s.HandleMessage(context.Background(), msg))
				must(err)
				return append(dst, response...)
			}
		},
		stdio: func() error { return server.ServeStdio(s) },
		http:  func() http.Handler { return server.NewStreamableHTTPServer(s, server.WithStateful(true)) },
		notify: func() {
			s.SendNotificationToAllClients("notifications/resources/updated", map[string]any{"uri": work.URI})
		},
	}
}

func addToMCPGo[In, Out any](s *server.MCPServer, name, input, output string, f func(In) Out) {
	t := mcp.NewToolWithRawSchema(name, "", json.RawMessage(input))
	t.RawOutputSchema = json.RawMessage(output)
	s.AddTool(t, mcp.NewStructuredToolHandler(func(_ context.Context, _ mcp.CallToolRequest, in In) (Out, error) {
		return f(in), nil
	}))
}

func addTextToMCPGo[In any](s *server.MCPServer, name, input string, f func(In) string) {
	s.AddTool(mcp.NewToolWithRawSchema(name, "", json.RawMessage(input)), mcp.NewTypedToolHandler(
		func(_ context.Context, _ mcp.CallToolRequest, in In) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(f(in)), nil
		}))
}
