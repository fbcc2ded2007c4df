// Package migrate compares servers that were written with go-sdk and with mcp-go, with the same server
// written with mcpkit. docs/howto/migrate.md leads to them.
package migrate

import (
	"net/http"
	"net/http/httptest"
	"testing"

	mcpgoserver "github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/interop/migrate/after"
	"github.com/mcpkit/mcpkit-go/internal/interop/migrate/gosdk"
	"github.com/mcpkit/mcpkit-go/internal/interop/migrate/mcpgo"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

func serveHTTP(t *testing.T, h http.Handler) string {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// The clients of a server notice nothing when it moves to mcpkit.
func TestServersAnswerAlikeBeforeAndAfter(t *testing.T) {
	for name, target := range map[string]func(t *testing.T) any{
		"go-sdk": func(t *testing.T) any {
			return serveHTTP(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return gosdk.NewServer() }, nil))
		},
		"mcp-go": func(t *testing.T) any { return serveHTTP(t, mcpgoserver.NewStreamableHTTPServer(mcpgo.NewServer())) },
		"mcpkit": func(t *testing.T) any { return mcpkit.MustNew(&after.Weather{}) },
	} {
		t.Run(name, func(t *testing.T) {
			c, err := client.Dial(t.Context(), target(t), client.Version("2025-11-25"))
			require.NoError(t, err)
			defer c.Close()
			for tool, err := range c.Tools(t.Context()) {
				require.NoError(t, err)
				require.Equal(t, "forecast", tool.Name)
				require.Equal(t, "Forecasts the weather of a city.", tool.Description)
				require.True(t, *tool.Annotations.ReadOnlyHint)
			}
			got, err := client.Call[after.Forecast](t.Context(), c, "forecast", map[string]any{"city": "Oslo"})
			require.NoError(t, err)
			require.Equal(t, after.Forecast{City: "Oslo", Days: []string{"sunny", "sunny", "sunny"}}, got)
			_, err = c.CallTool(t.Context(), "forecast", map[string]any{"city": "Oslo", "days": 8})
			require.Error(t, err)
		})
	}
}
