package mcpkit_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A forge has two toolsets, an earlier name, and two variants of a tool.
type forge struct {
	_ mcpkit.Info `toolset:"issues"`
	_ struct {
		Close  mcpkit.Tool   `alias:"shut,end" hints:"destructive"`
		Old    mcpkit.Tool   `name:"find" variant:"old"`
		New    mcpkit.Tool   `name:"find" variant:"new" toolset:"search, issues"`
		Triage mcpkit.Prompt `alias:"sort" scopes:"read | all, triage"`
	}
}

func (*forge) Close(*mcpkit.Call) string       { return "closed" }
func (*forge) Old() string                     { return "old" }
func (*forge) New(*mcpkit.Call) string         { return "new" }
func (*forge) Triage(call *mcpkit.Call) string { return call.Target() + " as " + call.Name() }

// byHeader shows the old variants unless a header asks for the new ones, or both.
func byHeader(_ context.Context, call *mcpkit.Call) (func(mcpkit.Entry) bool, string) {
	want := call.Header("X-Variant")
	return func(e mcpkit.Entry) bool {
		return e.Name() != "find" || want == "both" || (want == "new") == slices.Contains(e.Toolsets(), "search")
	}, want + "."
}

func TestNamesOfATool(t *testing.T) {
	inner := newServer(t, &forge{}, mcpkit.Visible(byHeader), mcpkit.Authenticated())
	outer := newServer(t, nil, mcpkit.Authenticated())
	outer.MustMount("x", inner)
	for prefix, srv := range map[string]*mcpkit.Server{"": inner, "x_": outer} {
		p := legacy(t, srv, protocol.V20251125)
		call := func(name string) string { return p.result("tools/call", `{"name":"`+prefix+name+`"}`) }
		p.header = map[string][]string{}
		require.Equal(t, []string{prefix + "close", prefix + "find"}, names(t, p, "tools/list", "tools", "name"))
		require.Contains(t, call("shut")+call("end"), `"closed"`)
		require.Contains(t, call("find"), `"old"`)
		p.header["X-Variant"] = []string{"new"}
		require.Contains(t, call("find"), `"new"`)
		require.Equal(t, []string{prefix + "close", prefix + "find"}, names(t, p, "tools/list", "tools", "name"))
		p.header["X-Variant"] = []string{"both"}
		require.Contains(t, call("find"), `internal error`)
		get := p.request("prompts/get", `{"name":"`+prefix+`sort"}`)
		require.NotNil(t, p.rpc(as(p, "all"), get).Error)
		require.Contains(t, string(p.rpc(as(p, "all", "triage"), get).Result), prefix+`triage as `+prefix+`sort`)
	}
}

func TestNamesThatContradictEachOther(t *testing.T) {
	tool := func(name, tag, value string) mcpkit.Item { return mcpkit.NewTool(name, func() {}).Tag(tag, value) }
	for want, items := range map[string][]mcpkit.Item{
		`tool "a" is registered twice`:                           {tool("a", "variant", "1"), tool("a", "variant", "2")},
		`the alias "a" is a name of mcpkit: tool "a" (catalog_t`: {tool("a", "hidden", "true"), tool("b", "alias", "a")},
		`name "b\tc" contains '\t'`:                              {tool("a", "alias", "b\tc,d")},
		`the alias "c" is a name of mcpkit: tool "a" (catalog_t`: {tool("a", "alias", "c"), tool("b", "alias", "c")},
	} {
		require.ErrorContains(t, newServer(t, nil).Add(items...), want)
	}
}

func TestMiddlewareReadsAndNarrowsLists(t *testing.T) {
	srv := newServer(t, &forge{}, mcpkit.Visible(byHeader), mcpkit.Authenticated(), mcpkit.PageSize(1))
	var seen []string
	srv.Use(func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			r, err := next(ctx, call)
			if l, ok := r.(*mcpkit.List); ok {
				for _, e := range l.Items() {
					seen = append(seen, e.Name())
				}
				return l.Keep(func(e mcpkit.Entry) bool { return e.Hints() == nil }), err
			}
			return r, err
		}
	})
	p := modern(t, srv)
	require.Equal(t, []string{"find"}, names(t, p, "tools/list", "tools", "name"))
	require.Equal(t, []string{"close"}, seen, "a page has one item")
	require.Contains(t, p.result("tools/list", `{}`), `"cacheScope":"private"`)
	require.Contains(t, p.result("tools/call", `{"name":"close"}`), `"closed"`)
}

func TestStepUpPrefersTheVariantOfTheCaller(t *testing.T) {
	srv := newServer(t, nil, mcpkit.Authenticated(), mcpkit.StepUp())
	for _, scope := range []string{"a", "b"} {
		require.NoError(t, srv.Add(mcpkit.NewTool("x", func() string { return "of " + scope }).Desc("The "+scope).Tag("variant", scope).Scopes(scope),
			mcpkit.NewPrompt("y", func(style string) string { return style }).Params("style").Rules("style:oneof=of-"+scope).Tag("variant", scope).Scopes(scope)))
	}
	p := modern(t, srv)
	for _, scope := range []string{"a", "b"} {
		require.Contains(t, string(p.rpc(as(p, scope), p.request("tools/list", "{}")).Result), "The "+scope)
		require.Contains(t, string(p.rpc(as(p, scope), p.request("tools/call", `{"name":"x"}`)).Result), "of "+scope)
		complete := p.request("completion/complete", `{"ref":{"type":"ref/prompt","name":"y"},"argument":{"name":"style","value":""}}`)
		require.Contains(t, string(p.rpc(as(p, scope), complete).Result), "of-"+scope)
	}
	require.Equal(t, mcpkit.CodeForbidden, p.rpc(as(p), p.request("tools/call", `{"name":"x"}`)).Error.Code)
}

func TestMessagesOutsideOfCallsGoToSessionsThatWantThem(t *testing.T) {
	srv := newServer(t, nil, mcpkit.Items(mcpkit.NewTool("log", func(*mcpkit.Call) {})))
	p := legacy(t, srv, protocol.V20251125)
	require.Contains(t, p.result("tools/list", "{}"), `"log"`)
	require.ErrorContains(t, newServer(t, nil).SendLog(&protocol.LoggingMessageParams{}, nil), "has not declared log messages")
	p.result("logging/setLevel", `{"level":"error"}`)
	p.take()
	send := func(level protocol.LoggingLevel, wanted bool) {
		message := &protocol.LoggingMessageParams{Level: level, Data: []byte(`"disk full"`)}
		require.NoError(t, srv.SendLog(message, func(p *oauth.Principal) bool { return wanted }))
	}
	send(protocol.LevelWarning, true)
	send(protocol.LevelError, false)
	require.Empty(t, p.take())
	send(protocol.LevelError, true)
	require.Equal(t, []string{`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"disk full"}}`}, p.take())
}
