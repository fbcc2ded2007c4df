package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// quiet keeps the log of the server out of the output of the tests.
var quiet = mcpkit.Logger(slog.New(slog.DiscardHandler))

// peer is a client that calls the server without a transport.
type peer struct {
	t       testing.TB
	srv     *mcpkit.Server
	session *transport.Session // nil: there is none
	header  transport.Header   // nil: not HTTP
}

func (*peer) Notify(context.Context, *jsonrpc.Request) error { return nil }

func (*peer) Call(context.Context, *jsonrpc.Request) (*jsonrpc.Response, error) {
	return nil, transport.ErrNoServerRequests
}

func (p *peer) Session() *transport.Session { return p.session }
func (p *peer) Header() transport.Header    { return p.header }

// modern is a client of 2026-07-28.
func modern(t testing.TB, srv *mcpkit.Server) *peer { return &peer{t: t, srv: srv} }

// legacy is a client that has initialized a session of 2025-11-25.
func legacy(t testing.TB, srv *mcpkit.Server, sessionID string) *peer {
	p := &peer{t: t, srv: srv}
	p.session = transport.NewSession(sessionID, p)
	p.call(t.Context(), "initialize", initializeParams)
	require.Equal(t, string(protocol.V20251125), p.session.Version())
	return p
}

// families returns a legacy and a modern client.
func families(t testing.TB, srv *mcpkit.Server) map[string]*peer {
	return map[string]*peer{"modern": modern(t, srv), "legacy": legacy(t, srv, "s1")}
}

const (
	initializeParams = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`
	modernMeta       = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`
)

// call sends a request. meta are further members of its _meta.
func (p *peer) call(ctx context.Context, method, params string, meta ...string) *jsonrpc.Response {
	p.t.Helper()
	own := ""
	if p.session == nil {
		own = modernMeta
	} else if len(meta) > 0 {
		own = `"_meta":{"x":1`
	}
	if own != "" {
		for _, m := range meta {
			own += "," + m
		}
		if params != "{}" {
			own = "," + own
		}
		params = params[:len(params)-1] + own + "}}"
	}
	msg, bad := jsonrpc.Decode(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params))
	require.Nil(p.t, bad, "the test's own message is malformed: %s", params)
	return p.srv.ServeRPC(ctx, msg.Request, p)
}

// said is all of a response as text: its result, or its error.
func said(t testing.TB, resp *jsonrpc.Response) string {
	t.Helper()
	if resp.Stream != nil {
		var b bytes.Buffer
		require.NoError(t, resp.Stream(&b))
		return b.String()
	}
	return string(jsonrpc.AppendResponse(nil, resp))
}

// toolText calls a tool with the arguments, if any are given, and returns its first text.
func (p *peer) toolText(ctx context.Context, name string, args ...string) string {
	p.t.Helper()
	params := fmt.Sprintf(`{"name":%q}`, name)
	if len(args) > 0 {
		params = fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args[0])
	}
	return textOf(p.t, p.call(ctx, "tools/call", params))
}

func textOf(t testing.TB, resp *jsonrpc.Response) string {
	t.Helper()
	require.Nil(t, resp.Error, "%+v", resp.Error)
	var r struct{ Content []struct{ Text string } }
	require.NoError(t, json.Unmarshal(resp.Result, &r))
	require.NotEmpty(t, r.Content, "%s", resp.Result)
	return r.Content[0].Text
}

func newServer(t testing.TB, items ...mcpkit.Item) *mcpkit.Server {
	t.Helper()
	srv, err := mcpkit.New(nil, quiet)
	require.NoError(t, err)
	require.NoError(t, srv.Add(items...))
	return srv
}

func as(ctx context.Context, subject string, scopes ...string) context.Context {
	return oauth.NewContext(ctx, &oauth.Principal{Subject: subject, Scopes: scopes})
}

// everything is a service with tools, prompts, resources and completions.
type everything struct {
	_ struct {
		Open    mcpkit.Tool     `tags:"open"`
		Closed  mcpkit.Tool     `tags:"closed" scopes:"secret"`
		Doc     mcpkit.Resource `uri:"doc://one" tags:"closed" scopes:"secret"`
		Any     mcpkit.Resource `uri:"any://{id}" tags:"closed" scopes:"secret"`
		Ask     mcpkit.Prompt   `params:"kind" complete:"kind=Kinds" tags:"closed" scopes:"secret"`
		Public  mcpkit.Resource `uri:"public://one"`
		Welcome mcpkit.Prompt   `params:"kind" complete:"kind=Kinds"`
	}
	ran func(what string)
}

func (e *everything) Open(call *mcpkit.Call) string { return "open" }
func (e *everything) Closed() string                { e.ran("closed"); return "closed-result" }
func (e *everything) Doc() string                   { e.ran("doc"); return "doc-result" }
func (e *everything) Any(id string) string          { e.ran("any"); return "any-result" }
func (e *everything) Ask(kind string) string        { e.ran("ask"); return "ask-result" }
func (e *everything) Public() string                { return "public" }
func (e *everything) Welcome(kind string) string    { return "welcome" }
func (e *everything) Kinds(_ context.Context, prefix string) ([]string, error) {
	e.ran("kinds")
	return []string{prefix + "-kind"}, nil
}

// A request is one that a client can make.
type request struct {
	method, params string
	from, until    protocol.Version
}

// everyRequest has every method of the protocol, for each kind of target.
var everyRequest = []request{
	{"initialize", initializeParams, protocol.V20241105, protocol.V20251125},
	{"ping", `{}`, protocol.V20241105, protocol.V20251125},
	{"server/discover", `{}`, protocol.V20260728, protocol.V20260728},
	{"tools/list", `{}`, protocol.V20241105, protocol.V20260728},
	{"tools/call", `{"name":"open"}`, protocol.V20241105, protocol.V20260728},
	{"tools/call", `{"name":"closed"}`, protocol.V20241105, protocol.V20260728},
	{"tools/call", `{"name":"unknown"}`, protocol.V20241105, protocol.V20260728},
	{"prompts/list", `{}`, protocol.V20241105, protocol.V20260728},
	{"prompts/get", `{"name":"ask","arguments":{"kind":"k"}}`, protocol.V20241105, protocol.V20260728},
	{"resources/list", `{}`, protocol.V20241105, protocol.V20260728},
	{"resources/templates/list", `{}`, protocol.V20241105, protocol.V20260728},
	{"resources/read", `{"uri":"doc://one"}`, protocol.V20241105, protocol.V20260728},
	{"resources/read", `{"uri":"any://x"}`, protocol.V20241105, protocol.V20260728},
	{"resources/subscribe", `{"uri":"doc://one"}`, protocol.V20241105, protocol.V20251125},
	{"resources/unsubscribe", `{"uri":"any://x"}`, protocol.V20241105, protocol.V20251125},
	{"completion/complete", `{"ref":{"type":"ref/prompt","name":"ask"},"argument":{"name":"kind","value":"z"}}`, protocol.V20241105, protocol.V20260728},
	{"logging/setLevel", `{"level":"info"}`, protocol.V20241105, protocol.V20251125},
	{"subscriptions/listen", `{"notifications":{"resourceSubscriptions":["doc://one","any://x"]}}`, protocol.V20260728, protocol.V20260728},
}

// of are the requests that a version has.
func requestsOf(v protocol.Version) []request {
	var list []request
	for _, r := range everyRequest {
		if r.from <= v && v <= r.until {
			list = append(list, r)
		}
	}
	return list
}

// onTool selects the calls of a tool.
func onTool(name string) func(*mcpkit.Call) bool {
	return func(call *mcpkit.Call) bool {
		return call.Method() == protocol.MethodToolsCall && call.Target() == name
	}
}

// onTag selects the calls of what has the label.
func onTag(label string) func(*mcpkit.Call) bool {
	return func(call *mcpkit.Call) bool { return slices.Contains(call.Tags(), label) }
}
