// Package oursclient is the client of this project. It is apart from package ours, since servers do not
// link a client.
package oursclient

import (
	"context"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/calls"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/work"
	"github.com/mcpkit/mcpkit-go/protocol"
)

type caller struct{ c *client.Client }

// Connect dials and lists the tools.
func Connect(ctx context.Context, t *calls.Target) (calls.Client, error) {
	var target client.Target
	opts := []client.DialOption{client.Version(protocol.Version(t.Version()))}
	if t.URL != "" {
		target = client.URL(t.URL) // uses the default HTTP client, which keeps enough connections
	} else {
		target = client.Command(t.Server[0], t.Server[1:]...)
	}
	c, err := client.Dial(ctx, target, opts...)
	if err != nil {
		return nil, err
	}
	for _, err := range c.Tools(ctx) {
		if err != nil {
			return nil, err
		}
	}
	return caller{c}, nil
}

func (c caller) Add(ctx context.Context, in work.AddInput) (int, error) {
	out, err := client.Call[work.AddOutput](ctx, c.c, "add", in)
	return out.Sum, err
}

func (c caller) Search(ctx context.Context, in work.SearchInput) (int, error) {
	out, err := client.Call[work.SearchOutput](ctx, c.c, "search", in)
	if err != nil || len(out.Hits) == 0 {
		return 0, err
	}
	return out.Hits[len(out.Hits)-1].ID, nil
}

func (c caller) Echo(ctx context.Context, args map[string]any) (string, error) {
	return client.Call[string](ctx, c.c, "echo", args)
}

func (c caller) Blob(ctx context.Context, args map[string]any) (int, error) {
	text, err := client.Call[string](ctx, c.c, "blob", args)
	return len(text), err
}
