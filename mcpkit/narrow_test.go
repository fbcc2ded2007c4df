package mcpkit_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

func TestVersionsRestrictWhatIsServed(t *testing.T) {
	const (
		discover = `"server/discover","params":{` + modernMeta + `}`
		list     = `"tools/list","params":{}`
		begin    = `"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`
		refused  = `"code":-32022,"message":"unsupported protocol version \"%s\"","data":{"supported":[%s],"requested":"%[1]s"}`
	)
	old := []protocol.Version{protocol.V20250618, protocol.V20250326}
	for _, test := range []struct {
		served          []protocol.Version
		header, request string
		status          int
		want            string
	}{
		{[]protocol.Version{protocol.V20251125, protocol.V20260728}, "2026-07-28", discover, 0,
			`"supportedVersions":["2026-07-28","2025-11-25"]`},
		{old, "2026-07-28", discover, 400, fmt.Sprintf(refused, "2026-07-28", `"2025-06-18","2025-03-26"`)},
		{old, "", begin, 0, `"protocolVersion":"2025-06-18"`},
		{[]protocol.Version{protocol.V20260728}, "", begin, 400, fmt.Sprintf(refused, "2024-11-05", `"2026-07-28"`)},
		{[]protocol.Version{protocol.V20260728}, "", list, 400, `"code":-32602`},
		{old, "2025-03-26", list, 0, `"tools":[`},
		{old, "2025-11-25", list, 400, fmt.Sprintf(refused, "2025-11-25", `"2025-06-18","2025-03-26"`)},
		{[]protocol.Version{protocol.V20241105}, "", list, 0, `"tools":[`},
		{old[:1], "", list, 400, `"code":-32020,"message":"the header MCP-Protocol-Version is missing"`},
	} {
		p := modern(t, newServer(t, &Library{}, mcpkit.Versions(test.served...)))
		p.header = transport.Header{"Mcp-Method": {"server/discover"}, "Mcp-Protocol-Version": {test.header}}
		message := `{"jsonrpc":"2.0","id":1,"method":` + test.request + `}`
		require.Contains(t, p.raw(t.Context(), message), test.want)
		require.Equal(t, test.status, p.rpc(t.Context(), message).HTTPStatus, test)
	}
	for _, vs := range [][]protocol.Version{nil, {"2025-01-01"}} {
		_, err := mcpkit.New(&Library{}, mcpkit.Versions(vs...))
		require.ErrorContains(t, err, fmt.Sprintf("mcpkit: Versions(%q): write at least one of", vs))
	}
}

func TestASessionOfAVersionThatIsNoLongerServedIsNotRestored(t *testing.T) {
	p := legacy(t, newServer(t, &Library{}), protocol.V20250618)
	agreed, changes := p.srv.StoreSession(p.session)
	newer := newServer(t, &Library{}, mcpkit.Versions(protocol.V20251125))
	require.EqualError(t, newer.RestoreSession(t.Context(), transport.NewSession("s", p), agreed, changes), "version 2025-06-18 is not served")
}

func TestAFixedServerHasNoSubscriptionsAndTellsOfNoChanges(t *testing.T) {
	srv := newServer(t, &Library{}, mcpkit.Fixed())
	capabilities := member(t, modern(t, srv).result("server/discover", "{}"), "capabilities")
	require.JSONEq(t, `{"tools":{},"prompts":{},"resources":{},"logging":{}}`, capabilities)
	require.Contains(t, acknowledged(t, srv, `{"toolsListChanged":true,"resourceSubscriptions":["library://rules"]}`), `"params":{"notifications":{},`)
	p := legacy(t, srv, protocol.V20251125)
	require.Equal(t, jsonrpc.CodeMethodNotFound, p.fails("resources/subscribe", `{"uri":"library://rules"}`).Code)
	require.NoError(t, srv.Add(mcpkit.NewTool("new", func() string { return "" })))
	require.Empty(t, p.take())
}

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
