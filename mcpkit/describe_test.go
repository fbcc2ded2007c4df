package mcpkit_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

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
