package mcpkit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// library has one of everything.
type library struct {
	_ struct {
		Take  mcpkit.Tool     `desc:"Takes a book." hints:"readonly"`
		Blurb mcpkit.Prompt   `params:"title" complete:"title=Titles"`
		Index mcpkit.Resource `uri:"shelf://index" cache:"60s,public"`
		Book  mcpkit.Resource `uri:"shelf://book/{title}" params:"title" complete:"title=Titles"`
	}
}

func (*library) Take(ctx context.Context, call *mcpkit.Call) string {
	call.Progress(1, 2, "half")
	call.Logger().Warn("taken")
	return "taken as " + call.Name()
}
func (*library) Blurb(title string) string { return "a blurb of " + title }
func (*library) Index() string             { return "the index" }
func (*library) Book(title string) string  { return "the text of " + title }
func (*library) Titles(_ context.Context, prefix string) ([]string, error) {
	return []string{prefix + "-one"}, nil
}
func names(t *testing.T, p *peer, method, member, key string) []string { // of a list that fits on a page
	t.Helper()
	var page map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(p.result(method, "{}")), &page))
	var items []map[string]any
	require.NoError(t, json.Unmarshal(page[member], &items))
	all := []string{}
	for _, item := range items {
		all = append(all, item[key].(string))
	}
	return all
}

func TestAMountedServerIsPartOfTheOther(t *testing.T) {
	srv := newServer(t, nil, mcpkit.Name("top", "1"), mcpkit.With(&trips{}))
	srv.MustMount("hall", newServer(t, &library{}))
	for version, p := range versionPeers(t, srv) {
		require.Equal(t, []string{"book", "hall_take"}, names(t, p, "tools/list", "tools", "name"), version)
		require.Equal(t, []string{"guide", "hall_blurb"}, names(t, p, "prompts/list", "prompts", "name"))
		require.Equal(t, []string{"shelf://index"}, names(t, p, "resources/list", "resources", "uri"))
		require.Equal(t, []string{"shelf://book/{title}", "ticket://{id}"}, names(t, p, "resources/templates/list", "resourceTemplates", "uriTemplate"))
		require.Contains(t, p.result("tools/call", `{"name":"hall_take"}`), "taken as hall_take")
		require.Contains(t, p.result("prompts/get", `{"name":"hall_blurb","arguments":{"title":"Emma"}}`), "a blurb of Emma")
		require.Contains(t, p.result("resources/read", `{"uri":"shelf://index"}`), "the index")
		require.Contains(t, p.result("resources/read", `{"uri":"shelf://book/Emma"}`), "the text of Emma")
		for _, ref := range []string{`{"type":"ref/prompt","name":"hall_blurb"}`, `{"type":"ref/resource","uri":"shelf://book/{title}"}`} {
			require.Contains(t, p.result("completion/complete", `{"ref":`+ref+`,"argument":{"name":"title","value":"E"}}`), `"values":["E-one"]`)
		}
		require.EqualError(t, p.fails("tools/call", `{"name":"take"}`), `unknown tool "take" (code -32602)`)
	}
}

func TestWhatCannotBeMountedIsRefusedAtOnce(t *testing.T) {
	other := newServer(t, &library{})
	srv := newServer(t, nil)
	deep := newServer(t, nil)
	deep.MustMount("x", other)
	scoped := newServer(t, nil, mcpkit.Authenticated())
	require.NoError(t, scoped.Add(mcpkit.NewTool("open", func() {}).Scopes("a")))
	first, second := newServer(t, nil, mcpkit.Extend(newRatings().extension())), newServer(t, nil, mcpkit.Extend(newRatings().extension()))
	srv.MustMount("first", first)
	for name, test := range map[string]struct {
		err  error
		want []string
	}{
		"itself":                       {srv.Mount("me", srv), []string{`mcpkit: Mount: mounted as "me" (mount_test.go:`, `a server cannot be mounted within itself`}},
		"what it is within":            {other.Mount("y", deep), []string{`a server cannot be mounted within itself`}},
		"nothing":                      {srv.Mount("n", nil), []string{`the server to mount is nil`}},
		"a bad prefix":                 {srv.Mount("a b", other), []string{`prefix: name "a b" contains ' '; blanks and control characters are not allowed`}},
		"scopes that nobody asks for":  {srv.Mount("s", scoped), []string{`mcpkit: tool "open" (mount_test.go:`, `mounted as "s"`, `it demands the scopes "a", but nobody authenticates callers`}},
		"an extension that is mounted": {srv.Mount("second", second), []string{`mounted as "second"`, `the method "ratings/get" is registered already, by the server mounted as "first" (mount_test.go:`}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Error(t, test.err)
			for _, want := range test.want {
				require.Contains(t, test.err.Error(), want)
			}
		})
	}
	require.EqualError(t, modern(t, srv).fails("tools/list", "{}"), `method "tools/list" is not offered (code -32601)`, "and nothing was mounted")
}

// speaks returns a server whose tool, exact URI and template say who it is.
func speaks(t *testing.T, who string, items ...mcpkit.Item) *mcpkit.Server {
	t.Helper()
	srv := newServer(t, nil, mcpkit.Items(items...))
	say := func() string { return who }
	require.NoError(t, srv.Add(mcpkit.NewTool("tool", say), mcpkit.NewPrompt("prompt", say), mcpkit.NewResource("x://exact", "x", say),
		mcpkit.NewResource("x://{id}/y", "y", func(id string) string { return who })))
	return srv
}

// What is there first stays, exact URIs and templates alike. Only what collides is left out, and the
// log says so once.
func TestEarlierServersSpeakFirst(t *testing.T) {
	var log bytes.Buffer
	srv := newServer(t, nil, mcpkit.Logger(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, srv.Add(mcpkit.NewTool("tool", func() string { return "own" }), mcpkit.NewResource("z://{+all}", "z", func(all string) string { return "own" })))
	first := newServer(t, nil)
	srv.MustMount("", first)
	thief := speaks(t, "thief", mcpkit.NewTool("other", func() string { return "other" }), mcpkit.NewResource("z://mine", "z", func() string { return "thief" }),
		mcpkit.NewResource("x://a/y", "y", func() string { return "thief" }))
	srv.MustMount("", thief)
	p := modern(t, srv)
	read := func(uri string) string { return p.result("resources/read", `{"uri":"`+uri+`"}`) }
	require.Contains(t, p.result("tools/call", `{"name":"tool"}`), `"text":"own"`)
	require.Contains(t, p.result("tools/call", `{"name":"other"}`), `"text":"other"`)
	require.Contains(t, read("z://mine"), `"text":"own"`, "a template of an earlier server is before a URI of a later one")
	require.Contains(t, read("x://exact"), `"text":"thief"`)
	require.Contains(t, read("x://a/y"), `"text":"thief"`)
	require.NotContains(t, p.result("resources/list", "{}"), "z://mine", "its name and description are not those of who answers")
	require.Equal(t, 2, strings.Count(log.String(), "level=WARN"), log.String())
	require.Regexp(t, `resource \\"z://mine\\" is registered by mcpkit: resource \\"z\\" .+ and by mcpkit: resource \\"z\\" .+; the first one stays`, log.String())
	require.Regexp(t, `tool \\"tool\\" is registered by mcpkit: tool \\"tool\\" \(mount_test\.go:\d+\) and by mcpkit: tool \\"tool\\" \(mount_test\.go:\d+\), mounted as \\"\\" \(mount_test\.go:\d+\); the first one stays`, log.String())

	log.Reset()
	say := func() string { return "first" }
	require.NoError(t, first.Add(mcpkit.NewPrompt("prompt", say), mcpkit.NewResource("x://exact", "x", say), mcpkit.NewResource("x://{name}/y", "y", func(name string) string { return "first" })))
	require.Contains(t, p.result("prompts/get", `{"name":"prompt"}`), "first", "the earlier mount speaks, although it came later")
	require.Contains(t, read("x://exact"), `"text":"first"`)
	require.Contains(t, read("x://a/y"), `"text":"first"`)
	require.Equal(t, 3, strings.Count(log.String(), "level=WARN"), log.String())
	log.Reset()
	require.NoError(t, thief.Add(mcpkit.NewTool("more", func() {}), mcpkit.NewTool(strings.Repeat("n", 128), func() {})))
	require.Empty(t, log.String())
	require.True(t, first.RemovePrompts("prompt"))
	require.True(t, srv.RemoveTools("tool"))
	require.Contains(t, p.result("prompts/get", `{"name":"prompt"}`), "thief", "what was left out is there when its name is free")
	require.Contains(t, p.result("tools/call", `{"name":"tool"}`), `"text":"thief"`)
}

func TestNamesThatGetTooLongAreLeftOut(t *testing.T) {
	var log bytes.Buffer
	srv, other := newServer(t, nil, mcpkit.Logger(slog.New(slog.NewTextHandler(&log, nil)))), newServer(t, nil)
	require.NoError(t, other.Add(mcpkit.NewTool(strings.Repeat("n", 128), func() {}), mcpkit.NewTool("fine", func() {})))
	srv.MustMount("p", other)
	require.Equal(t, []string{"p_fine"}, names(t, modern(t, srv), "tools/list", "tools", "name"))
	require.Contains(t, log.String(), "has 130 characters; 1 to 128 are allowed")
}

func TestChangesOfAMountedServerReachTheClientsOfTheOther(t *testing.T) {
	srv, middle, other := newServer(t, nil), newServer(t, nil), newServer(t, &library{})
	srv.MustMount("a", middle)
	middle.MustMount("b", other)
	p := legacy(t, srv, protocol.V20251125)
	p.take()
	require.NoError(t, other.Add(mcpkit.NewTool("late", func() string { return "late" })))
	require.Equal(t, []string{`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}`}, p.take())
	require.Contains(t, p.result("tools/call", `{"name":"a_b_late"}`), "late")
	require.True(t, other.RemoveTools("late"))
	require.Len(t, p.take(), 1)
	require.Equal(t, []string{"a_b_take"}, names(t, p, "tools/list", "tools", "name"))
	require.True(t, other.RemovePrompts("blurb"))
	require.Equal(t, []string{`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{}}`}, p.take())
	require.True(t, other.RemoveResources("shelf://index"))
	require.Equal(t, []string{`{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{}}`}, p.take())
	// Middleware that is added after mounting runs, too.
	var trace []string
	other.Use(tracing(&trace, "other"))
	p.result("tools/call", `{"name":"a_b_take"}`)
	require.Equal(t, []string{"other"}, trace)
}

func TestOneServerInTwoPlaces(t *testing.T) {
	shared := newServer(t, nil)
	require.NoError(t, shared.Add(mcpkit.NewTool("one", func() string { return "1" })))
	left, right, top := newServer(t, nil), newServer(t, nil), newServer(t, nil)
	left.MustMount("l", shared)
	right.MustMount("r", shared)
	top.MustMount("a", left)
	top.MustMount("b", right)
	require.NoError(t, shared.Add(mcpkit.NewTool("two", func() string { return "2" })))
	require.Equal(t, []string{"a_l_one", "a_l_two", "b_r_one", "b_r_two"}, names(t, modern(t, top), "tools/list", "tools", "name"))
	shared.RemoveTools("one")
	require.Equal(t, []string{"a_l_two", "b_r_two"}, names(t, modern(t, top), "tools/list", "tools", "name"))
}

// mountRequests are requests of every method.
var mountRequests = []struct {
	method, params string
	inner          string // what the mounted server calls it; "-" if the mounted server gets no request
}{
	{"tools/call", `{"name":"a_b_take"}`, "take"},
	{"tools/call", `{"name":"a_b_late"}`, "late"},
	{"prompts/get", `{"name":"a_b_blurb","arguments":{"title":"x"}}`, "blurb"},
	{"resources/read", `{"uri":"shelf://index"}`, "shelf://index"},
	{"resources/read", `{"uri":"shelf://book/x"}`, "shelf://book/{title}"},
	{"resources/subscribe", `{"uri":"shelf://index"}`, "shelf://index"},
	{"resources/unsubscribe", `{"uri":"shelf://index"}`, "-"},
	{"subscriptions/listen", `{"notifications":{"resourceSubscriptions":["shelf://index"]}}`, ""},
	{"completion/complete", `{"ref":{"type":"ref/prompt","name":"a_b_blurb"},"argument":{"name":"title","value":""}}`, "blurb"},
	{"completion/complete", `{"ref":{"type":"ref/resource","uri":"shelf://book/{title}"},"argument":{"name":"title","value":""}}`, "shelf://book/{title}"},
	{"tools/list", `{}`, "-"},
	{"prompts/list", `{}`, "-"},
	{"resources/list", `{}`, "-"},
	{"resources/templates/list", `{}`, "-"},
	{"example.com/count", `{}`, ""},
	{"server/discover", `{}`, "-"},
	{"ping", `{}`, "-"},
	{"logging/setLevel", `{"level":"info"}`, "-"},
	{"tools/call", `{"name":"own"}`, "-"},
	{"tools/call", `{"name":"none"}`, "-"},
}

// TestEachChainRunsOnceForEveryMethod sends every request in every version through three servers.
func TestEachChainRunsOnceForEveryMethod(t *testing.T) {
	var trace []string
	note := func(server string) mcpkit.Middleware {
		return func(next mcpkit.Handler) mcpkit.Handler {
			return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
				trace = append(trace, server+" "+call.Method()+" "+call.OwnName())
				require.Same(t, call, mcpkit.CallFrom(ctx))
				return next(ctx, call)
			}
		}
	}
	srv, middle, other := newServer(t, nil), newServer(t, nil), newServer(t, &library{})
	srv.MustMount("a", middle, mcpkit.Around(note("around")))
	middle.MustMount("b", other)
	srv.Use(note("outer"))
	middle.Use(note("middle"))
	other.Use(note("inner"))
	require.NoError(t, srv.Add(mcpkit.NewTool("own", func() {})))
	require.NoError(t, other.Add(mcpkit.NewTool("late", func() {})))
	require.NoError(t, mcpkit.Handle(other, "example.com/count", func(context.Context, struct{}) (map[string]int, error) { return map[string]int{"n": 1}, nil }))
	sent := 0
	for version, p := range versionPeers(t, srv) {
		for _, r := range mountRequests {
			if !offered(r.method, version) {
				continue
			}
			sent++
			trace = nil
			ctx, cancel := context.WithCancel(t.Context())
			if r.method == "subscriptions/listen" {
				cancel() // the request would last as long as the test
			}
			resp := p.rpc(ctx, p.request(r.method, r.params))
			cancel()
			what := fmt.Sprintf("%s %s of %s", r.method, r.params, version)
			require.Equal(t, r.params != `{"name":"none"}`, resp.Error == nil, what)
			var entered, called []string
			for _, line := range trace {
				words := strings.SplitN(line, " ", 3)
				require.Equal(t, r.method, words[1])
				entered, called = append(entered, words[0]), append(called, words[2])
			}
			switch {
			case r.inner == "-":
				require.Equal(t, []string{"outer"}, entered, what)
			case r.method == "example.com/count":
				require.Equal(t, []string{"outer", "middle", "inner"}, entered, what)
			default:
				require.Equal(t, []string{"outer", "around", "middle", "inner"}, entered, what)
				require.Equal(t, r.inner, called[3], what)
			}
		}
	}
	require.Greater(t, sent, 80)
}

// TestAGuardOfAMountedServerHoldsInTheOther refuses everything in the mounted server. What Visible
// refuses is not listed, either.
func TestAGuardOfAMountedServerHoldsInTheOther(t *testing.T) {
	srv, middle, other := newServer(t, nil), newServer(t, nil), newServer(t, &library{})
	srv.MustMount("a", middle)
	middle.MustMount("b", other)
	require.NoError(t, srv.Add(mcpkit.NewTool("own", func() {}), mcpkit.NewResource("own://x", "own", func() string { return "" })))
	other.Use(func(mcpkit.Handler) mcpkit.Handler {
		return func(context.Context, *mcpkit.Call) (mcpkit.Result, error) { return nil, mcpkit.Errorf("not you") }
	})
	require.NoError(t, other.Add(mcpkit.NewTool("late", func() {})))
	for version, p := range versionPeers(t, srv) {
		for _, r := range mountRequests {
			if !offered(r.method, version) || r.inner == "-" || strings.HasSuffix(r.method, "/list") || r.method == "subscriptions/listen" || r.method == "example.com/count" {
				continue
			}
			resp := p.rpc(t.Context(), p.request(r.method, r.params))
			require.Contains(t, string(jsonrpc.AppendResponse(nil, resp)), "not you", "%s %s", r.method, r.params)
		}
	}

	require.Contains(t, acknowledged(t, srv, `{"resourceSubscriptions":["shelf://index","own://x"]}`), `"resourceSubscriptions":["own://x"]`, "the rest is not agreed to")
}

// TestAGuardOfTheOuterServerCoversWhatIsMountedLater calls tools that are mounted and registered
// after the guard.
func TestAGuardOfTheOuterServerCoversWhatIsMountedLater(t *testing.T) {
	srv, other := newServer(t, nil), newServer(t, &library{})
	srv.Use(func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			if slices.Contains([]string{"initialize", "notifications/initialized"}, call.Method()) {
				return next(ctx, call)
			}
			return nil, mcpkit.Errorf("refused above")
		}
	})
	srv.MustMount("a", other)
	require.NoError(t, other.Add(mcpkit.NewTool("late", func() string { return "reached" })))
	for version, p := range versionPeers(t, srv) {
		for _, params := range []string{`{"name":"a_take"}`, `{"name":"a_late"}`} {
			require.Contains(t, p.result("tools/call", params), "refused above", version)
		}
		require.EqualError(t, p.fails("resources/read", `{"uri":"shelf://index"}`), "refused above (code -32603)")
	}
}

// mountedVault is the vault two servers deep.
func mountedVault(t *testing.T, opts ...mcpkit.Option) (*mcpkit.Server, *vault) {
	inner, v := vaultServer(t, opts...)
	opts = append([]mcpkit.Option{mcpkit.Authenticated(), mcpkit.PageSize(2), mcpkit.Name("vault", "1.0.0")}, opts...)
	middle, srv := newServer(t, nil, opts...), newServer(t, nil, opts...)
	srv.MustMount("", middle)
	middle.MustMount("", inner)
	inner.Use(func(next mcpkit.Handler) mcpkit.Handler { return next })
	return srv, v
}

func TestNothingMountedIsReachedUnauthorized(t *testing.T) {
	for name, opts := range map[string][]mcpkit.Option{"hidden": nil, "step up": {mcpkit.StepUp()}} {
		t.Run(name, func(t *testing.T) {
			srv, v := mountedVault(t, opts...)
			for version, p := range versionPeers(t, srv) {
				for _, c := range callers {
					for _, g := range gates {
						for _, r := range reaches {
							if offered(r.method, version) {
								probe(t, p, v, r, g, c, len(opts) > 0)
							}
						}
						keys, all := pages(t, p, c, "tools/list", "tools", "name", "")
						require.Equal(t, c.sees(g, len(opts) > 0), slices.Contains(keys, "tool-"+g.name))
						if !c.sees(g, len(opts) > 0) {
							require.NotContains(t, all, secret(g.name))
						}
					}
					if version.Modern() {
						for _, g := range gates {
							heard := strings.Join(listens(t, srv, p, c, []string{"doc://" + g.name}, len(opts) > 0), "\n")
							require.Equal(t, c.p.Has(g.scopes...), strings.Contains(heard, "doc://"+g.name))
						}
					}
				}
			}
		})
	}
}

func TestMountedMethodsReportAndLogOnTheStreamOfTheCall(t *testing.T) {
	srv := newServer(t, nil)
	srv.MustMount("hall", newServer(t, &library{}, mcpkit.Logger(slog.New(slog.DiscardHandler))))
	for version, p := range versionPeers(t, srv) {
		p.take()
		meta := `{"progressToken":7}`
		if version.Modern() {
			meta = `{"progressToken":7,"io.modelcontextprotocol/logLevel":"info",` + strings.TrimPrefix(modernMeta, `"_meta":{`)
		}
		p.raw(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hall_take","_meta":`+meta+`}}`)
		message := `,"message":"half"`
		if version < protocol.V20250326 {
			message = ""
		}
		require.Equal(t, []string{
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1,"total":2` + message + `}}`,
			`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"hall_take","data":"taken"}}`,
		}, p.take(), version)
	}
}

func TestCancellationReachesMountedMethods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := newServer(t, nil, mcpkit.ToolTimeout(time.Minute))
		require.NoError(t, other.Add(mcpkit.NewTool("wait", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })))
		srv := newServer(t, nil, mcpkit.ToolTimeout(time.Second), mcpkit.Logger(slog.New(slog.DiscardHandler)))
		srv.MustMount("o", other)
		p := modern(t, srv)
		begun := time.Now()
		require.Contains(t, p.result("tools/call", `{"name":"o_wait"}`), "timed out after 1m0s")
		require.Equal(t, time.Minute, time.Since(begun), "the limit is that of the mounted server")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun = time.Now()
		p.rpc(ctx, p.request("tools/call", `{"name":"o_wait"}`))
		require.Equal(t, time.Second, time.Since(begun))
	})
}

func TestUpdatesOfMountedResourcesReachTheirSubscribers(t *testing.T) {
	srv, middle, other, liar := newServer(t, nil), newServer(t, nil), newServer(t, &library{}), newServer(t, nil)
	srv.MustMount("a", middle)
	middle.MustMount("b", other)
	srv.MustMount("liar", liar)
	p := legacy(t, srv, protocol.V20251125)
	require.False(t, other.ResourceUpdated("shelf://index"), "nobody asked")
	p.result("resources/subscribe", `{"uri":"shelf://index"}`)
	p.take()
	require.True(t, other.ResourceUpdated("shelf://index"))
	require.Equal(t, []string{`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"shelf://index"}}`}, p.take())
	require.False(t, liar.ResourceUpdated("shelf://index"), "it is not its own")
	require.Empty(t, p.take())
	p.result("resources/unsubscribe", `{"uri":"shelf://index"}`)
	require.False(t, other.ResourceUpdated("shelf://index"))
}

// starter counts its starts and ends.
type starter struct{ started, closed int }

func (s *starter) Start(context.Context) error { s.started++; return nil }
func (s *starter) Close() error                { s.closed++; return errors.New("stuck") }
func (s *starter) Ping() string                { return "pong" }

func TestAMountedServerStartsAndClosesWithTheOther(t *testing.T) {
	a, late := &starter{}, &starter{}
	srv, other := newServer(t, nil), newServer(t, a)
	srv.MustMount("o", other)
	require.Zero(t, a.started)
	require.Contains(t, modern(t, srv).result("tools/call", `{"name":"o_ping"}`), "pong")
	require.NoError(t, other.Register(late, mcpkit.Prefix("late")))
	require.Contains(t, modern(t, srv).result("tools/call", `{"name":"o_late_ping"}`), "pong")
	require.Equal(t, []int{1, 1}, []int{a.started, late.started}, "also what comes after the start")
	require.ErrorContains(t, srv.Close(), "stuck")
	require.Equal(t, []int{1, 1}, []int{a.closed, late.closed})
}

func TestMiddlewareOfAMountedServerSeesWhatTheOuterOneKept(t *testing.T) {
	type outer struct{}
	srv, other := newServer(t, nil, mcpkit.Authenticated()), newServer(t, &library{}, mcpkit.Authenticated())
	srv.MustMount("o", other)
	srv.Use(func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			call.Set(outer{}, call.Name()+" "+call.Target())
			result, err := next(ctx, call)
			require.Equal(t, "mine", call.Get(outer{}))
			return result, err
		}
	})
	var ref, principal string
	other.Use(func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			require.Equal(t, "o_take o_take", call.Get(outer{}))
			require.Equal(t, "Takes a book.", call.Tool().Description)
			call.Set(outer{}, "mine")
			ref, principal = call.Ref(), call.Principal().Subject
			return nil, errors.New("hidden")
		}
	})
	p := modern(t, srv)
	resp := p.rpc(oauth.NewContext(t.Context(), &oauth.Principal{Subject: "ann"}), p.request("tools/call", `{"name":"o_take"}`))
	require.Contains(t, string(resp.Result), "internal error (ref "+ref+")", "both sides speak of the same call")
	require.Equal(t, "ann", principal)
}

func TestWhatAMountedServerRegistersAtItsStartIsThereForTheFirstRequest(t *testing.T) {
	s := &registersLate{}
	other := newServer(t, s)
	s.srv = other
	srv := newServer(t, nil)
	srv.MustMount("o", other)
	require.Equal(t, []string{"o_found"}, names(t, modern(t, srv), "tools/list", "tools", "name"))
}

type registersLate struct{ srv *mcpkit.Server }

func (s *registersLate) Start(context.Context) error {
	return s.srv.Add(mcpkit.NewTool("found", func() {}))
}

// TestMountedServersChangeWhileTheyAreUsed registers, removes, mounts and calls at the same time,
// in servers that are mounted in each other in two ways.
func TestMountedServersChangeWhileTheyAreUsed(t *testing.T) {
	shared, left, right, top := newServer(t, nil), newServer(t, nil), newServer(t, nil), newServer(t, nil)
	require.NoError(t, shared.Add(mcpkit.NewTool("stays", func() string { return "here" })))
	left.MustMount("l", shared)
	right.MustMount("r", shared)
	top.MustMount("a", left)
	top.MustMount("b", right)
	const each = 30
	var all sync.WaitGroup
	for i, s := range []*mcpkit.Server{shared, left, right, top} {
		all.Go(func() {
			for n := range each {
				name := fmt.Sprintf("t%d_%d", i, n)
				if err := s.Add(mcpkit.NewTool(name, func() {})); err != nil {
					t.Error(err)
				}
				if n%2 == 0 && !s.RemoveTools(name) {
					t.Error(name + " was not there")
				}
			}
		})
	}
	all.Go(func() {
		for n := range each {
			top.MustMount(fmt.Sprintf("m%d", n), newServer(t, nil))
		}
	})
	all.Go(func() {
		for range each {
			shared.Use(func(next mcpkit.Handler) mcpkit.Handler { return next })
		}
	})
	all.Go(func() {
		p := modern(t, top)
		for range each {
			for _, name := range []string{"a_l_stays", "b_r_stays"} {
				resp := p.rpc(t.Context(), p.request("tools/call", fmt.Sprintf(`{"name":%q}`, name)))
				if resp.Error != nil {
					t.Error(resp.Error)
				}
			}
			p.rpc(t.Context(), p.request("tools/list", "{}"))
		}
	})
	all.Wait()
	// One tool stays, and half of those that each goroutine added: 15 of the shared server, twice.
	require.Len(t, names(t, modern(t, newTop(t, top)), "tools/list", "tools", "name"), 2+2*15+3*15)
}

// newTop mounts a server in one with larger pages.
func newTop(t *testing.T, s *mcpkit.Server) *mcpkit.Server {
	all := newServer(t, nil, mcpkit.PageSize(1000))
	all.MustMount("", s)
	return all
}

func TestRoundsOfMountedMethodsMayReachDifferentReplicas(t *testing.T) {
	mounted := func(s *trips) *mcpkit.Server {
		srv, middle := newServer(t, nil, mcpkit.StateKeys(key)), newServer(t, nil)
		middle.MustMount("b", newServer(t, s)) // clients never see its keys
		srv.MustMount("a", middle)
		return srv
	}
	a, b := &trips{}, &trips{}
	result, rounds := drive(t, []*mcpkit.Server{mounted(a), mounted(b)}, "tools/call", `{"name":"a_b_book","arguments":{"city":"Rome"}}`)
	require.Equal(t, `[{"type":"text","text":"hold-Monday-7: Go!"}]`, member(t, result, "content"))
	require.Equal(t, 4, rounds)
	require.Equal(t, 1, a.holds+b.holds)
}
