package mcpkit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

func TestOfferAllDeclaresWhatTheServerDoesNotHaveYet(t *testing.T) {
	for _, v := range []protocol.Version{protocol.V20241105, protocol.V20251125, protocol.V20260728} {
		dial := func(opts ...mcpkit.Option) *client.Client {
			c, err := client.Dial(t.Context(), mcpkit.MustNew(nil, opts...), client.Version(v))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, c.Close()) })
			return c
		}
		c := dial()
		require.Equal(t, protocol.ServerCapabilities{}, c.Capabilities())
		require.ErrorContains(t, c.Request(t.Context(), protocol.MethodToolsList, nil, nil), "not offered")

		c = dial(mcpkit.OfferAll())
		caps := c.Capabilities()
		require.True(t, caps.Tools.ListChanged)
		require.True(t, caps.Prompts.ListChanged)
		require.True(t, caps.Resources.ListChanged)
		require.NotNil(t, caps.Logging)
		require.Equal(t, v >= protocol.V20250326, caps.Completions != nil)
		for method, list := range map[string]string{
			protocol.MethodToolsList: "tools", protocol.MethodPromptsList: "prompts",
			protocol.MethodResourcesList: "resources", protocol.MethodResourcesTemplatesList: "resourceTemplates",
		} {
			var got map[string]any
			require.NoError(t, c.Request(t.Context(), method, nil, &got))
			require.Equal(t, []any{}, got[list], method)
		}
	}
}
