package echomcp_test

import (
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/echomcp"
)

func TestMountPanicsIfTheServerIsNil(t *testing.T) {
	const rest = ": the server is nil; make one with mcpkit.New, and look at its error"
	var none *mcpkit.Server
	e := echo.New()
	require.PanicsWithValue(t, "echomcp: Mount"+rest, func() { echomcp.Mount(e, "/mcp", none) })
	require.PanicsWithValue(t, "echomcp: Mount"+rest, func() { echomcp.Mount(e, "/mcp", nil) })
	require.PanicsWithValue(t, "echomcp: MountSSE"+rest, func() { echomcp.MountSSE(e, "/sse", none) })
	require.PanicsWithValue(t, "echomcp: MountWebSocket"+rest, func() { echomcp.MountWebSocket(e, "/ws", none) })
}
