package mcpkit_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// upstream answers with the name in the definition.
var upstream = &mcpkit.Upstream{Site: "elsewhere", Call: func(_ context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
	return &protocol.CallToolResult{Content: []protocol.Content{&protocol.TextContent{Text: call.OwnName()}}}, nil
}, Subscribe: func(_ context.Context, uri string) error {
	if uri == "x://refused" {
		return mcpkit.Errorf("not watched")
	}
	return nil
}}

// definedTools returns tools of another server.
func definedTools(t *testing.T, names ...string) (items []mcpkit.Item) {
	t.Helper()
	for _, name := range names {
		it, err := upstream.Item("tools/list", json.RawMessage(`{"name":"`+name+`","inputSchema":{"type":"object"},"x-kept":[1]}`))
		require.NoError(t, err)
		items = append(items, it)
	}
	return items
}

func TestDefinitionsOfAnotherServerAreReplacedAsAWhole(t *testing.T) {
	srv := newServer(t, nil)
	set := srv.NewItemSet()
	require.NoError(t, srv.NewItemSet().Replace(mcpkit.NewTool("own", func() {})))
	require.NoError(t, set.Replace(definedTools(t, "a", "b")...))
	require.Equal(t, []string{"a", "b", "own"}, names(t, modern(t, srv), "tools/list", "tools", "name"))
	require.Contains(t, modern(t, srv).result("tools/list", "{}"), `"x-kept":[1]`)

	p := legacy(t, srv, protocol.V20251125)
	p.take()
	require.NoError(t, set.Replace(definedTools(t, "b", "a")...))
	require.Empty(t, p.take(), "nothing changed, so nobody is told")
	err := set.Replace(definedTools(t, "c", "own")...)
	require.ErrorContains(t, err, `tool "own" is registered twice, by mcpkit: tool "own" (upstream_test.go:`)
	require.ErrorContains(t, err, `and elsewhere (own)`)
	require.Equal(t, []string{"a", "b", "own"}, names(t, p, "tools/list", "tools", "name"), "a refused change changes nothing")
	require.NoError(t, set.Replace(definedTools(t, "c")...))
	require.Equal(t, []string{`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}`}, p.take())

	top := newServer(t, nil)
	top.MustMount("far", srv)
	require.Contains(t, modern(t, top).result("tools/call", `{"name":"far_c"}`), `"text":"c"`)
	require.NotContains(t, legacy(t, top, protocol.V20241105).result("tools/list", `{}`), "annotations", "the other server has none")
	top = newServer(t, nil, mcpkit.Describe(func(d *mcpkit.Def) { d.Name = "other" }))
	require.NoError(t, top.Add(definedTools(t, "c")...))
	require.Contains(t, modern(t, top).result("tools/call", `{"name":"other"}`), `"text":"c"`)
}

func TestDefinitionsThatAreNotValidAreRefused(t *testing.T) {
	for name, test := range map[string]struct{ list, definition, want string }{
		"a name with a blank":          {"tools/list", `{"name":"no name","inputSchema":{}}`, `elsewhere: "no name": name "no name" contains ' '; blanks and control characters are not allowed`},
		"a prompt without a name":      {"prompts/list", `{}`, `elsewhere: "": name "" has 0 characters; 1 to 128 are allowed`},
		"a relative URI":               {"resources/list", `{"uri":"x"}`, `elsewhere: "x": "x" is not an absolute URI; write for example "note://{id}"`},
		"a template without variables": {"resources/templates/list", `{"uriTemplate":"x://y"}`, `elsewhere: "x://y": the template has no variables`},
		"a list without definitions":   {"ping", `{}`, `elsewhere: "ping" lists no definitions`},
	} {
		_, err := upstream.Item(test.list, json.RawMessage(test.definition))
		require.EqualError(t, err, test.want, name)
	}
}

func TestASubscriptionThatIsNotServedIsAnError(t *testing.T) {
	inner := newServer(t, nil)
	var items []mcpkit.Item
	for _, uri := range []string{"x://refused", "x://watched"} {
		it, err := upstream.Item("resources/list", json.RawMessage(`{"uri":"`+uri+`","name":"x"}`))
		require.NoError(t, err)
		items = append(items, it)
	}
	require.NoError(t, inner.Add(items...))
	srv := newServer(t, nil)
	srv.MustMount("far", inner)
	p := legacy(t, srv, protocol.V20251125)
	require.EqualError(t, p.fails("resources/subscribe", `{"uri":"x://refused"}`), "not watched (code -32603)")
	p.result("resources/subscribe", `{"uri":"x://watched"}`)
	require.True(t, inner.Subscribed("x://watched"))
	require.False(t, inner.Subscribed("x://refused"))

	require.Contains(t, acknowledged(t, srv, `{"resourceSubscriptions":["x://refused","x://watched"]}`), `"resourceSubscriptions":["x://watched"]`, "the rest is not agreed to")
}

func TestSubscriptionsAreWatchedWhereTheirSessionIsRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watched := make(chan string, 2)
		u := &mcpkit.Upstream{Subscribe: func(_ context.Context, uri string) error { watched <- uri; return nil }}
		it, err := u.Item("resources/list", json.RawMessage(`{"uri":"x://y","name":"x"}`))
		require.NoError(t, err)
		replica := func() *mcpkit.Server {
			srv, inner := newServer(t, nil), newServer(t, nil)
			require.NoError(t, inner.Add(it))
			srv.MustMount("far", inner)
			return srv
		}
		one, other := replica(), replica()
		p := legacy(t, one, protocol.V20251125)
		p.result("resources/subscribe", `{"uri":"x://y"}`)
		require.Equal(t, "x://y", <-watched)
		agreed, changes := one.StoreSession(p.session)
		ts := transport.NewSession("", nil)
		require.NoError(t, other.RestoreSession(t.Context(), ts, agreed, changes))
		require.Equal(t, "x://y", <-watched)
		synctest.Wait()
		require.True(t, other.Subscribed("x://y"))
		require.Empty(t, watched)
	})
}

func TestMiddlewareOfAMountGuardsWhatIsRemote(t *testing.T) {
	reached := func(context.Context, *mcpkit.Call) (mcpkit.Result, error) { panic("reached") }
	u := &mcpkit.Upstream{Call: reached, Complete: reached, Subscribe: func(context.Context, string) error { panic("reached") }}
	var items []mcpkit.Item
	for list, definition := range map[string]string{
		"tools/list": `{"name":"t","inputSchema":{"type":"object"}}`, "prompts/list": `{"name":"p"}`, "resources/list": `{"uri":"x://y","name":"r"}`,
	} {
		it, err := u.Item(list, json.RawMessage(definition))
		require.NoError(t, err)
		items = append(items, it)
	}
	srv, inner := newServer(t, nil), newServer(t, nil)
	require.NoError(t, inner.Add(items...))
	srv.MustMount("far", inner, mcpkit.Around(func(mcpkit.Handler) mcpkit.Handler {
		return func(context.Context, *mcpkit.Call) (mcpkit.Result, error) {
			return nil, &jsonrpc.Error{Code: 4711, Message: "guarded"}
		}
	}))
	for method, params := range map[string]string{
		"tools/call": `{"name":"far_t"}`, "prompts/get": `{"name":"far_p"}`, "resources/read": `{"uri":"x://y"}`, "resources/subscribe": `{"uri":"x://y"}`,
		"completion/complete": `{"ref":{"type":"ref/prompt","name":"far_p"},"argument":{"name":"a","value":""}}`,
	} {
		require.EqualError(t, legacy(t, srv, protocol.V20251125).fails(method, params), "guarded (code 4711)", method)
	}
}
