package mcpkit_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// tracing appends its name to trace for each call.
func tracing(trace *[]string, name string) mcpkit.Middleware {
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			*trace = append(*trace, name)
			return next(ctx, call)
		}
	}
}

func TestAroundIsInsideOfUseAndAroundItsServiceAlone(t *testing.T) {
	var trace []string
	srv := newServer(t, &guarded{}, mcpkit.Authenticated(), mcpkit.Prefix("a"), mcpkit.Around(tracing(&trace, "one"), tracing(&trace, "two")))
	srv.Use(tracing(&trace, "all"))
	require.NoError(t, srv.Add(mcpkit.NewTool("late", func() string { return "late" })))
	for _, test := range []struct {
		method, params string
		want           []string
	}{
		{"tools/call", `{"name":"a_open"}`, []string{"all", "one", "two"}},
		{"resources/read", `{"uri":"doc://one"}`, []string{"all", "one", "two"}},
		{"resources/read", `{"uri":"any://x"}`, []string{"all", "one", "two"}},
		{"prompts/get", `{"name":"a_ask","arguments":{"kind":"k"}}`, []string{"all", "one", "two"}},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"a_ask"},"argument":{"name":"kind","value":""}}`, []string{"all", "one", "two"}},
		{"resources/subscribe", `{"uri":"doc://one"}`, []string{"all", "one", "two"}},
		{"subscriptions/listen", `{"notifications":{"resourceSubscriptions":["doc://one"]}}`, []string{"all", "one", "two"}},
		{"tools/call", `{"name":"late"}`, []string{"all"}},
		{"tools/list", `{}`, []string{"all"}},
	} {
		for version, p := range versionPeers(t, srv) {
			if !offered(test.method, version) {
				continue
			}
			trace = nil
			ctx, cancel := context.WithCancel(as(p, "notes:read"))
			if test.method == "subscriptions/listen" {
				cancel() // the request would last as long as the test
			}
			resp := p.rpc(ctx, p.request(test.method, test.params))
			cancel()
			require.Nil(t, resp.Error, test.params)
			require.Equal(t, test.want, trace, test.params)
		}
	}
}

func TestUseWrapsWhatIsThereAndMakesEachHandlerOnce(t *testing.T) {
	srv := newServer(t, nil)
	var trace []string
	made := 0
	counted := func(next mcpkit.Handler) mcpkit.Handler { made++; return next }
	srv.Use(tracing(&trace, "second"), tracing(&trace, "third"), counted)
	srv.Use(tracing(&trace, "first"))
	modern(t, srv).result("server/discover", `{}`)
	require.Equal(t, []string{"first", "second", "third"}, trace)
	require.Equal(t, 1, made)
}

// Middleware that returns no handler might have been a guard, so it lets no call through.
func TestMiddlewareWithoutAHandlerRefusesCalls(t *testing.T) {
	none := func(mcpkit.Handler) mcpkit.Handler { return nil }
	child := newServer(t, nil)
	require.NoError(t, child.Add(mcpkit.NewTool("far", func() string { return "far" })))
	for where, srv := range map[string]*mcpkit.Server{"Use": newServer(t, nil), "Around": newServer(t, nil)} {
		if where == "Use" {
			srv.Use(none)
			srv.MustMount("m", child)
		} else {
			srv.MustMount("m", child, mcpkit.Around(none))
		}
		require.Contains(t, modern(t, srv).result("tools/call", `{"name":"m_far"}`), `"text":"internal error (ref `, where)
	}
}

type secretInput struct {
	User  string `json:"user"`
	Token string `json:"token,omitempty" secret:"true"`
	Deep  []struct {
		Key  string `json:"key" secret:"true"`
		Name string `json:"name"`
	} `json:"deep,omitempty"`
}

type secretLink struct {
	Key  string      `json:"key" secret:"true"`
	Next *secretLink `json:"next,omitempty"`
}

type plainInput struct {
	User string `json:"user"`
}

func TestRedactedArgumentsHaveNoSecrets(t *testing.T) {
	var got string
	srv := newServer(t, nil, rawSchemas)
	srv.Use(func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			got = string(call.RedactedArguments())
			return next(ctx, call)
		}
	})
	raw := func(context.Context, *mcpkit.Call) (any, error) { return "", nil }
	require.NoError(t, srv.Add(
		mcpkit.NewTool("secrets", func(secretInput) {}),
		mcpkit.NewTool("plain", func(plainInput) {}),
		mcpkit.NewTool("raw", raw).Input(`{"type":"object","properties":{"a":{"type":"string","format":"password"},"b":{"type":"string"},"c":{"type":"array","items":{"type":"object","properties":{"d":{"type":"string","writeOnly":true}}}},"e":{"$ref":"#/$defs/e"}},"$defs":{"e":{"format":"password"}}}`),
		mcpkit.NewTool("branch", raw).Input(`{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"properties":{"a":{"writeOnly":true}}}]}`),
		mcpkit.NewTool("links", func(secretLink) {}),
		mcpkit.NewPrompt("prompt", func(in struct {
			Pin  string `json:"pin" secret:"true"`
			Name string `json:"name"`
		}) string {
			return ""
		}),
	))
	inner := newServer(t, nil)
	far, err := upstream.Item("tools/list", json.RawMessage(`{"name":"far","inputSchema":{"properties":{"a":{"writeOnly":true},"b":{"type":"string"}}}}`))
	require.NoError(t, err)
	require.NoError(t, inner.Add(far))
	require.NoError(t, inner.Add(mcpkit.NewTool("secrets", func(secretInput) {})))
	srv.MustMount("m", inner)
	for _, test := range []struct{ name, method, target, args, want string }{
		{"mounted", "tools/call", "m_secrets", `{"user":"ann","token":"s3"}`, `{"user":"ann","token":"[redacted]"}`},
		{"of another server", "tools/call", "m_far", `{"a":"s3","b":"x","c":1}`, `{"a":"[redacted]","b":"x"}`},
		{"no secrets", "tools/call", "plain", `{"user":"ann"}`, `{"user":"ann"}`},
		{"top", "tools/call", "secrets", `{"user":"ann","token":"s3"}`, `{"user":"ann","token":"[redacted]"}`},
		{"misspelt", "tools/call", "secrets", `{"user":"ann","tokne":"s3"}`, `{"user":"ann"}`},
		{"a secret within", "tools/call", "secrets", `{"deep":[{"key":"s3","name":"n"}]}`, `{"deep":"[redacted]"}`},
		{"a recursive type", "tools/call", "links", `{"next":{"key":"s3"},"key":"s3"}`, `{"next":"[redacted]","key":"[redacted]"}`},
		{"escaped name", "tools/call", "secrets", `{"\u0074oken":"s3"}`, `{"\u0074oken":"[redacted]"}`},
		{"schema by hand", "tools/call", "raw", `{"a":"s3","b":"x","c":[{"d":"s3"}],"e":"s3"}`, `{"a":"[redacted]","b":"x","c":"[redacted]","e":"[redacted]"}`},
		{"a branch of a schema by hand", "tools/call", "branch", `{"a":"s3"}`, `{}`},
		{"prompt", "prompts/get", "prompt", `{"pin":"1234","name":"ann"}`, `{"pin":"[redacted]","name":"ann"}`},
		{"unknown tool", "tools/call", "nope", `{"user":"ann"}`, `{}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := modern(t, srv)
			p.rpc(t.Context(), p.request(test.method, `{"name":"`+test.target+`","arguments":`+test.args+`}`))
			require.Equal(t, test.want, got)
		})
	}
}

func TestErrorsOfSchemasByHandDoNotRepeatSecrets(t *testing.T) {
	srv := newServer(t, nil, rawSchemas)
	require.NoError(t, srv.Add(mcpkit.NewTool("raw", func(context.Context, *mcpkit.Call) (any, error) { return "", nil }).
		Input(`{"type":"object","required":["b"],"properties":{"a":{"type":"string","format":"password","pattern":"^x"},"b":{"type":"integer"},`+
			`"c":{"type":"array","items":{"type":"object","properties":{"d":{"writeOnly":true,"minimum":9}}}}},"additionalProperties":{"type":"null"}}`)))
	for args, want := range map[string]string{
		`{"a":"s3","b":1}`:          "/a: got ***, want what the schema says",
		`{"a":"s3"}`:                "arguments: got ***, want what the schema says: missing property 'b'",
		`{"c":[{"d":3}],"b":1}`:     "/c: got ***, want what the schema says",
		`{"c":["{\"d\":3}"],"b":1}`: "/c: got ***, want what the schema says",
		`{"aa":"s3","b":1}`:         "/***: got ***, want what the schema says",
		`{"b":"x"}`:                 `/b: got "x", want what the schema says: got string, want integer`,
	} {
		result := modern(t, srv).result("tools/call", `{"name":"raw","arguments":`+args+`}`)
		require.Contains(t, strings.ReplaceAll(result, `\"`, `"`), want)
		require.NotContains(t, result, "s3")
	}
}

func TestSetArgumentsReplacesWhatIsDecoded(t *testing.T) {
	var set string
	var setErr error
	srv := newServer(t, nil)
	srv.Use(before(func(call *mcpkit.Call) { setErr = call.SetArguments(json.RawMessage(set)) }))
	require.NoError(t, srv.Add(
		mcpkit.NewTool("hello", func(in plainInput) string { return "hello " + in.User }),
		mcpkit.NewPrompt("greet", func(in plainInput) string { return "greet " + in.User }),
	))
	for _, test := range []struct{ name, method, params, set, want, err string }{
		{name: "tool", method: "tools/call", params: `{"name":"hello","arguments":{"user":"ann"}}`, set: `{"user":"bob"}`, want: "hello bob"},
		{name: "prompt", method: "prompts/get", params: `{"name":"greet","arguments":{"user":"ann"}}`, set: `{"user":"bob"}`, want: "greet bob"},
		{name: "still checked", method: "tools/call", params: `{"name":"hello","arguments":{"user":"ann"}}`, set: `{"user":1}`, want: `"isError":true`},
		{name: "no object", method: "tools/call", params: `{"name":"hello","arguments":{"user":"ann"}}`, set: `[1]`, want: "hello ann",
			err: `mcpkit: SetArguments: "[1]" is not a JSON object`},
		{name: "no JSON", method: "tools/call", params: `{"name":"hello","arguments":{"user":"ann"}}`, set: `{`, want: "hello ann",
			err: `mcpkit: SetArguments: "{" is not a JSON object`},
		{name: "prompt, no string", method: "prompts/get", params: `{"name":"greet","arguments":{"user":"ann"}}`, set: `{"user":1}`, want: "greet ann",
			err: `mcpkit: SetArguments: the arguments of prompt "greet" are not all strings`},
		{name: "no arguments", method: "tools/list", params: `{}`, set: `{}`, want: "hello",
			err: `mcpkit: SetArguments: tools/list has no arguments`},
	} {
		t.Run(test.name, func(t *testing.T) {
			set = test.set
			require.Contains(t, modern(t, srv).result(test.method, test.params), test.want)
			if test.err == "" {
				require.NoError(t, setErr)
				return
			}
			require.EqualError(t, setErr, test.err)
		})
	}
}

func TestMiddlewareKnowsWhatACallIsAbout(t *testing.T) {
	var target string
	srv := newServer(t, &guarded{}, mcpkit.Authenticated())
	srv.Use(before(func(call *mcpkit.Call) { target = call.Target() }))
	for _, test := range []struct{ method, params, want string }{
		{"tools/call", `{"name":"open"}`, "open"},
		{"tools/call", `{"name":"nope"}`, ""},
		{"resources/read", `{"uri":"any://x"}`, "any://{id}"},
		{"prompts/get", `{"name":"ask","arguments":{"kind":"k"}}`, "ask"},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"ask"},"argument":{"name":"kind","value":"z"}}`, "ask"},
		{"completion/complete", `{"ref":{"type":"ref/resource","uri":"any://{id}"},"argument":{"name":"id","value":"z"}}`, "any://{id}"},
		{"resources/subscribe", `{"uri":"any://x"}`, "any://{id}"},
		{"tools/list", `{}`, ""},
	} {
		p := legacy(t, srv, protocol.V20251125)
		p.rpc(as(p, "notes:read"), p.request(test.method, test.params))
		require.Equal(t, test.want, target, "%s %s", test.method, test.params)
		p.rpc(t.Context(), p.request(test.method, test.params))
		if test.want != "open" {
			require.Empty(t, target, "a caller without the scope: %s %s", test.method, test.params)
		}
	}
}

// A greetings has a prompt whose argument is completed slowly.
type greetings struct {
	_ struct {
		Greet mcpkit.Prompt `params:"name" complete:"name=Names"`
		Names mcpkit.Skip
	}
	entered, release chan struct{}
}

// Greet greets somebody.
func (*greetings) Greet(name string) string { return "Greet " + name }

// Names completes names, when it is allowed to.
func (g *greetings) Names(context.Context, string) ([]string, error) {
	close(g.entered)
	<-g.release
	return []string{"Ann"}, nil
}

func TestMiddlewareSeesWhatACompletionIsForWhileItsMethodRuns(t *testing.T) {
	g := &greetings{entered: make(chan struct{}), release: make(chan struct{})}
	srv := newServer(t, g)
	var names []string
	srv.Use(before(func(call *mcpkit.Call) {
		call.SetTimeout(time.Minute) // so that the method has a goroutine of its own
		names = append(names, call.Name(), call.Target())
		go func() {
			<-g.entered
			names = append(names, call.Name(), call.Target()) // as middleware does after a timeout
			close(g.release)
		}()
	}))
	got := modern(t, srv).result("completion/complete", `{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":"A"}}`)
	require.Contains(t, got, `"values":["Ann"]`)
	require.Equal(t, []string{"greet", "greet", "greet", "greet"}, names)
}
