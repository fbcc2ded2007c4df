package mcpgo

import (
	"context"
	"fmt"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcpkit/mcpkit-go/internal/bench/internal/calls"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/work"
)

type caller struct{ c *client.Client }

// Connect opens a session and lists the tools.
func Connect(ctx context.Context, t *calls.Target) (calls.Client, error) {
	var tr transport.Interface
	if t.URL != "" {
		var opts []transport.StreamableHTTPCOption
		if t.HTTP != nil {
			opts = append(opts, transport.WithHTTPBasicClient(t.HTTP))
		}
		var err error
		if tr, err = transport.NewStreamableHTTP(t.URL, opts...); err != nil {
			return nil, err
		}
	} else {
		tr = transport.NewStdioWithOptions(t.Server[0], nil, t.Server[1:])
	}
	only := client.WithProtocolVersion(t.Version())
	if !t.Modern {
		//lint:ignore SA1019 the measured version has the handshake
		only = client.WithLegacyProtocolOnly()
	}
	c := client.NewClient(tr, only)
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	var init mcp.InitializeRequest
	init.Params.ProtocolVersion = t.Version()
	init.Params.ClientInfo = mcp.Implementation{Name: "bench", Version: "1"}
	if _, err := c.Initialize(ctx, init); err != nil {
		return nil, err
	}
	if got := c.ProtocolVersion(); got != t.Version() {
		return nil, fmt.Errorf("negotiated version %s, want %s", got, t.Version())
	}
	if _, err := c.ListTools(ctx, mcp.ListToolsRequest{}); err != nil {
		return nil, err
	}
	return caller{c}, nil
}

func (c caller) call(ctx context.Context, name string, args any) (*mcp.CallToolResult, error) {
	var r mcp.CallToolRequest
	r.Params.Name, r.Params.Arguments = name, args
	return c.c.CallTool(ctx, r)
}

func (c caller) text(ctx context.Context, name string, args any) (string, error) {
	r, err := c.call(ctx, name, args)
	if err != nil {
		return "", err
	}
	return r.Content[0].(mcp.TextContent).Text, nil
}

func (c caller) Add(ctx context.Context, in work.AddInput) (int, error) {
	r, err := c.call(ctx, "add", in)
	if err != nil {
		return 0, err
	}
	return int(r.StructuredContent.(map[string]any)["sum"].(float64)), nil
}

func (c caller) Search(ctx context.Context, in work.SearchInput) (int, error) {
	r, err := c.call(ctx, "search", in)
	if err != nil {
		return 0, err
	}
	hits := r.StructuredContent.(map[string]any)["hits"].([]any)
	return int(hits[len(hits)-1].(map[string]any)["id"].(float64)), nil
}

func (c caller) Echo(ctx context.Context, args map[string]any) (string, error) {
	return c.text(ctx, "echo", args)
}

func (c caller) Blob(ctx context.Context, args map[string]any) (int, error) {
	text, err := c.text(ctx, "blob", args)
	return len(text), err
}
