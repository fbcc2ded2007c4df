package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpkit/mcpkit-go/internal/bench/work"
)

func newGoSDK(tools int) program {
	s := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		Logger:             slog.New(slog.DiscardHandler),
	})
	s.AddResource(&mcp.Resource{URI: work.URI, Name: "resource"},
		func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{}, nil
		})
	addToGoSDK(s, "add", work.AddSchema, work.AddOutSchema, work.Add)
	addToGoSDK(s, "search", work.SearchSchema, work.SearchOutSchema, work.Search)
	addTextToGoSDK(s, "echo", work.EchoSchema, func(in work.EchoInput) string { return in.Text })
	addTextToGoSDK(s, "blob", work.BlobSchema, work.Blob)
	for name, t := range more(tools) {
		t.goSDK(s, name)
	}
	ctx := context.Background()
	return program{
		memory: func() answer {
			return overPipes(func(r io.ReadCloser, w io.WriteCloser) { _ = s.Run(ctx, &mcp.IOTransport{Reader: r, Writer: w}) })
		},
		stdio: func() error { return s.Run(ctx, &mcp.StdioTransport{}) },
		http: func() http.Handler {
			get := func(*http.Request) *mcp.Server { return s }
			sessions := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{JSONResponse: true})
			// Only stateless handlers serve 2026-07-28.
			stateless := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{JSONResponse: true, Stateless: true})
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Mcp-Protocol-Version") == modern {
					stateless.ServeHTTP(w, r)
					return
				}
				sessions.ServeHTTP(w, r)
			})
		},
		notify: func() { _ = s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: work.URI}) },
	}
}

func addToGoSDK[In, Out any](s *mcp.Server, name, input, output string, f func(In) Out) {
	tool := &mcp.Tool{Name: name, InputSchema: json.RawMessage(input), OutputSchema: json.RawMessage(output)}
	mcp.AddTool(s, tool, func(_ context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
		return nil, f(in), nil
	})
}

func addTextToGoSDK[In any](s *mcp.Server, name, input string, f func(In) string) {
	tool := &mcp.Tool{Name: name, InputSchema: json.RawMessage(input)}
	mcp.AddTool(s, tool, func(_ context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: f(in)}}}, nil, nil
	})
}
