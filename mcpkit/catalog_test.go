package mcpkit_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
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

// A board has what Describe changes.
type board struct {
	_ struct {
		Post   mcpkit.Tool     `title:"Post" scopes:"write" cache:"1h" hints:"readonly"`
		Ask    mcpkit.Prompt   `params:"topic,style?"`
		Notice mcpkit.Resource `uri:"board://notice" audience:"user"`
	}
}

type postInput struct {
	Org   int      `json:"org" desc:"Which organisation." header:"Org"`
	Text  string   `json:"text" validate:"min=2" desc:"What to post."`
	Level string   `json:"level" default:"low"`
	Tags  []string `json:"tags,omitempty"`
}

func (*board) Post(call *mcpkit.Call, in postInput) (string, error) {
	all, err := json.Marshal(in)
	return string(all) + string(call.Added("context")), err
}
func (*board) Ask(topic, style string) string { return topic + "/" + style }
func (*board) Notice() string                 { return "notice" }

// retell describes the board anew.
func retell(d *mcpkit.Def) {
	switch d.Entry.Name() {
	case "post", "x_post":
		d.Name, d.Title, d.Description, d.Aliases = d.Name+"_it", "", "Pins <a> note.", append(d.Aliases, "pin")
		d.Icons = []protocol.Icon{{Src: "https://example.com/i.png", MIMEType: "image/png", Theme: "dark"}}
		d.Annotations.DestructiveHint = new(false)
		d.Meta = protocol.Meta{"example.com/team": json.RawMessage(`"pins"`)}
		d.Arg("org").Hidden = true
		d.Arg("org").Value = func(_ context.Context, call *mcpkit.Call) (any, error) { return len(call.Principal().Subject), nil }
		d.Arg("text").Description, d.Arg("text").Default = "The note.", json.RawMessage(`"hello"`)
		d.Arg("tags").Hidden = true
		d.Add("context", `{"type":"string","description":"Which cluster."}`)
	case "ask", "x_ask":
		d.Arg("style").Hidden = true
		d.Arg("style").Value = func(context.Context, *mcpkit.Call) (any, error) { return "short", nil }
		d.Arg("topic").Description = "About what."
	case "board://notice":
		d.Description, d.Hidden, d.Annotations.Priority = "What is new.", true, new(0.5)
	}
}

func TestTheTitleIsWhereOldClientsReadIt(t *testing.T) {
	retitle := mcpkit.Describe(func(d *mcpkit.Def) { d.Title = "New" })
	for _, want := range []struct {
		v    protocol.Version
		text string
	}{{protocol.V20250326, `"annotations":{"title":"New"}`}, {protocol.V20250618, `"title":"New"`}} {
		srv := newServer(t, nil, retitle, mcpkit.Items(mcpkit.NewTool("x", func() {}).Title("Old")))
		list := legacy(t, srv, want.v).result("tools/list", "{}")
		require.Contains(t, list, want.text)
		require.NotContains(t, list, "Old")
	}
	_, err := mcpkit.New(nil, mcpkit.Lenient("all"))
	require.EqualError(t, err, `mcpkit: Lenient(["all"]): write some of ["unknown" "null" "scalars" "lists" "json"]`)
}

func TestDescribeChangesWhatIsSaidAndNotWhatIsDone(t *testing.T) {
	build := map[string]func() *mcpkit.Server{
		"": func() *mcpkit.Server {
			return newServer(t, &board{}, mcpkit.Describe(retell), rawSchemas, mcpkit.Authenticated())
		},
		"x_": func() *mcpkit.Server {
			srv := newServer(t, nil, mcpkit.Describe(retell), rawSchemas, mcpkit.Authenticated())
			srv.MustMount("x", newServer(t, &board{}, mcpkit.Authenticated()))
			return srv
		},
	}
	for prefix, make := range build {
		srv := make()
		var seen string
		srv.Use(before(func(call *mcpkit.Call) { seen = string(call.Arguments()) }))
		for version, p := range versionPeers(t, srv) {
			ctx := as(p, "write")
			send := func(method, params string) string { return string(p.rpc(ctx, p.request(method, params)).Result) }
			list := send("tools/list", "{}")
			require.JSONEq(t, `[{"name":"`+prefix+`post_it","description":"Pins <a> note.","icons":[{"src":"https://example.com/i.png","mimeType":"image/png","theme":"dark"}],
				"annotations":{"readOnlyHint":true,"destructiveHint":false},"_meta":{"example.com/team":"pins"},"inputSchema":{"type":"object","additionalProperties":false,"properties":{
				"text":{"type":"string","minLength":2,"description":"The note.","default":"hello"},"level":{"type":"string","default":"low"},
				"context":{"type":"string","description":"Which cluster."}}}}]`, member(t, list, "tools"), version)
			require.Contains(t, send("prompts/list", "{}"), `"arguments":[{"name":"topic","required":true,"description":"About what."}]`)
			require.NotContains(t, send("resources/list", "{}"), "board://notice")
			require.Contains(t, send("resources/read", `{"uri":"board://notice"}`), `"notice"`)

			call := func(args string) string {
				return send("tools/call", `{"name":"`+prefix+`post_it","arguments":`+args+`}`)
			}
			require.Contains(t, call(`{"org":9,"tags":["a"],"context":"eu"}`), `{\"org\":3,\"text\":\"hello\",\"level\":\"low\"}\"eu\"`)
			require.Equal(t, `{"org":9,"tags":["a"],"context":"eu"}`, seen)
			require.Contains(t, call(`{"org":9,"tags":["a"],"context":"us"}`), `\"us\"`, "the cache tells them apart")
			require.Contains(t, call(`{"text":"x","context":7}`), `/context: got 7, want`)
			require.Contains(t, call(`{"text":"x"}`), `/text`)
			ctx = as(p, "write")
			require.Contains(t, send("prompts/get", `{"name":"`+prefix+`ask","arguments":{"topic":"a","style":"long"}}`), `a/short`)
			require.Contains(t, send("tools/call", `{"name":"pin","arguments":{}}`), `hello`)
		}
	}
}

func TestRefreshDescribesAgain(t *testing.T) {
	word, hidden, inner := "one", false, newServer(t, nil)
	srv := newServer(t, nil, mcpkit.Describe(func(d *mcpkit.Def) {
		d.Hidden = hidden
		if d.Description = word; word == "wrong" {
			d.Arg("nme").Hidden = true
		}
	}))
	named := func(name string) mcpkit.Item {
		return mcpkit.NewTool(name, func(in struct {
			Name string `json:"name"`
		}) string {
			return in.Name
		})
	}
	require.NoError(t, srv.Add(named("own")))
	require.NoError(t, inner.Add(named("far")))
	srv.MustMount("", inner)
	p := legacy(t, srv, protocol.V20251125)
	p.take()
	word = "two"
	require.NoError(t, srv.Refresh())
	require.Equal(t, []string{`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}`}, p.take())
	require.Regexp(t, `two.*two`, p.result("tools/list", "{}"))
	hidden = true
	require.NoError(t, srv.Refresh())
	require.Len(t, p.take(), 1, "the lists are shorter")
	hidden = false
	require.NoError(t, srv.Refresh())
	p.take()
	word = "wrong"
	require.ErrorContains(t, srv.Refresh(), `Describe: there is no argument "nme"; did you mean "name"?`)
	require.Regexp(t, `two.*two`, p.result("tools/list", "{}"))
	require.NoError(t, inner.Add(named("more")))
	require.Equal(t, []string{"far", "own"}, names(t, p, "tools/list", "tools", "name"), "what is not described is left out")
}

// A lodger has arguments that are hidden.
type lodger struct {
	_ struct {
		Open mcpkit.Tool
		Ask  mcpkit.Prompt   `params:"org,topic" complete:"org=Orgs topic=Topics"`
		Page mcpkit.Resource `uri:"lodger://page" cache:"1h,public"`
	}
}

func (*lodger) Open(in struct {
	Org  string `json:"org" validate:"min=2"`
	Key  string `json:"key" secret:"true"`
	Text string `json:"text,omitempty"`
}) string {
	return in.Org + in.Key
}
func (*lodger) Ask(org, topic string) string                   { return org + "/" + topic }
func (*lodger) Page() string                                   { return "page" }
func (*lodger) Orgs(context.Context, string) ([]string, error) { return []string{"acme"}, nil }
func (*lodger) Topics(_ context.Context, _ string, others map[string]string) ([]string, error) {
	return []string{"topic of " + others["org"]}, nil
}

func TestClientsNeitherSetNorSeeHiddenArguments(t *testing.T) {
	org := "mine"
	hide := func(name string) mcpkit.Option {
		return mcpkit.Describe(func(d *mcpkit.Def) {
			if d.Entry.Kind() == "tool" {
				d.Add(name+"2", `{"type":"string"}`)
			}
			for _, a := range d.Args {
				if a.Name == name || a.Name == "org2" {
					a.Hidden, a.Value = true, func(context.Context, *mcpkit.Call) (any, error) { return org, nil }
				}
			}
		})
	}
	srv := newServer(t, nil, rawSchemas, hide("org"))
	inner := newServer(t, &lodger{}, rawSchemas, hide("key"))
	srv.MustMount("", inner)
	var after, added string
	inner.Use(func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			_, _ = next(ctx, call)
			result, err := next(ctx, call) // again, with the same arguments
			after, added = string(call.RedactedArguments()), string(call.Added("org2"))+string(call.Added("key2"))
			return result, err
		}
	})
	p := modern(t, srv)
	send := func(method, params string) string {
		return string(jsonrpc.AppendResponse(nil, p.rpc(as(p), p.request(method, params))))
	}
	open := func(args string) string { return send("tools/call", `{"name":"open","arguments":`+args+`}`) }
	require.Contains(t, open(`{"\u006frg":"evil","key":"evil","org2":"evil","key2":"own"}`), `"minemine"`)
	require.JSONEq(t, `{"org":"mine","key":"[redacted]"}`, after, "what is hidden by the inner server is secret in the outer one, too")
	require.Equal(t, `"mine""own"`, added)
	require.Contains(t, open(`{"ORG":"evil"}`), `/ORG: unknown"`, "no hint")
	require.Contains(t, send("prompts/get", `{"name":"ask","arguments":{"orh":"x","topic":"t"}}`), `has no argument \"orh\""`)

	complete := func(argument string) string {
		return send("completion/complete", `{"ref":{"type":"ref/prompt","name":"ask"},"argument":{"name":"`+argument+`","value":""},"context":{"arguments":{"org":"evil"}}}`)
	}
	require.Contains(t, complete("org"), `"values":[]`)
	require.Contains(t, complete("topic"), `"topic of mine"`)
	org = "x"
	require.Contains(t, open(`{}`), `internal error`, "what the server sets is its own fault")
}

func TestAPanicOfDescribeIsAFault(t *testing.T) {
	broken := false
	srv := newServer(t, &lodger{}, mcpkit.Describe(func(*mcpkit.Def) {
		if broken {
			panic("broken")
		}
	}))
	broken = true
	require.ErrorContains(t, srv.Refresh(), ": panic: broken")
	broken = false
	require.NoError(t, srv.Refresh(), "no lock is held")
}
