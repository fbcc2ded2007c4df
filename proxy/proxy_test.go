package proxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/proxy"
	"github.com/mcpkit/mcpkit-go/transport/sse"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

var silent = slog.New(slog.DiscardHandler)

// A desk is a server with everything that a proxy forwards.
type desk struct {
	_ struct {
		Book   mcpkit.Tool
		Fail   mcpkit.Tool
		Refuse mcpkit.Tool
		Crash  mcpkit.Tool
		Again  mcpkit.Tool `hints:"idempotent"`
		Count  mcpkit.Tool `hints:"readonly"`
		Wait   mcpkit.Tool
		Greet  mcpkit.Prompt   `params:"who" complete:"who=Names"`
		Note   mcpkit.Resource `uri:"desk://note/{id}" mime:"text/plain" params:"id" complete:"id=Names" cache:"60s,public"`
		Index  mcpkit.Resource `uri:"desk://index"`
	}
	booked  atomic.Int64
	waiting chan struct{} // a token for each Wait that began
	ended   chan error    // how each Wait ended
}

type order struct {
	City string `json:"city"`
}

type ticket struct {
	City  string   `json:"city"`
	Days  int      `json:"days"`
	Roots []string `json:"roots"`
	Says  string   `json:"says"`
}

type days struct {
	Days int `json:"days" validate:"required,min=1"`
}

// Book asks the user, the model and the client, and reports progress.
func (d *desk) Book(ctx context.Context, in order, call *mcpkit.Call) (ticket, error) {
	call.Progress(1, 3, "asking")
	call.Logger().Warn("booking " + in.City)
	when, err := mcpkit.Elicit[days](ctx, "How many days in "+in.City+"?")
	if err != nil {
		return ticket{}, err
	}
	if _, err := mcpkit.Once(ctx, "book", func() (bool, error) { d.booked.Add(1); return true, nil }); err != nil {
		return ticket{}, err
	}
	call.Progress(2, 3, "paying")
	more, err := mcpkit.Elicit[days](ctx, "How many more?")
	if err != nil {
		return ticket{}, err
	}
	says, err := mcpkit.Sample(ctx, &protocol.CreateMessageParams{MaxTokens: 5, Messages: []protocol.SamplingMessage{
		{Role: protocol.RoleUser, Content: protocol.SamplingContents{mcpkit.Text("a slogan")}}}})
	if err != nil {
		return ticket{}, err
	}
	t := ticket{City: in.City, Days: when.Days + more.Days, Says: says.Content[0].(*protocol.TextContent).Text}
	roots, err := mcpkit.Roots(ctx)
	for _, r := range roots {
		t.Roots = append(t.Roots, r.URI)
	}
	return t, err
}

func (*desk) Fail() error { return mcpkit.Errorf("out of paper") }
func (*desk) Refuse() error {
	return &jsonrpc.Error{Code: 4711, Message: "not here", Data: json.RawMessage(`{"why":[1]}`)}
}
func (*desk) Crash()         { os.Exit(3) }
func (d *desk) Again() int64 { return d.booked.Add(1) }
func (*desk) Count() []int   { return []int{1, 2} }
func (d *desk) Wait(ctx context.Context, call *mcpkit.Call) error {
	call.Progress(1, 2, "waiting")
	d.waiting <- struct{}{}
	<-ctx.Done()
	d.ended <- context.Cause(ctx)
	return ctx.Err()
}
func (*desk) Greet(who string) string { return "Hello " + who }
func (*desk) Note(id string) (string, error) {
	if id == "none" {
		return "", mcpkit.ErrNotFound
	}
	return "note " + id, nil
}
func (*desk) Index() string { return "index" }
func (*desk) Names(_ context.Context, p string) ([]string, error) {
	return []string{p + "a", p + "b"}, nil
}

// A user answers questions and records what it receives.
type user struct {
	mu     sync.Mutex
	asked  []string
	logged []string
	action string        // for forms; accept if empty
	takes  time.Duration // to answer
	absent bool          // it does not answer
}

func (u *user) Elicit(_ context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	time.Sleep(u.takes)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.absent {
		return nil, errors.New("nobody is at home")
	}
	u.asked = append(u.asked, p.Message)
	if u.action != "" {
		return &protocol.ElicitResult{Action: u.action}, nil
	}
	return &protocol.ElicitResult{Action: protocol.ElicitAccept, Content: json.RawMessage(`{"days":` + fmt.Sprint(len(u.asked)) + `}`)}, nil
}

func (u *user) Sample(context.Context, *protocol.CreateMessageParams) (*protocol.CreateMessageResult, error) {
	return &protocol.CreateMessageResult{Role: protocol.RoleAssistant, Model: "m", Content: protocol.SamplingContents{&protocol.TextContent{Text: "Go!"}}}, nil
}

func (u *user) Roots(context.Context) ([]protocol.Root, error) {
	return []protocol.Root{{URI: "file:///home"}}, nil
}

func (u *user) Log(_ context.Context, p *protocol.LoggingMessageParams) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.logged = append(u.logged, string(p.Level)+" "+string(p.Data))
}

// targets are the ways to reach a remote server.
var targets = map[string]func(t *testing.T, h *mcpkit.Server) any{
	"memory": func(_ *testing.T, h *mcpkit.Server) any { return client.InMemory(h) },
	"HTTP": func(t *testing.T, h *mcpkit.Server) any {
		handler := streamable.NewHandler(h, nil)
		s := httptest.NewServer(handler)
		t.Cleanup(func() {
			s.CloseClientConnections()
			s.Close()
		})
		return s.URL
	},
	"WebSocket": func(t *testing.T, h *mcpkit.Server) any {
		handler := websocket.NewHandler(h, nil)
		s := httptest.NewServer(handler)
		t.Cleanup(func() {
			handler.Close()
			s.Close()
		})
		return strings.Replace(s.URL, "http", "ws", 1)
	},
}

// fronts are the ways to reach the server with the mounted proxy, by the transport to the remote
// server.
var fronts = map[string]func(t *testing.T, h *mcpkit.Server) any{"memory": targets["memory"], "HTTP": targets["memory"], "WebSocket": targets["WebSocket"]}

// mounted returns a server with a proxy of the server at target, mounted as "far".
func mounted(t *testing.T, target any, v protocol.Version, opts ...proxy.Option) *mcpkit.Server {
	t.Helper()
	far := proxy.MustNew(target, append([]proxy.Option{proxy.Logger(silent), proxy.Dial(client.Version(v), client.Stderr(io.Discard))}, opts...)...)
	srv := mcpkit.MustNew(nil, mcpkit.Logger(silent), mcpkit.Name("near", "1"))
	srv.MustMount("far", far)
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	return srv
}

func dial(t *testing.T, target any, v protocol.Version, opts ...client.DialOption) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), target, append([]client.DialOption{client.Version(v), client.Logger(silent), client.LogLevel(protocol.LevelInfo)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// inEveryWay runs f for legacy and modern clients on both sides, and over each transport to the
// remote server.
func inEveryWay(t *testing.T, f func(t *testing.T, d *desk, far *mcpkit.Server, near any, caller, spoken protocol.Version)) {
	for transport, target := range targets {
		for _, inner := range []protocol.Version{protocol.V20250618, protocol.V20251125, protocol.V20260728} {
			for _, outer := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
				t.Run(fmt.Sprintf("%s %s for %s", transport, inner, outer), func(t *testing.T) {
					d := &desk{waiting: make(chan struct{}, 1), ended: make(chan error, 1)}
					far := mcpkit.MustNew(d, mcpkit.Logger(silent))
					f(t, d, far, fronts[transport](t, mounted(t, target(t, far), inner)), outer, inner)
				})
			}
		}
	}
}

func TestQuestionsAndProgressAreForwarded(t *testing.T) {
	inEveryWay(t, func(t *testing.T, d *desk, _ *mcpkit.Server, near any, caller, _ protocol.Version) {
		u := &user{}
		c := dial(t, near, caller, client.Handlers(u))
		var progress []string
		got, err := client.Call[ticket](t.Context(), c, "far_book", order{"Rome"}, client.OnProgress(func(p *protocol.ProgressParams) {
			progress = append(progress, fmt.Sprintf("%v of %v, %s", p.Progress, *p.Total, p.Message))
		}))
		require.NoError(t, err)
		require.Equal(t, ticket{City: "Rome", Days: 3, Roots: []string{"file:///home"}, Says: "Go!"}, got)
		u.mu.Lock()
		defer u.mu.Unlock()
		require.Equal(t, []string{"How many days in Rome?", "How many more?"}, u.asked, "each question is asked once")
		require.EqualValues(t, 1, d.booked.Load(), "Once runs once")
		require.Contains(t, progress, "1 of 3, asking")
	})
}

// On a connection that calls share, a log message may belong to another caller.
func TestLogMessagesAreForwardedOnTheStreamOfACallOrForOneUser(t *testing.T) {
	for transport, target := range targets {
		for _, v := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
			for _, oneUser := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s %v", transport, v, oneUser), func(t *testing.T) {
					var opts []proxy.Option
					if oneUser {
						opts = append(opts, proxy.OneUser())
					}
					near := mounted(t, target(t, mcpkit.MustNew(&desk{}, mcpkit.Logger(silent))), v, opts...)
					u := &user{}
					_, err := dial(t, near, protocol.V20260728, client.Handlers(u)).CallTool(t.Context(), "far_book", order{"Rome"})
					require.NoError(t, err)
					u.mu.Lock()
					defer u.mu.Unlock()
					require.Equal(t, oneUser || transport == "HTTP", slices.Contains(u.logged, `warning "booking Rome"`), u.logged)
				})
			}
		}
	}
}

func TestResultsAndErrorsAreNotChanged(t *testing.T) {
	inEveryWay(t, func(t *testing.T, _ *desk, far *mcpkit.Server, near any, caller, spoken protocol.Version) {
		c := dial(t, near, caller)
		direct := dial(t, far, min(caller, spoken)) // an older version has fewer members
		for _, call := range []struct{ method, params, far string }{
			{"tools/call", `{"name":"%sfail"}`, "far_"},
			{"tools/call", `{"name":"%scount"}`, "far_"},
			{"prompts/get", `{"name":"%sgreet","arguments":{"who":"Ann"}}`, "far_"},
			{"resources/read", `{"uri":"desk://index"}`, ""},
			{"resources/read", `{"uri":"desk://note/1"}`, ""},
			{"completion/complete", `{"ref":{"type":"ref/prompt","name":"%sgreet"},"argument":{"name":"who","value":"A"}}`, "far_"},
			{"completion/complete", `{"ref":{"type":"ref/resource","uri":"desk://note/{id}"},"argument":{"name":"id","value":"1"}}`, ""},
		} {
			ask := func(c *client.Client, prefix string) string {
				params := call.params
				if call.far != "" {
					params = fmt.Sprintf(call.params, prefix)
				}
				var raw map[string]any
				require.NoError(t, c.Request(t.Context(), call.method, json.RawMessage(params), &raw), params)
				delete(raw, "_meta")
				delete(raw, "resultType")
				delete(raw, "ttlMs") // legacy servers do not send it
				delete(raw, "cacheScope")
				b, err := json.Marshal(raw)
				require.NoError(t, err)
				return string(b)
			}
			require.Equal(t, ask(direct, ""), ask(c, call.far), call.params)
		}
		_, err := c.CallTool(t.Context(), "far_refuse", nil)
		rpc, ok := errors.AsType[*jsonrpc.Error](err)
		require.True(t, ok, err)
		require.Equal(t, &jsonrpc.Error{Code: 4711, Message: "not here", Data: json.RawMessage(`{"why":[1]}`)}, rpc)
		_, err = c.ReadResource(t.Context(), "desk://note/none")
		require.True(t, protocol.IsResourceNotFound(err), err)
		_, err = c.CallTool(t.Context(), "far_book", map[string]any{"citi": 1})
		require.ErrorContains(t, err, `did you mean`, "the remote server checks the arguments")
	})
}

func TestCancellationReachesTheRemoteServer(t *testing.T) {
	inEveryWay(t, func(t *testing.T, d *desk, _ *mcpkit.Server, near any, caller, _ protocol.Version) {
		c := dial(t, near, caller)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		// Ends when the call does.
		go func() { <-d.waiting; cancel() }()
		_, err := c.CallTool(ctx, "far_wait", nil)
		require.ErrorIs(t, err, context.Canceled)
		require.Error(t, <-d.ended)
	})
}

func TestChangesAreForwarded(t *testing.T) {
	inEveryWay(t, func(t *testing.T, _ *desk, far *mcpkit.Server, near any, caller, _ protocol.Version) {
		c := dial(t, near, caller)
		changes, err := c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"desk://index", "desk://note/1"}})
		require.NoError(t, err)
		defer changes.Close()
		require.True(t, far.ResourceUpdated("desk://note/1"))
		change, err := changes.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, client.Change{Kind: client.ResourceUpdated, URI: "desk://note/1"}, change)
		_, err = c.Tool(t.Context(), "far_late")
		require.EqualError(t, err, `client: the server has no tool "far_late"`)
		require.NoError(t, far.Add(mcpkit.NewTool("late", func() string { return "late" })))
		change, err = changes.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, client.ToolsChanged, change.Kind)
		_, err = c.Tool(t.Context(), "far_late", client.Fresh())
		require.NoError(t, err)
		got, err := client.Call[string](t.Context(), c, "far_late", nil)
		require.NoError(t, err)
		require.Equal(t, "late", got)
	})
}

func TestDefinitionsKeepUnknownMembers(t *testing.T) {
	on := map[string]string{
		"server/discover": discovered,
		"tools/list": `"tools":[` +
			`{"name":"odd","inputSchema":{"type":"object","x":{"$ref":"#/y"}},"outputSchema":{"type":"array"},"com.example/price":{"eur":1.50}},` +
			`{"name":"a b","inputSchema":{"type":"object"}},{"name":"files/read","inputSchema":{"type":"object"}},{"name":"odd","inputSchema":{"type":"object"}}]`,
		"prompts/list": `"prompts":[]`, "resources/list": `"resources":[]`, "resources/templates/list": `"resourceTemplates":[]`,
		"tools/call": `"content":[{"type":"hologram","beams":[1]}],"structuredContent":[1.50],"com.example/cost":7`,
	}
	url := answering(t, func(req *jsonrpc.Request) (string, *jsonrpc.Error) { return complete(on[req.Method]), nil })
	near := mounted(t, url, protocol.V20260728)
	ctx := oauth.NewContext(t.Context(), &oauth.Principal{Subject: "ann"})
	for v, want := range map[protocol.Version][]string{
		protocol.V20260728: {
			`[{"name":"far_files/read","inputSchema":{"type":"object"}},` +
				`{"name":"far_odd","inputSchema":{"type":"object","x":{"$ref":"#/y"}},"outputSchema":{"type":"array"},"com.example/price":{"eur":1.50}}]`,
			`[1.50]`},
		protocol.V20251125: {
			`[{"name":"far_files/read","inputSchema":{"type":"object"}},` +
				`{"name":"far_odd","inputSchema":{"type":"object","x":{"$ref":"#/y"}},` +
				`"outputSchema":{"type":"object","properties":{"result":{"type":"array"}},"required":["result"],"additionalProperties":false},"com.example/price":{"eur":1.50}}]`,
			`{"result":[1.50]}`},
	} {
		c := dial(t, near, v)
		var list, result map[string]json.RawMessage
		require.NoError(t, c.Request(ctx, "tools/list", nil, &list))
		require.Equal(t, want[0], string(list["tools"]), "invalid entries are left out")
		require.NoError(t, c.Request(ctx, "tools/call", json.RawMessage(`{"name":"far_odd"}`), &result))
		require.Equal(t, `[{"type":"hologram","beams":[1]}]`, string(result["content"]))
		require.Equal(t, want[1], string(result["structuredContent"]))
		require.Equal(t, "7", string(result["com.example/cost"]))
	}
}

func TestNothingOfTheCallerIsForwarded(t *testing.T) {
	seen := make(chan http.Header, 64)
	far := mcpkit.MustNew(&desk{}, mcpkit.Logger(silent))
	handler := streamable.NewHandler(far, nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Clone()
		handler.ServeHTTP(w, r)
	}))
	defer s.Close()
	defer s.CloseClientConnections()
	near := mounted(t, s.URL, protocol.V20260728, proxy.Dial(client.Header("Authorization", "Bearer own")))
	front := httptest.NewServer(streamable.NewHandler(near, nil))
	defer front.Close()
	defer front.CloseClientConnections()
	c := dial(t, front.URL, protocol.V20260728, client.Header("Authorization", "Bearer of-the-caller"), client.Header("Cookie", "id=1"), client.Header("X-User", "ann"))
	_, err := c.CallTool(t.Context(), "far_count", nil)
	require.NoError(t, err)
	require.NotEmpty(t, seen)
	for range len(seen) {
		h := <-seen
		require.Equal(t, []string{"Bearer own"}, h["Authorization"])
		require.NotContains(t, h, "Cookie")
		require.NotContains(t, h, "X-User")
	}
}

func TestDecliningDiffersFromNotBeingAble(t *testing.T) {
	inEveryWay(t, func(t *testing.T, _ *desk, _ *mcpkit.Server, near any, caller, _ protocol.Version) {
		decliner := dial(t, near, caller, client.Handlers(&user{action: protocol.ElicitDecline}))
		_, err := decliner.CallTool(t.Context(), "far_book", order{"Rome"})
		require.ErrorContains(t, err, "the user declined")
		mute := dial(t, near, caller)
		_, err = mute.CallTool(t.Context(), "far_book", order{"Rome"})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "internal error")
	})
}

func TestScopesHideTheRemoteServer(t *testing.T) {
	for scope, hidden := range map[string]bool{"other": true, "far:use": false} {
		far := mcpkit.MustNew(&desk{}, mcpkit.Logger(silent))
		p := proxy.MustNew(client.InMemory(far), proxy.Scopes("far:use"), proxy.Logger(silent))
		near := mcpkit.MustNew(nil, mcpkit.Logger(silent), mcpkit.TrustLocal(scope))
		require.NoError(t, near.Mount("far", p))
		defer near.Close()
		c := dial(t, near, protocol.V20251125)
		for _, call := range []struct{ method, params, why string }{
			{"tools/call", `{"name":"far_count"}`, `unknown tool "far_count"`},
			{"prompts/get", `{"name":"far_greet","arguments":{"who":"Ann"}}`, `unknown prompt "far_greet"`},
			{"resources/read", `{"uri":"desk://note/1"}`, `"desk://note/1" not found`},
			{"resources/subscribe", `{"uri":"desk://index"}`, `"desk://index" not found`},
			{"completion/complete", `{"ref":{"type":"ref/prompt","name":"far_greet"},"argument":{"name":"who","value":"A"}}`, `unknown prompt "far_greet"`},
		} {
			var raw map[string]any
			err := c.Request(t.Context(), call.method, json.RawMessage(call.params), &raw)
			if hidden {
				require.ErrorContains(t, err, call.why)
			} else {
				require.NoError(t, err, call.params)
			}
		}
		require.Equal(t, hidden, !far.Subscribed("desk://index"))
	}
}

func TestAnHTTPSSEServerIsMounted(t *testing.T) {
	handler := sse.NewHandler(mcpkit.MustNew(&desk{}, mcpkit.Logger(silent)), nil)
	s := httptest.NewServer(handler)
	defer s.Close()
	defer handler.Close()
	near := mounted(t, s.URL+"/sse", protocol.V20241105)
	for _, v := range protocol.Supported {
		got, err := dial(t, near, v).CallTool(t.Context(), "far_count", nil)
		require.NoError(t, err, v)
		require.Equal(t, "[1,2]", got.Content[0].(*protocol.TextContent).Text, v)
	}
}

func TestForwardedCallsHaveTheMetaOfTheProxy(t *testing.T) {
	for _, v := range protocol.Supported {
		far := mcpkit.MustNew(nil, mcpkit.Logger(silent))
		require.NoError(t, far.Add(mcpkit.NewTool("parent", func(call *mcpkit.Call) string {
			return string(call.Meta("traceparent")) + string(call.Meta("own"))
		})))
		near := mounted(t, client.InMemory(far), v, proxy.Meta(func(ctx context.Context) protocol.Meta {
			return protocol.Meta{"traceparent": json.RawMessage(`"of ` + mcpkit.CallFrom(ctx).OwnName() + `"`)}
		}))
		got, err := dial(t, near, protocol.V20260728).CallTool(t.Context(), "far_parent", nil, client.Meta("traceparent", "of the caller"), client.Meta("own", 1))
		require.NoError(t, err)
		require.Equal(t, `"of parent"1`, got.Content[0].(*protocol.TextContent).Text, v)
	}
}

func TestInvalidTargetsAreRefusedAtOnce(t *testing.T) {
	_, err := proxy.New("htp://x", proxy.Optional())
	require.EqualError(t, err, `proxy: "htp://x": the scheme must be http, https, ws or wss`)
}

// asChild is the argument that makes this binary a stdio server.
const asChild = "-serve-child"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asChild {
		if err := mcpkit.Serve(&desk{waiting: make(chan struct{}, 64), ended: make(chan error, 64)}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testkit.VerifyTestMain(m)
}

// taskServer returns a server whose tool brew runs only as a task, which asks a question. Its list
// says so unless silent is set. Pour is a plain tool.
func taskServer(t *testing.T, v protocol.Version, silent bool) string {
	mark := `,"execution":{"taskSupport":"required"}`
	if v.Modern() {
		mark = `,"_meta":{"io.github.mcpkit/task":"required"}`
	}
	if silent {
		mark = ""
	}
	const text = `{"resultType":"complete","content":[{"type":"text","text":"tea"}]}`
	task := func(resultType, status, rest string) string {
		return `{"resultType":"` + resultType + `","taskId":"t1","status":"` + status + `","createdAt":"2026-11-22T18:00:00Z","lastUpdatedAt":"2026-11-22T18:00:00Z","ttlMs":null,"pollIntervalMs":100` + rest + `}`
	}
	var mu sync.Mutex
	answered := false
	respond := func(req *jsonrpc.Request) (string, *jsonrpc.Error) {
		mu.Lock()
		defer mu.Unlock()
		switch req.Method {
		case "server/discover":
			if v.Modern() {
				return `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"ttlMs":0,"cacheScope":"public"}`, nil
			}
		case "initialize":
			return `{"protocolVersion":"` + string(v) + `","capabilities":{"tools":{}},"serverInfo":{"name":"tea","version":"1"}}`, nil
		case "tools/list":
			return `{"resultType":"complete","ttlMs":0,"cacheScope":"public","tools":[{"name":"brew","inputSchema":{"type":"object"}` + mark + `},{"name":"pour","inputSchema":{"type":"object"}}]}`, nil
		case "tools/call":
			switch {
			case string(req.Param("name")) == `"pour"`:
				return text, nil
			case strings.Contains(string(req.Params), protocol.ExtensionTasks):
				answered = false
				return task("task", "working", `,"statusMessage":"boiling"`), nil
			}
			return "", protocol.MissingClientCapability(protocol.ClientCapabilities{Extensions: map[string]protocol.Object{protocol.ExtensionTasks: {}}}, "brew needs tasks")
		case "tasks/update":
			answered = true
			return `{"resultType":"complete"}`, nil
		case "tasks/get":
			if answered {
				return task("complete", "completed", `,"result":`+text), nil
			}
			return task("complete", "input_required", `,"inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"form","message":"kind?","requestedSchema":{"type":"object","properties":{"days":{"type":"integer"}}}}}}`), nil
		}
		return "", jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no such method")
	}
	return answering(t, respond)
}

func TestToolsThatRunOnlyAsTasksAreNotOffered(t *testing.T) {
	for _, v := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
		t.Run(string(v), func(t *testing.T) {
			c := dial(t, mounted(t, taskServer(t, v, false), v), protocol.V20260728)
			var names []string
			for tool, err := range c.Tools(t.Context()) {
				require.NoError(t, err)
				names = append(names, tool.Name)
			}
			require.Equal(t, []string{"far_pour"}, names)
			out, err := client.Call[string](t.Context(), c, "far_pour", nil)
			require.NoError(t, err)
			require.Equal(t, "tea", out)
		})
	}
}

func TestACallOfAToolThatRunsOnlyAsATaskSaysSo(t *testing.T) {
	near := mounted(t, taskServer(t, protocol.V20260728, true), protocol.V20260728)
	for _, v := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
		_, err := dial(t, near, v, client.Tasks()).CallTool(t.Context(), "far_brew", nil)
		require.EqualError(t, err, `tool "far_brew": this tool of the remote server "remote" runs only as a task, and this server does not call it as one`)
	}
}

func TestTheProxyFollowsTasks(t *testing.T) {
	for _, v := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
		t.Run(string(v), func(t *testing.T) {
			near := mounted(t, taskServer(t, protocol.V20260728, false), protocol.V20260728, proxy.Dial(client.Tasks()))
			u := &user{}
			c := dial(t, near, v, client.Handlers(u))
			out, err := client.Call[string](t.Context(), c, "far_brew", nil)
			require.NoError(t, err)
			require.Equal(t, "tea", out)
			require.Equal(t, []string{"kind?"}, u.asked)
		})
	}
}
