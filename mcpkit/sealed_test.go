package mcpkit_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

func TestSealedSessionsKeepWhatInitializeAgreedOn(t *testing.T) {
	declared := func(opts ...mcpkit.Option) (srv *mcpkit.Server, seen func(*peer) string) {
		srv = newServer(t, nil, opts...)
		require.NoError(t, srv.Add(mcpkit.NewTool("show", func(call *mcpkit.Call) (string, error) {
			text, err := json.Marshal([]any{call.Version(), call.ClientInfo(), call.ClientCapabilities()})
			return string(text), err
		})))
		return srv, func(p *peer) string {
			var r protocol.CallToolResult
			require.NoError(t, json.Unmarshal([]byte(p.result("tools/call", `{"name":"show"}`)), &r))
			return r.Content[0].(*protocol.TextContent).Text
		}
	}
	for capabilities, kept := range map[string]string{
		`{}`: `{}`,
		`{"roots":{},"sampling":{},"elicitation":{}}`:                          `{"roots":{},"sampling":{},"elicitation":{}}`,
		`{"roots":{"listChanged":false},"elicitation":{"form":{}}}`:            `{"roots":{},"elicitation":{"form":{}}}`,
		`{"roots":{"listChanged":true},"sampling":{"tools":{},"context":{}}}`:  `{"roots":{"listChanged":true},"sampling":{"context":{},"tools":{}}}`,
		`{"elicitation":{"url":{}},"extensions":{"a.b/c":{"x":1},"d.e/f":{}}}`: `{"elicitation":{"url":{}},"extensions":{"a.b/c":{}}}`,
	} {
		srv, seen := declared(mcpkit.Extend(mcpkit.Extension{ID: "a.b/c"}))
		name := "x" + strings.Repeat("ä", 40) // the 64 bytes that are kept end within a character
		first := &peer{t: t, srv: srv}
		first.session = transport.NewSession("first", first)
		first.raw(t.Context(), `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":`+capabilities+
			`,"clientInfo":{"name":"`+name+`","version":"1"}}}`)
		agreed, changes := srv.StoreSession(first.session)
		require.Nil(t, changes)
		require.LessOrEqual(t, len(agreed), 148)

		second := &peer{t: t, srv: srv}
		second.session = transport.NewSession("second", second)
		require.NoError(t, srv.RestoreSession(t.Context(), second.session, agreed, nil))
		want := `["2025-11-25",{"name":"x` + strings.Repeat("ä", 31) + `","version":"1"},` + kept + `]`
		require.JSONEq(t, want, seen(second), capabilities)
	}
}
