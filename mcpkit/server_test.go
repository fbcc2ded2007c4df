package mcpkit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

func TestCapabilitiesFollowFromWhatIsRegistered(t *testing.T) {
	srv := newServer(t, nil)
	capabilities := func() string { return member(t, modern(t, srv).result("server/discover", "{}"), "capabilities") }
	require.JSONEq(t, `{}`, capabilities())
	for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list", "completion/complete"} {
		require.Equal(t, jsonrpc.CodeMethodNotFound, modern(t, srv).fails(method, "{}").Code, method)
	}
	require.NoError(t, srv.Add(mcpkit.NewTool("t", func() string { return "" })))
	require.JSONEq(t, `{"tools":{"listChanged":true}}`, capabilities())
	require.NoError(t, srv.Add(
		mcpkit.NewPrompt("p", func(in struct {
			Tone string `json:"tone" validate:"oneof=dry warm"`
		}) string {
			return ""
		}),
		mcpkit.NewResource("x://y", "y", func(log *slog.Logger) string { return "" }),
	))
	require.JSONEq(t, `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{}}`, capabilities())
	srv = newServer(t, nil, mcpkit.Experimental(map[string]protocol.Object{"com.example/undo": {"steps": []byte("5")}}))
	require.JSONEq(t, `{"experimental":{"com.example/undo":{"steps":5}}}`, capabilities())
}

func TestACursorSurvivesChangesOfTheList(t *testing.T) {
	srv := newServer(t, nil, mcpkit.PageSize(1))
	for _, name := range []string{"a", "b", "c"} {
		require.NoError(t, srv.Add(mcpkit.NewTool(name, func() string { return "" })))
	}
	cursor := member(t, modern(t, srv).result("tools/list", "{}"), "nextCursor")
	require.True(t, srv.RemoveTools("a"))
	require.Contains(t, modern(t, srv).result("tools/list", `{"cursor":`+cursor+`}`), `"name":"b"`)
}

func as(p *peer, scopes ...string) context.Context {
	return oauth.NewContext(p.t.Context(), &oauth.Principal{Subject: "ann", Scopes: scopes})
}

type guarded struct {
	_ struct {
		Open   mcpkit.Tool
		Closed mcpkit.Tool     `scopes:"notes:write"`
		Doc    mcpkit.Resource `uri:"doc://one" scopes:"notes:read"`
		Any    mcpkit.Resource `uri:"any://{id}" scopes:"notes:read"`
		Ask    mcpkit.Prompt   `params:"kind" complete:"kind=Kinds" scopes:"notes:read"`
	}
}

func (guarded) Open() string           { return "open" }
func (guarded) Closed() string         { return "closed" }
func (guarded) Doc() string            { return "doc" }
func (guarded) Any(id string) string   { return id }
func (guarded) Ask(kind string) string { return kind }

func (guarded) Kinds(_ context.Context, p string) ([]string, error) { return []string{p + "1"}, nil }

func TestNoHintAtWhatMayNotBeSeen(t *testing.T) {
	p := modern(t, newServer(t, &guarded{}, mcpkit.Authenticated()))
	require.EqualError(t, p.fails("tools/call", `{"name":"closd"}`), `unknown tool "closd" (code -32602)`)
	require.EqualError(t, p.fails("tools/call", `{"name":"opn"}`), `unknown tool "opn"; did you mean "open"? (code -32602)`)
}

func TestLegacySessionsAreNotifiedOfChanges(t *testing.T) {
	srv := newServer(t, &Library{})
	p := legacy(t, srv, protocol.V20250618)
	require.NoError(t, srv.Add(mcpkit.NewTool("new", func() string { return "" })))
	require.Equal(t, []string{`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}`}, p.take())
	srv.ResourceUpdated("library://rules")
	require.Empty(t, p.take(), "not subscribed")
	p.result("resources/subscribe", `{"uri":"library://rules"}`)
	srv.ResourceUpdated("library://rules")
	require.Equal(t, []string{`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"library://rules"}}`}, p.take())
	srv.SessionEnded(p.session)
	require.True(t, srv.RemoveTools("new"))
	require.Empty(t, p.take(), "the session is over")
}

func TestAPanicOfMiddlewareEndsTheCallOnly(t *testing.T) {
	srv := newServer(t, &Library{}, mcpkit.Logger(slog.New(slog.DiscardHandler)))
	srv.Use(before(func(call *mcpkit.Call) {
		if call.Name() == "count" {
			panic("boom")
		}
	}))
	require.Contains(t, modern(t, srv).result("tools/call", `{"name":"count","arguments":{"upto":1}}`), "internal error (ref ")
	require.Contains(t, modern(t, srv).result("tools/call", `{"name":"find","arguments":{"title":"Emma"}}`), "Emma")
}

func TestMirroredHeaders(t *testing.T) {
	srv := newServer(t, &Library{})
	require.NoError(t, srv.Add(mcpkit.NewTool("where", func(in struct {
		Region string `json:"region,omitempty" header:"Region"`
		Level  int    `json:"level,omitempty" header:"Level"`
	}) string {
		return in.Region
	})))
	call := `{"name":"where","arguments":{"region":"é","level":42}}`
	for _, test := range []struct {
		name   string
		method string
		params string
		header map[string]string
		want   string // the error; "" when there is none
	}{
		{"all right", "tools/call", call, map[string]string{"Mcp-Method": "tools/call", "Mcp-Name": "where", "Mcp-Param-Region": "=?base64?w6k=?=", "Mcp-Param-Level": "42.0"}, ""},
		{"blanks around do not count", "tools/call", call, map[string]string{"Mcp-Method": " tools/call ", "Mcp-Name": "  where ", "Mcp-Param-Region": "=?base64?w6k=?=", "Mcp-Param-Level": "42"}, ""},
		{"nothing to mirror", "tools/call", `{"name":"where"}`, map[string]string{"Mcp-Method": "tools/call", "Mcp-Name": "where"}, ""},
		{"no method", "tools/list", "{}", nil, `the header Mcp-Method is missing; it has to say "tools/list", as the body does (code -32020)`},
		{"method in capitals", "tools/list", "{}", map[string]string{"Mcp-Method": "TOOLS/LIST"}, `the header Mcp-Method says "TOOLS/LIST" but the body says "tools/list" (code -32020)`},
		{"no name", "tools/call", call, map[string]string{"Mcp-Method": "tools/call"}, `the header Mcp-Name is missing; it has to say "where", as the body does (code -32020)`},
		{"another name", "tools/call", call, map[string]string{"Mcp-Method": "tools/call", "Mcp-Name": "find"}, `the header Mcp-Name says "find" but the body says "where" (code -32020)`},
		{"the name of an unknown tool", "tools/call", `{"name":"x"}`, map[string]string{"Mcp-Method": "tools/call", "Mcp-Name": "y"}, `the header Mcp-Name says "y" but the body says "x" (code -32020)`},
		{"a name that is null", "tools/call", `{"name":null}`, map[string]string{"Mcp-Method": "tools/call", "Mcp-Name": "where"}, `the header Mcp-Name says "where" but params.name of the body is not a string (code -32020)`},
		{"a name that is a number", "tools/call", `{"name":7}`, map[string]string{"Mcp-Method": "tools/call", "Mcp-Name": "7"}, `the header Mcp-Name says "7" but params.name of the body is not a string (code -32020)`},
		{"a body without a name", "tools/call", `{}`, map[string]string{"Mcp-Method": "tools/call", "Mcp-Name": "where"}, `the header Mcp-Name says "where" but params.name of the body is not a string (code -32020)`},
		{"no parameter", "tools/call", call, map[string]string{"Mcp-Method": "tools/call", "Mcp-Name": "where", "Mcp-Param-Level": "42"}, `the header Mcp-Param-Region is missing; it mirrors argument "region" (code -32020)`},
		{"another number", "tools/call", call, map[string]string{"Mcp-Method": "tools/call", "Mcp-Name": "where", "Mcp-Param-Region": "=?base64?w6k=?=", "Mcp-Param-Level": "43"}, `the header Mcp-Param-Level says "43", which is not argument "level" (code -32020)`},
		{"another revision", "tools/list", "{}", map[string]string{"Mcp-Method": "tools/list", "Mcp-Protocol-Version": "2027-01-01"}, `the header MCP-Protocol-Version says "2027-01-01" but params._meta says "2026-07-28" (code -32020)`},
		{"no revision", "tools/list", "{}", map[string]string{"Mcp-Method": "tools/list", "Mcp-Protocol-Version": ""}, `the header MCP-Protocol-Version is missing; send "2026-07-28" as in params._meta (code -32020)`},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := http.Header{}
			h.Set("Mcp-Protocol-Version", "2026-07-28")
			for k, v := range test.header {
				h.Set(k, v)
			}
			p := modern(t, srv)
			p.header = transport.Header(h)
			resp := p.rpc(t.Context(), p.request(test.method, test.params))
			if test.want == "" {
				require.Nil(t, resp.Error)
				return
			}
			require.EqualError(t, resp.Error, test.want)
			require.Equal(t, http.StatusBadRequest, resp.HTTPStatus)
		})
	}
	t.Run("two lines of one header", func(t *testing.T) {
		p := modern(t, srv)
		p.header = transport.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"where", "find"}}
		require.Equal(t, protocol.CodeHeaderMismatch, p.fails("tools/call", `{"name":"where"}`).Code)
	})
}

// A client that has sent a modern request is not taken for a legacy one because it leaves out the _meta.
func TestARequestWithoutMetaIsRefusedOnConnectionsAsOverHTTP(t *testing.T) {
	srv := newServer(t, &Library{})
	web, connection := modern(t, srv), modern(t, srv)
	web.header = transport.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"ping"}}
	connection.session = transport.NewSession("", connection)
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{}}`, connection.raw(t.Context(), ping), "it may be a legacy client")
	connection.result("server/discover", "{}")
	for _, p := range []*peer{web, connection} {
		require.EqualError(t, p.rpc(t.Context(), ping).Error, `params._meta needs the string "io.modelcontextprotocol/protocolVersion" (code -32602)`)
		require.EqualError(t, p.fails("ping", "{}"), `method "ping" is not offered (code -32601)`)
	}
	connection.result("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`)
	require.Equal(t, "{}", connection.result("ping", "{}"))
}

func TestAServerWithoutLegacyVersionsHasNoSessionsOverHTTP(t *testing.T) {
	web := streamable.NewHandler(newServer(t, nil, mcpkit.Versions(protocol.V20260728)), nil)
	for method, want := range map[string]string{"POST": "params._meta needs the string", "GET": "method GET is not served here; use POST"} {
		r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1/", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		w := httptest.NewRecorder()
		web.ServeHTTP(w, r)
		require.Contains(t, w.Body.String(), want)
	}
}

func TestHandlersOfTheProgramsOwnMethods(t *testing.T) {
	type params struct {
		N int `json:"n"`
	}
	type double struct {
		N int `json:"n"`
	}
	srv := newServer(t, nil)
	require.NoError(t, mcpkit.Handle(srv, "example.com/double", func(ctx context.Context, p params) (double, error) {
		if p.N < 0 {
			return double{}, mcpkit.Errorf("n is negative")
		}
		return double{2 * p.N}, nil
	}))
	require.Equal(t, "4", member(t, modern(t, srv).result("example.com/double", `{"n":2}`), "n"))
	require.Equal(t, `{"n":4}`, legacy(t, srv, protocol.V20250326).result("example.com/double", `{"n":2}`))
	require.EqualError(t, modern(t, srv).fails("example.com/double", `{"n":"x"}`), "1 problem with the params:\n/n: got \"x\", want an integer (code -32602)")
	require.EqualError(t, modern(t, srv).fails("example.com/double", `{"n":-1}`), "n is negative (code -32603)")

	noop := func(context.Context, params) (double, error) { return double{}, nil }
	require.EqualError(t, mcpkit.Handle(srv, "example.com/double", noop), `mcpkit: Handle: the method "example.com/double" is registered already`)
	require.EqualError(t, mcpkit.Handle(srv, "tools/list", noop), `mcpkit: Handle: the method "tools/list" is part of the protocol`)
	for name, near := range map[string]string{"tool/call": "tools/call", "tools/cal": "tools/call", "prompts/lists": "prompts/list"} {
		require.EqualError(t, mcpkit.Handle(srv, name, noop), fmt.Sprintf(`mcpkit: Handle: the method %q is like %q of the protocol; give it a prefix, such as "example.com/"`, name, near))
	}
	require.EqualError(t, mcpkit.Handle(srv, "", noop), `mcpkit: Handle: "" is not a name for a method; write for example "example.com/reindex"`)
}

type many struct {
	_ struct {
		Page mcpkit.Resource `uri:"page://{n}" complete:"n=Numbers"`
	}
}

// A stock is how many pages there are.
type stock int

func (many) Page(n int) string { return fmt.Sprint(n) }
func (many) Numbers(call *mcpkit.Call, others map[string]string, prefix string, last stock) ([]string, error) {
	if prefix == "x" || call.Method() != "completion/complete" {
		return nil, errors.New("hunter2")
	}
	values := make([]string, last)
	for i := range values {
		values[i] = fmt.Sprint(others["from"], i)
	}
	return values, nil
}

func TestCompletionOfMany(t *testing.T) {
	srv := newServer(t, &many{}, mcpkit.Logger(slog.New(slog.DiscardHandler)),
		mcpkit.Provide(func(context.Context) (stock, error) { return 250, nil }))
	got := modern(t, srv).result("completion/complete", `{"ref":{"type":"ref/resource","uri":"page://{n}"},"argument":{"name":"n","value":""},"context":{"arguments":{"from":"1"}}}`)
	require.Equal(t, "250", member(t, got, "completion", "total"))
	require.Equal(t, "true", member(t, got, "completion", "hasMore"))
	require.Equal(t, 99, strings.Count(member(t, got, "completion", "values"), ","))
	require.Contains(t, got, `["10","11"`)
	require.NotContains(t, modern(t, srv).fails("completion/complete", `{"ref":{"type":"ref/resource","uri":"page://{n}"},"argument":{"name":"n","value":"x"}}`).Message, "hunter2")
}

type lives struct {
	started, closed int
	fail            error
}

func (l *lives) Start(context.Context) error { l.started++; return l.fail }
func (l *lives) Close() error                { l.closed++; return nil }
func (l *lives) Tool() string                { return "" }

func TestServicesStartBeforeTheFirstCallAndCloseAfterTheLast(t *testing.T) {
	l := &lives{}
	srv := newServer(t, l)
	require.Zero(t, l.started, "New starts nothing")
	modern(t, srv).result("tools/list", "{}")
	modern(t, srv).result("tools/call", `{"name":"tool"}`)
	require.Equal(t, 1, l.started)
	require.NoError(t, srv.Close())
	require.NoError(t, srv.Close())
	require.Equal(t, 1, l.closed)

	broken := &lives{fail: errors.New("hunter2")}
	srv = newServer(t, broken, mcpkit.Logger(slog.New(slog.DiscardHandler)))
	require.EqualError(t, srv.Start(t.Context()), "mcpkit: *mcpkit_test.lives does not start: hunter2")
	require.EqualError(t, modern(t, srv).fails("tools/list", "{}"), "the server did not start (code -32603)")
	require.NoError(t, srv.Close())
	require.Zero(t, broken.closed, "what did not start is not closed")

	srv = newServer(t, &bursting{}, mcpkit.Logger(slog.New(slog.DiscardHandler)))
	modern(t, srv).fails("tools/list", "{}")
	require.EqualError(t, srv.Start(t.Context()), "mcpkit: *mcpkit_test.bursting does not start: panic: boom")
}

type bursting struct{}

func (bursting) Start(context.Context) error { panic("boom") }
func (bursting) Tool() string                { return "" }

func TestOneWarningCountsWhatHasNoDescription(t *testing.T) {
	var log bytes.Buffer
	srv := newServer(t, &Library{}, mcpkit.Logger(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, srv.Add(mcpkit.NewTool("bare", func() string { return "" })))
	require.Empty(t, log.String(), "New and Add print nothing")
	require.NoError(t, srv.Serve(t.Context(), nobody{}))
	require.Equal(t, 1, strings.Count(log.String(), "missing=1 of=7"), log.String())
}

// nobody is a transport without peers.
type nobody struct{}

func (nobody) Serve(context.Context, transport.Handler) error { return nil }

// sleepy is a service whose start waits for the test.
type sleepy struct{ go_ chan struct{} }

func (s *sleepy) Start(context.Context) error { <-s.go_; return nil }
func (s *sleepy) Tool() string                { return "awake" }

func TestACallThatWaitsForTheStartCanBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sleepy{make(chan struct{})}
		var log bytes.Buffer
		srv := newServer(t, s, mcpkit.Logger(slog.New(slog.NewTextHandler(&log, nil))))
		first, p := make(chan string), modern(t, srv)
		go func() { first <- p.raw(t.Context(), p.request("tools/call", `{"name":"tool"}`)) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.EqualError(t, modern(t, srv).rpc(ctx, p.request("tools/call", `{"name":"tool"}`)).Error, "the server did not start (code -32603)")
		require.Empty(t, log.String(), "a caller that leaves is no fault of the service")
		require.Contains(t, <-first, "the server did not start", "no request waits without end")
		close(s.go_)
		require.Contains(t, p.result("tools/call", `{"name":"tool"}`), "awake")
	})
}

func TestErrorsDoNotEchoWithoutEnd(t *testing.T) {
	p := modern(t, newServer(t, &Library{}))
	long := strings.Repeat("é", 1<<20)
	for method, params := range map[string]string{"tools/call": "name", "prompts/get": "name", "resources/read": "uri", "tools/list": "cursor"} {
		err := p.fails(method, fmt.Sprintf(`{%q:%q}`, params, long))
		require.Less(t, len(err.Message)+len(err.Data), 9<<10, method)
		require.True(t, utf8.ValidString(err.Message))
	}
}

type tenant string

func (tenant) Name() string { return "" }

type injected struct{}

func (injected) All(ctx context.Context, t tenant, call *mcpkit.Call, log *slog.Logger, h http.Header, p *oauth.Principal, in where) string {
	return fmt.Sprintln(t, call.Name(), log != nil, h.Get("X-A"), p.Subject, in.City, mcpkit.CallFrom(ctx) == call)
}

func TestParametersByType(t *testing.T) {
	var cleaned []tenant
	srv := newServer(t, &injected{}, mcpkit.Provide(func(ctx context.Context) (tenant, error) {
		return tenant(mcpkit.CallFrom(ctx).Header("X-Tenant")), nil
	}, func(t tenant) { cleaned = append(cleaned, t) }))
	p := modern(t, srv)
	p.header = transport.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"all"}, "X-A": {"a"}, "X-Tenant": {"acme"}}
	resp := p.rpc(as(p), p.request("tools/call", `{"name":"all","arguments":{"city":"Rome"}}`))
	require.Nil(t, resp.Error)
	require.Equal(t, `[{"type":"text","text":"acme all true a ann Rome true\n"}]`, member(t, string(resp.Result), "content"))
	require.Equal(t, []tenant{"acme"}, cleaned)
	require.NotContains(t, modern(t, srv).result("tools/list", "{}"), "tenant", "what is injected shows in no schema")
}

func TestPromptsAndResourcesOfFunctionsThatReadTheCall(t *testing.T) {
	srv := newServer(t, nil)
	echo := func(_ context.Context, call *mcpkit.Call, x string) (any, error) {
		return call.Name() + " " + call.Var("x") + x, nil
	}
	require.NoError(t, srv.Add(mcpkit.NewPrompt("p", echo).Params("x"), mcpkit.NewResource("t://{x}", "t", echo)))
	require.Contains(t, modern(t, srv).result("prompts/get", `{"name":"p","arguments":{"x":"1"}}`), `"p 11"`)
	require.Contains(t, modern(t, srv).result("resources/read", `{"uri":"t://z"}`), `"t://z zz"`)
	require.True(t, srv.RemoveResources("r://1", "t://{x}"))
	require.False(t, srv.RemoveResources("t://{x}"))
	require.True(t, srv.RemovePrompts("p"))
}

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
