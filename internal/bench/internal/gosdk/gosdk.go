// Package gosdk is the benchmark's server and client built with
// github.com/modelcontextprotocol/go-sdk.
package gosdk

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpkit/mcpkit-go/internal/bench/internal/work"
)

// NewServer registers the tools.
func NewServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		Logger:             slog.New(slog.DiscardHandler),
	})
	s.AddResource(&mcp.Resource{URI: work.URI, Name: "resource"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{}, nil
	})
	add(s, "add", work.AddSchema, work.AddOutSchema, func(in work.AddInput) (any, work.AddOutput) { return nil, work.Add(in) })
	add(s, "search", work.SearchSchema, work.SearchOutSchema, func(in work.SearchInput) (any, work.SearchOutput) { return nil, work.Search(in) })
	add(s, "echo", work.EchoSchema, "", func(in work.EchoInput) (any, any) { return in.Text, nil })
	add(s, "blob", work.BlobSchema, "", func(in work.BlobInput) (any, any) { return work.Blob(in), nil })
	return s
}

func add[In, Out any](s *mcp.Server, name, input, output string, f func(In) (text any, out Out)) {
	tool := &mcp.Tool{Name: name, InputSchema: json.RawMessage(input)}
	if output != "" {
		tool.OutputSchema = json.RawMessage(output)
	}
	mcp.AddTool(s, tool, func(_ context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
		text, out := f(in)
		if text != nil {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text.(string)}}}, out, nil
		}
		return nil, out, nil
	})
}

// HTTP serves s with JSON responses.
func HTTP(s *mcp.Server, statelessOnly bool) http.Handler {
	get := func(*http.Request) *mcp.Server { return s }
	sessions := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{JSONResponse: true})
	// Only stateless handlers serve 2026-07-28.
	stateless := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{JSONResponse: true, Stateless: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if statelessOnly || r.Header.Get("Mcp-Protocol-Version") == "2026-07-28" {
			stateless.ServeHTTP(w, r)
			return
		}
		sessions.ServeHTTP(w, r)
	})
}
