package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// untagged is everything without scopes in tags, so that only middleware guards it.
type untagged struct {
	_ struct {
		Open   mcpkit.Tool     `tags:"open"`
		Closed mcpkit.Tool     `tags:"closed"`
		Doc    mcpkit.Resource `uri:"doc://one" tags:"closed"`
		Any    mcpkit.Resource `uri:"any://{id}" tags:"closed"`
		Ask    mcpkit.Prompt   `params:"kind" complete:"kind=Kinds" tags:"closed"`
	}
	ran func(what string)
}

func (u *untagged) Open(*mcpkit.Call) string { return "open" }
func (u *untagged) Closed() string           { u.ran("closed"); return "closed-result" }
func (u *untagged) Doc() string              { u.ran("doc"); return "doc-result" }
func (u *untagged) Any(id string) string     { u.ran("any"); return "any-result" }
func (u *untagged) Ask(kind string) string   { u.ran("ask"); return "ask-result" }
func (u *untagged) Kinds(_ context.Context, prefix string) ([]string, error) {
	u.ran("kinds")
	return []string{prefix + "-kind"}, nil
}

// TestNothingRunsForWhoMayNotCallIt calls every method in every version of the protocol, as every
// kind of caller, with each way to guard it.
func TestNothingRunsForWhoMayNotCallIt(t *testing.T) {
	callers := []struct {
		name string
		ctx  func(context.Context) context.Context
		may  bool
	}{
		{"nobody", func(ctx context.Context) context.Context { return ctx }, false},
		{"without scopes", func(ctx context.Context) context.Context { return as(ctx, "ann") }, false},
		{"with another scope", func(ctx context.Context) context.Context { return as(ctx, "ann", "secrets", "Secret", "secret:read") }, false},
		{"with the scope", func(ctx context.Context) context.Context { return as(ctx, "ann", "other", "secret") }, true},
	}
	var ran []string
	run := func(what string) { ran = append(ran, what) }
	visible := func(_ context.Context, call *mcpkit.Call) (func(mcpkit.Entry) bool, string) {
		has := call.Principal().Has("secret")
		return func(e mcpkit.Entry) bool { return has || !slices.Contains(e.Tags(), "closed") }, fmt.Sprint(has)
	}
	guards := map[string]func() *mcpkit.Server{
		"scopes tag": func() *mcpkit.Server { return mcpkit.MustNew(&everything{ran: run}, quiet, mcpkit.Authenticated()) },
		"scopes of a tag": func() *mcpkit.Server {
			srv := mcpkit.MustNew(&untagged{ran: run}, quiet)
			srv.Use(middleware.When(onTag("closed"), middleware.Scopes("secret")))
			return srv
		},
		"visible": func() *mcpkit.Server {
			return mcpkit.MustNew(&untagged{ran: run}, quiet, mcpkit.Visible(visible))
		},
		"behind a cache": func() *mcpkit.Server {
			srv := mcpkit.MustNew(&untagged{ran: run}, quiet)
			srv.Use(middleware.When(onTag("closed"), middleware.Scopes("secret")), middleware.Cache(1e9, middleware.CacheShared()))
			return srv
		},
	}
	for guard, newServer := range guards {
		for _, v := range protocol.Supported {
			srv := newServer()
			for _, caller := range callers {
				ran = nil
				var replies string
				for _, r := range requestsOf(v) {
					replies += of(t, srv, v).send(caller.ctx(t.Context()), r)
				}
				if caller.may {
					require.ElementsMatch(t, []string{"closed", "ask", "doc", "any", "kinds"}, ran, "%s, %s: %s", guard, v, replies)
					continue
				}
				require.Empty(t, ran, "%s, %s, %s", guard, v, caller.name)
				require.NotContains(t, replies, "-result", "%s, %s, %s", guard, v, caller.name)
			}
		}
	}
}

func TestGuardsByNameGuardThatAlone(t *testing.T) {
	srv := newServer(t)
	srv.Use(middleware.When(onTool("a"), middleware.Scopes("s")))
	// It also guards what is registered later.
	require.NoError(t, srv.Add(mcpkit.NewTool("a", func() string { return "a" }), mcpkit.NewTool("b", func() string { return "b" }),
		mcpkit.NewPrompt("a", func() string { return "prompt a" })))
	for _, p := range families(t, srv) {
		require.Equal(t, mcpkit.CodeForbidden, p.call(t.Context(), "tools/call", `{"name":"a"}`).Error.Code)
		require.Equal(t, "a", p.toolText(as(t.Context(), "ann", "s"), "a"))
		require.Equal(t, "b", p.toolText(t.Context(), "b"))
		require.Contains(t, said(t, p.call(t.Context(), "prompts/get", `{"name":"a"}`)), "prompt a")
	}
}

func TestErrorCodes(t *testing.T) {
	type in struct {
		N int `json:"n" validate:"required"`
	}
	srv := newServer(t,
		mcpkit.NewTool("fails", func() error { return errors.New("full text") }),
		mcpkit.NewTool("tells", func() error { return mcpkit.Errorf("no such city") }),
		mcpkit.NewTool("says", func() *protocol.CallToolResult {
			return &protocol.CallToolResult{IsError: true, Content: []protocol.Content{&protocol.TextContent{Text: "it failed"}}}
		}),
		mcpkit.NewTool("waits", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }).Timeout(1),
		mcpkit.NewTool("panics", func() { panic("oops") }),
		mcpkit.NewTool("wants", func(in) {}),
		mcpkit.NewTool("own", func() error { return &jsonrpc.Error{Code: 7, Message: "own"} }),
		mcpkit.NewTool("works", func() string { return "fine" }),
	)
	srv.Use(middleware.ErrorCodes())
	for _, test := range []struct {
		tool, args string
		code       int
		message    string // its beginning
	}{
		{"nope", `{}`, -32601, `unknown tool "nope"`},
		{"wants", `{"n":"x"}`, -32602, ""},
		{"fails", `{}`, -32603, "internal error (ref "},
		{"tells", `{}`, -32603, "no such city"},
		{"says", `{}`, -32603, "it failed"},
		{"panics", `{}`, -32603, "internal error (ref "},
		{"waits", `{}`, -32000, "Tool execution timeout"},
		{"own", `{}`, 7, "own"},
	} {
		for family, p := range families(t, srv) {
			params, err := json.Marshal(map[string]any{"name": test.tool, "arguments": json.RawMessage(test.args)})
			require.NoError(t, err)
			resp := p.call(t.Context(), "tools/call", string(params))
			require.NotNil(t, resp.Error, "%s, %s: %s", test.tool, family, resp.Result)
			require.Equal(t, test.code, resp.Error.Code, test.tool)
			require.Contains(t, resp.Error.Message, test.message, test.tool)
		}
	}
	require.Equal(t, "fine", modern(t, srv).toolText(t.Context(), "works"))
}

type path struct {
	Path string `json:"path"`
}

func TestGuardArgumentsInspectsAndRewrites(t *testing.T) {
	echo := func(in path) string { return "path " + in.Path }
	srv := newServer(t, mcpkit.NewTool("tagged", echo).Tags("files"))
	guard := func(_ context.Context, call *mcpkit.Call, args json.RawMessage) (json.RawMessage, error) {
		switch {
		case bytes.Contains(args, []byte("..")):
			return nil, mcpkit.Errorf("%q leaves the folder", call.Name())
		case bytes.Contains(args, []byte("~")):
			return bytes.ReplaceAll(args, []byte("~"), []byte("/home")), nil
		case bytes.Contains(args, []byte("broken")):
			return json.RawMessage(`{`), nil
		}
		return args, nil
	}
	srv.Use(middleware.GuardArguments(guard))
	require.NoError(t, srv.Add(mcpkit.NewTool("late", echo), mcpkit.NewPrompt("prompt", echo)))
	for _, p := range families(t, srv) {
		for _, tool := range []string{"tagged", "late"} {
			require.Equal(t, "path /a", p.toolText(t.Context(), tool, `{"path":"/a"}`))
			require.Equal(t, "path /home/a", p.toolText(t.Context(), tool, `{"path":"~/a"}`))
			require.Equal(t, `"`+tool+`" leaves the folder`, p.toolText(t.Context(), tool, `{"path":"../a"}`))
			require.Contains(t, p.toolText(t.Context(), tool, `{"path":"broken"}`), "internal error")
		}
		require.Contains(t, said(t, p.call(t.Context(), "prompts/get", `{"name":"prompt","arguments":{"path":"~"}}`)), "path /home")
		require.Equal(t, `"prompt" leaves the folder`, p.call(t.Context(), "prompts/get", `{"name":"prompt","arguments":{"path":".."}}`).Error.Message)
	}
}

func TestResultLimit(t *testing.T) {
	texts := func(list ...string) func() *protocol.CallToolResult {
		return func() *protocol.CallToolResult {
			r := &protocol.CallToolResult{}
			for _, text := range list {
				r.Content = append(r.Content, &protocol.TextContent{Text: text})
			}
			return r
		}
	}
	srv := newServer(t,
		mcpkit.NewTool("fits", texts("12345", "67890")),
		mcpkit.NewTool("long", texts("1234567890ab")),
		mcpkit.NewTool("several", texts("1234567", "890ab", "cd")),
		mcpkit.NewTool("characters", texts("123456789é")),
		mcpkit.NewTool("structured", func() path { return path{"1234567890"} }),
		mcpkit.NewTool("image", func() protocol.Content { return &protocol.ImageContent{Data: make([]byte, 11), MIMEType: "image/png"} }),
	)
	strict := newServer(t, mcpkit.NewTool("long", texts("1234567890ab")), mcpkit.NewTool("fits", texts("12345", "67890")))
	srv.Use(middleware.ResultLimit(10))
	strict.Use(middleware.ResultLimit(10, middleware.NoTruncation()))
	content := func(texts ...string) string {
		b, err := json.Marshal(texts)
		require.NoError(t, err)
		return string(b)
	}
	cut := func(size string) string {
		return "[truncated: this result has " + size + " bytes, and the limit is 10; ask for less to see the rest]"
	}
	refused := func(size string) string {
		return "the result has " + size + " bytes, and the limit is 10; ask for less, for example with a filter, or page by page"
	}
	for _, test := range []struct {
		srv     *mcpkit.Server
		name    string
		want    string
		isError bool
	}{
		{srv, "fits", content("12345", "67890"), false},
		{srv, "long", content("1234567890", cut("12")), false},
		{srv, "several", content("1234567", "890", cut("14")), false},
		{srv, "characters", content("123456789", cut("11")), false},
		{srv, "structured", content(refused("42")), true}, // as text and as structured content
		{srv, "image", content(refused("11")), true},
		{strict, "fits", content("12345", "67890"), false},
		{strict, "long", content(refused("12")), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var r struct {
				Content []struct{ Text string }
				IsError bool
			}
			resp := modern(t, test.srv).call(t.Context(), "tools/call", `{"name":"`+test.name+`"}`)
			require.NoError(t, json.Unmarshal(resp.Result, &r))
			var got []string
			for _, c := range r.Content {
				got = append(got, c.Text)
			}
			require.Equal(t, test.want, content(got...))
			require.Equal(t, test.isError, r.IsError)
		})
	}
}
