package gosdk

import (
	"context"
	"os/exec"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpkit/mcpkit-go/internal/bench/internal/calls"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/work"
)

type caller struct{ s *mcp.ClientSession }

// Connect opens a session and lists the tools.
func Connect(ctx context.Context, t *calls.Target) (calls.Client, error) {
	var transport mcp.Transport
	if t.URL != "" {
		transport = &mcp.StreamableClientTransport{Endpoint: t.URL, HTTPClient: t.HTTP, DisableStandaloneSSE: true}
	} else {
		transport = &mcp.CommandTransport{Command: exec.Command(t.Server[0], t.Server[1:]...)}
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	s, err := c.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: t.Version()})
	if err != nil {
		return nil, err
	}
	if _, err := s.ListTools(ctx, nil); err != nil {
		return nil, err
	}
	return caller{s}, nil
}

func (c caller) call(ctx context.Context, name string, args any) (*mcp.CallToolResult, error) {
	return c.s.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
}

func (c caller) text(ctx context.Context, name string, args any) (string, error) {
	r, err := c.call(ctx, name, args)
	if err != nil {
		return "", err
	}
	return r.Content[0].(*mcp.TextContent).Text, nil
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
