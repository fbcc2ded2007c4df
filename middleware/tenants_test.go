package middleware_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

// docs:begin tenants

// Tenants lets only some tenants call tools.
func Tenants(allowed func(tenant string) bool) mcpkit.Middleware {
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			if call.Method() == protocol.MethodToolsCall && !allowed(call.Header("X-Tenant")) {
				return nil, mcpkit.Errorf("this tenant may call no tools")
			}
			return next(ctx, call)
		}
	}
}

// docs:end tenants

func TestTenants(t *testing.T) {
	srv := newServer(t, mcpkit.NewTool("x", ok), mcpkit.NewPrompt("p", ok))
	srv.Use(Tenants(func(tenant string) bool { return tenant == "acme" }))
	require.NoError(t, srv.Add(mcpkit.NewTool("late", ok)))
	for family, p := range families(t, srv) {
		header := func(tenant string) transport.Header {
			return transport.Header{"X-Tenant": {tenant}, "Mcp-Protocol-Version": {string(protocol.V20260728)}, "Mcp-Method": {"tools/call"}}
		}
		for _, tool := range []string{"x", "late"} {
			p.header = header("acme")
			p.header["Mcp-Name"] = []string{tool}
			require.Equal(t, "ok", p.toolText(t.Context(), tool), family)
			p.header["X-Tenant"] = []string{"other"}
			require.Equal(t, "this tenant may call no tools", p.toolText(t.Context(), tool), family)
		}
		p.header = nil
		require.Nil(t, p.call(t.Context(), "prompts/get", `{"name":"p"}`).Error, "%s: prompts are for all", family)
	}
}
