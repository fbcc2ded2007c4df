package client_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
)

type dialer = func(t *testing.T, opts ...client.DialOption) *client.Client

func TestCallsWorkOnEveryTransportInEveryVersion(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, dial dialer, v protocol.Version) {
		c := dial(t)
		ctx := t.Context()
		require.Equal(t, v, c.Version())
		require.Equal(t, "shop", c.Server().Name)
		require.NotNil(t, c.Capabilities().Tools)
		require.NoError(t, c.Ping(ctx))

		hits, err := client.Call[[]Hit](ctx, c, "search", SearchInput{Query: "tea"})
		require.NoError(t, err)
		require.Equal(t, []Hit{{ID: 1 << 60, Title: "tea"}}, hits)
		sum, err := client.Call[int](ctx, c, "add", AddInput{2, 3})
		require.NoError(t, err)
		require.Equal(t, 5, sum)
		line, err := client.Call[string](ctx, c, "tagline", nil)
		require.NoError(t, err)
		require.Equal(t, "Everything must go.", line)

		_, err = client.Call[[]Hit](ctx, c, "search", SearchInput{})
		var toolErr *client.ToolError
		require.ErrorAs(t, err, &toolErr)
		require.EqualError(t, err, `tool "search": the query is empty`)

		var names []string
		for tool, err := range c.Tools(ctx) {
			require.NoError(t, err)
			names = append(names, tool.Name)
		}
		require.Equal(t, []string{"add", "ask", "change", "count", "order", "region", "search", "tagline", "wait"}, names)

		r, err := c.ReadResource(ctx, "shop://article/7")
		require.NoError(t, err)
		require.Equal(t, "article 7", *r.Contents[0].Text)
		p, err := c.GetPrompt(ctx, "advise", map[string]string{"taste": "tea"})
		require.NoError(t, err)
		require.Equal(t, "What goes with tea?", p.Messages[0].Content.(*protocol.TextContent).Text)
		for p, err := range c.Prompts(ctx) {
			require.NoError(t, err)
			require.Equal(t, "advise", p.Name)
		}
		for r, err := range c.Resources(ctx) {
			require.NoError(t, err)
			require.Equal(t, "shop://hours", r.URI)
		}
		for r, err := range c.Templates(ctx) {
			require.NoError(t, err)
			require.Equal(t, "shop://article/{id}", r.URITemplate)
		}
		got, err := c.Complete(ctx, protocol.CompletionRef{Type: protocol.RefPrompt, Name: "advise"}, "taste", "x", map[string]string{"a": "b"})
		require.NoError(t, err)
		require.Equal(t, []string{"x1", "x2"}, got.Values)
	})
}
