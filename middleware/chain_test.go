package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// all is every middleware of the package, configured to let all calls pass.
func all() map[string]mcpkit.Middleware {
	discard := slog.New(slog.NewJSONHandler(io.Discard, nil))
	return map[string]mcpkit.Middleware{
		"Audit":       middleware.Audit(slog.NewJSONHandler(io.Discard, nil), middleware.AuditBegin(), middleware.AuditArguments()),
		"Cache":       middleware.Cache(time.Hour),
		"Concurrency": middleware.Concurrency(10),
		"ErrorCodes":  middleware.ErrorCodes(),
		"GuardArguments": middleware.GuardArguments(func(_ context.Context, _ *mcpkit.Call, args json.RawMessage) (json.RawMessage, error) {
			return args, nil
		}),
		"GuardResult": middleware.GuardResult(func(_ context.Context, _ *mcpkit.Call, result mcpkit.Result) (mcpkit.Result, error) {
			return result, nil
		}),
		"Logging":     middleware.Logging(discard, middleware.LogArguments(0)),
		"RateLimit":   middleware.RateLimit(1e6, 1e6),
		"Recover":     middleware.Recover(nil),
		"ResultLimit": middleware.ResultLimit(1 << 20),
		"Scopes":      middleware.Scopes(),
		"Timeout":     middleware.Timeout(time.Minute),
	}
}

// send sends a request of a version; a subscription ends at once.
func (p *peer) send(ctx context.Context, r request) string {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if r.method == protocol.MethodSubscriptionsListen {
		cancel()
	}
	return said(p.t, p.call(ctx, r.method, r.params))
}

// of is a client of any version.
func of(t testing.TB, srv *mcpkit.Server, v protocol.Version) *peer {
	if v.Modern() {
		return modern(t, srv)
	}
	p := &peer{t: t, srv: srv}
	p.session = transport.NewSession("s1", p)
	p.call(t.Context(), "initialize", strings.Replace(initializeParams, "2025-11-25", string(v), 1))
	require.Equal(t, string(v), p.session.Version())
	return p
}

func TestEachMiddlewareRunsOnceAndInOrderForEveryMethodAndVersion(t *testing.T) {
	srv := mcpkit.MustNew(&everything{ran: func(string) {}}, quiet, mcpkit.Authenticated())
	var entered, left, want []string
	probe := func(name string) mcpkit.Middleware {
		want = append(want, name)
		return func(next mcpkit.Handler) mcpkit.Handler {
			return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
				entered = append(entered, name)
				defer func() { left = append(left, name) }()
				return next(ctx, call)
			}
		}
	}
	every := all()
	var chain []mcpkit.Middleware
	for _, name := range slices.Sorted(maps.Keys(every)) {
		chain = append(chain, probe("before "+name), every[name])
	}
	srv.Use(append(chain, probe("innermost"))...)
	require.NoError(t, srv.Add(mcpkit.NewTool("late", func() string { return "late-result" })))
	reversed := slices.Clone(want)
	slices.Reverse(reversed)

	for _, v := range protocol.Supported {
		client := of(t, srv, v)
		requests := append(requestsOf(v), request{method: "tools/call", params: `{"name":"late"}`})
		for _, r := range requests {
			entered, left = nil, nil
			reply := client.send(as(t.Context(), "ann", "secret"), r)
			require.Equal(t, want, entered, "%s: %s %s answered %s", v, r.method, r.params, reply)
			require.Equal(t, reversed, left, "%s: %s %s", v, r.method, r.params)
		}
	}
}

// The middleware does not change requests and results that it lets pass.
func TestMiddlewareThatLetsPassChangesNothing(t *testing.T) {
	bare := mcpkit.MustNew(&everything{ran: func(string) {}}, quiet, mcpkit.Authenticated())
	srv := mcpkit.MustNew(&everything{ran: func(string) {}}, quiet, mcpkit.Authenticated())
	for name, mw := range all() {
		if name != "ErrorCodes" { // its purpose is to change errors
			srv.Use(mw)
		}
	}
	for _, v := range protocol.Supported {
		for _, scopes := range [][]string{nil, {"secret"}} {
			for _, r := range requestsOf(v) {
				want := of(t, bare, v).send(as(t.Context(), "ann", scopes...), r)
				require.Equal(t, want, of(t, srv, v).send(as(t.Context(), "ann", scopes...), r), "%s: %s %s", v, r.method, r.params)
			}
		}
	}
}

func TestRecoverReportsPanics(t *testing.T) {
	var reported []any
	srv := newServer(t, mcpkit.NewTool("panics", func() { panic("in the method") }), mcpkit.NewTool("breaks", ok), mcpkit.NewTool("fails", func() error { return errors.New("x") }))
	srv.Use(middleware.Recover(func(_ context.Context, call *mcpkit.Call, p *mcpkit.PanicError) {
		require.NotEmpty(t, p.Stack)
		reported = append(reported, call.Name(), p.Value)
	}), middleware.When(onTool("breaks"), func(mcpkit.Handler) mcpkit.Handler {
		return func(context.Context, *mcpkit.Call) (mcpkit.Result, error) { panic("in between") }
	}))
	for _, name := range []string{"panics", "breaks", "fails"} {
		require.Contains(t, modern(t, srv).toolText(t.Context(), name), "internal error (ref ")
	}
	require.Equal(t, []any{"panics", "in the method", "breaks", "in between"}, reported)
}

func TestRecoverReportsPanicsThatErrorCodesWraps(t *testing.T) {
	var reported []any
	srv := newServer(t, mcpkit.NewTool("panics", func() { panic("oops") }))
	srv.Use(middleware.Recover(func(_ context.Context, _ *mcpkit.Call, p *mcpkit.PanicError) { reported = append(reported, p.Value) }), middleware.ErrorCodes())
	modern(t, srv).call(t.Context(), "tools/call", `{"name":"panics"}`)
	require.Equal(t, []any{"oops"}, reported)
}

// BenchmarkCall is a whole call of a small tool by an authenticated caller, with each middleware:
// what one costs is the difference to "none". docs/reference/middleware.md has the figures.
func BenchmarkCall(b *testing.B) {
	discard := slog.New(slog.NewJSONHandler(io.Discard, nil))
	audit := slog.NewJSONHandler(io.Discard, nil)
	logging := middleware.Logging(discard)
	timeout, rate := middleware.Timeout(30*time.Second), middleware.RateLimit(1e9, 1e9)
	for _, test := range []struct {
		name string
		use  []mcpkit.Middleware
	}{
		{"none", nil},
		{"Audit", []mcpkit.Middleware{middleware.Audit(audit)}},
		{"Audit, with begin", []mcpkit.Middleware{middleware.Audit(audit, middleware.AuditBegin())}},
		{"Cache, hit", []mcpkit.Middleware{middleware.Cache(time.Hour, middleware.CacheShared())}},
		{"Concurrency", []mcpkit.Middleware{middleware.Concurrency(10)}},
		{"Concurrency by caller", []mcpkit.Middleware{middleware.Concurrency(10, middleware.By(middleware.CallerOf))}},
		{"ErrorCodes", []mcpkit.Middleware{middleware.ErrorCodes()}},
		{"When", []mcpkit.Middleware{middleware.When(func(*mcpkit.Call) bool { return false }, rate)}},
		{"GuardArguments", []mcpkit.Middleware{middleware.GuardArguments(func(_ context.Context, _ *mcpkit.Call, args json.RawMessage) (json.RawMessage, error) {
			return args, nil
		})}},
		{"GuardResult", []mcpkit.Middleware{middleware.GuardResult(func(_ context.Context, _ *mcpkit.Call, result mcpkit.Result) (mcpkit.Result, error) {
			return result, nil
		})}},
		{"Logging, JSON", []mcpkit.Middleware{logging}},
		{"Logging with arguments, JSON", []mcpkit.Middleware{middleware.Logging(discard, middleware.LogArguments(0))}},
		{"Logging, off", []mcpkit.Middleware{middleware.Logging(slog.New(slog.DiscardHandler))}},
		{"RateLimit", []mcpkit.Middleware{rate}},
		{"RateLimit by caller and target", []mcpkit.Middleware{middleware.RateLimit(1e9, 1e9, middleware.By(middleware.CallerAndTargetOf))}},
		{"Recover", []mcpkit.Middleware{middleware.Recover(nil)}},
		{"ResultLimit", []mcpkit.Middleware{middleware.ResultLimit(1 << 20)}},
		{"ResultLimit, NoTruncation", []mcpkit.Middleware{middleware.ResultLimit(1<<20, middleware.NoTruncation())}},
		{"Scopes", []mcpkit.Middleware{middleware.Scopes("a")}},
		{"Timeout", []mcpkit.Middleware{timeout}},
		{"Logging+Timeout+RateLimit", []mcpkit.Middleware{logging, timeout, rate}},
	} {
		b.Run(test.name, func(b *testing.B) {
			call := smallCall(b, test.use...)
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}

// smallCall returns a whole call of a small tool by an authenticated caller, without a transport.
func smallCall(t testing.TB, use ...mcpkit.Middleware) func() {
	type in struct {
		A int `json:"a"`
	}
	srv := newServer(t, mcpkit.NewTool("x", func(in in) string { return "ok" }).Hints("readonly"))
	srv.Use(use...)
	p := &peer{t: t, srv: srv}
	ctx := as(t.Context(), "ann", "a")
	msg, bad := jsonrpc.Decode([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":1},` + modernMeta + `}}}`))
	require.Nil(t, bad)
	return func() {
		if resp := srv.ServeRPC(ctx, msg.Request, p); resp.Error != nil {
			t.Fatal(resp.Error)
		}
	}
}

// The most common middleware together makes at most ten allocations for each call.
func TestTheUsualChainAllocatesLittle(t *testing.T) {
	logger := slog.New(slog.NewJSONHandler(io.Discard, nil))
	bare := testing.AllocsPerRun(200, smallCall(t))
	usual := testing.AllocsPerRun(200, smallCall(t, middleware.Logging(logger), middleware.Timeout(30*time.Second), middleware.RateLimit(1e9, 1e9)))
	require.LessOrEqual(t, usual-bare, 10.0, "%v in all, %v without", usual, bare)
}

type echoInput struct {
	Text string `json:"text"`
}

// wrap makes middleware of a function.
func wrap(f func(ctx context.Context, call *mcpkit.Call, next mcpkit.Handler) (mcpkit.Result, error)) mcpkit.Middleware {
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) { return f(ctx, call, next) }
	}
}

// Each call gets one response, whatever the middleware does, and the next request is served as
// usual.
func TestWhateverMiddlewareDoesIsAnswered(t *testing.T) {
	const broken = "internal error (ref "
	boom := func(*mcpkit.Call) int { panic("oops") }
	returns := func(result mcpkit.Result) mcpkit.Middleware {
		return wrap(func(context.Context, *mcpkit.Call, mcpkit.Handler) (mcpkit.Result, error) { return result, nil })
	}
	for _, test := range []struct {
		name string
		mw   mcpkit.Middleware
		want string // in the answer
	}{
		{"panics before", wrap(func(context.Context, *mcpkit.Call, mcpkit.Handler) (mcpkit.Result, error) { panic("oops") }), broken},
		{"panics after", wrap(func(ctx context.Context, call *mcpkit.Call, next mcpkit.Handler) (mcpkit.Result, error) {
			_, _ = next(ctx, call)
			panic(errors.New("oops"))
		}), broken},
		{"panics with nil", wrap(func(context.Context, *mcpkit.Call, mcpkit.Handler) (mcpkit.Result, error) { panic(nil) }), broken},
		{"a condition panics", middleware.When(func(*mcpkit.Call) bool { panic("oops") }), broken},
		{"a key of a rate panics", middleware.RateLimit(1, 1, middleware.By(boom)), broken},
		{"a key of turns panics", middleware.Concurrency(1, middleware.By(boom)), broken},
		{"a guard panics", middleware.GuardArguments(func(context.Context, *mcpkit.Call, json.RawMessage) (json.RawMessage, error) { panic("oops") }), broken},
		{"a guard of arguments returns none", middleware.GuardArguments(func(context.Context, *mcpkit.Call, json.RawMessage) (json.RawMessage, error) { return nil, nil }), broken},
		{"a guard of arguments returns no JSON", middleware.GuardArguments(func(context.Context, *mcpkit.Call, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"text":`), nil
		}), broken},
		{"a guard of results returns none", middleware.GuardResult(func(context.Context, *mcpkit.Call, mcpkit.Result) (mcpkit.Result, error) { return nil, nil }), `"result":{`},
		{"calls next twice", wrap(func(ctx context.Context, call *mcpkit.Call, next mcpkit.Handler) (mcpkit.Result, error) {
			_, _ = next(ctx, call)
			return next(ctx, call)
		}), `"text":"hello"`},
		{"calls next many times at once", wrap(func(ctx context.Context, call *mcpkit.Call, next mcpkit.Handler) (mcpkit.Result, error) {
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() { _, _ = next(ctx, call) })
			}
			wg.Wait()
			return next(ctx, call)
		}), `"text":"hello"`},
		{"returns nothing", returns(nil), `"result":{`},
		{"returns a typed nil", returns((*protocol.CallToolResult)(nil)), `"id":1`},
		{"returns a result and an error", wrap(func(ctx context.Context, call *mcpkit.Call, next mcpkit.Handler) (mcpkit.Result, error) {
			result, _ := next(ctx, call)
			return result, mcpkit.Errorf("not this time")
		}), "not this time"},
		{"returns what does not encode", returns(make(chan int)), broken},
		{"returns no object", returns(5), broken},
		{"returns a result of its own that panics", returns(struct{ mcpkit.Result }{}), broken},
		{"returns JSON that is not valid", returns(json.RawMessage(`{"a":`)), broken},
		{"returns content that is not valid JSON", returns(&protocol.CallToolResult{StructuredContent: json.RawMessage(`{"a":`)}), broken},
		{"returns a list with a nil in it", returns(&protocol.CallToolResult{Content: []protocol.Content{nil}}), `"id":1`},
		{"returns _meta that is not valid JSON", returns(&protocol.CallToolResult{Meta: protocol.Meta{"x": json.RawMessage(`{`)}, Extra: protocol.Meta{"y": json.RawMessage(`]`)}}), `"id":1`},
		{"passes no call on", wrap(func(ctx context.Context, _ *mcpkit.Call, next mcpkit.Handler) (mcpkit.Result, error) {
			return next(ctx, nil)
		}), broken},
		{"passes a context of its own on", wrap(func(_ context.Context, call *mcpkit.Call, next mcpkit.Handler) (mcpkit.Result, error) {
			return next(context.Background(), call)
		}), `"id":1`},
		{"passes no context on", wrap(func(_ context.Context, call *mcpkit.Call, next mcpkit.Handler) (mcpkit.Result, error) {
			return next(nil, call) // careless middleware does this
		}), `"id":1`},
	} {
		t.Run(test.name, func(t *testing.T) {
			hostile := true
			srv := newServer(t, mcpkit.NewTool("echo", func(call *mcpkit.Call, in echoInput) string { _ = call.Method(); return in.Text }))
			srv.Use(middleware.When(func(call *mcpkit.Call) bool { return hostile && call.Method() == "tools/call" }, test.mw))
			for family, p := range families(t, srv) {
				hostile = true
				reply := said(t, p.call(t.Context(), "tools/call", `{"name":"echo","arguments":{"text":"hello"}}`))
				require.Contains(t, reply, test.want, family)
				require.True(t, json.Valid([]byte(reply)), "%s: %s", family, reply)
				hostile = false
				require.Equal(t, "hello", p.toolText(t.Context(), "echo", `{"text":"hello"}`), family)
			}
		})
	}
}

// Middleware must not change the bytes of arguments. If it does, it breaks this call and no other.
func TestArgumentsThatAreOverwrittenBreakTheirOwnCallAlone(t *testing.T) {
	for _, junk := range []string{`{`, `}`, `"`, `[`, `\`, `:`, `,`, `0`, "\x00", "\xff", ` `, `{"text":`, `"text`, `[[`, `{"":{`, `"\`} {
		srv := newServer(t, mcpkit.NewTool("echo", func(in echoInput) string { return in.Text }))
		overwrite := true
		srv.Use(wrap(func(ctx context.Context, call *mcpkit.Call, next mcpkit.Handler) (mcpkit.Result, error) {
			if overwrite && call.Method() == "tools/call" {
				for i := range call.Params() {
					call.Params()[i] = junk[i%len(junk)]
				}
			}
			return next(ctx, call)
		}), middleware.Logging(slog.New(slog.NewJSONHandler(io.Discard, nil)), middleware.LogArguments(0)), middleware.Cache(time.Hour, middleware.CacheShared()))
		for family, p := range families(t, srv) {
			overwrite = true
			reply := said(t, p.call(t.Context(), "tools/call", `{"name":"echo","arguments":{"text":"hello"}}`))
			require.Contains(t, reply, `"id":1`, "%q, %s", junk, family)
			require.True(t, json.Valid([]byte(reply)), "%q, %s: %s", junk, family, reply)
			overwrite = false
			require.Equal(t, "hello", p.toolText(t.Context(), "echo", `{"text":"hello"}`), "%q, %s", junk, family)
		}
	}
}

func TestMiddlewareThatIsNilIsRefusedAtOnce(t *testing.T) {
	srv := newServer(t, mcpkit.NewTool("x", ok))
	require.PanicsWithValue(t, "mcpkit: Use: a middleware is nil; leave it out", func() { srv.Use(middleware.Recover(nil), nil) })
	require.Equal(t, "ok", modern(t, srv).toolText(t.Context(), "x"), "and nothing was put on")
	require.PanicsWithValue(t, "mcpkit: Around: a middleware is nil; leave it out", func() { mcpkit.Around(nil) })
	require.PanicsWithValue(t, "middleware: When: middleware 1 of 1 is nil", func() { middleware.When(func(*mcpkit.Call) bool { return true }, nil) })
}

// lazy returns before the handler does, like a careless timeout. It reports when the handler has
// returned.
func lazy(late *sync.WaitGroup) mcpkit.Middleware {
	return wrap(func(ctx context.Context, call *mcpkit.Call, next mcpkit.Handler) (mcpkit.Result, error) {
		if call.Method() != "tools/call" {
			return next(ctx, call)
		}
		began := make(chan struct{})
		call.Set("began", began)
		late.Go(func() { _, _ = next(ctx, call) })
		<-began
		return nil, mcpkit.Errorf("I cannot wait")
	})
}

// A handler that continues after the response does no harm: its later notifications are dropped.
func TestAHandlerThatOutlivesItsCallDoesNoHarm(t *testing.T) {
	for _, v := range []protocol.Version{protocol.LatestLegacy, protocol.Latest} {
		var late sync.WaitGroup
		hold := make(chan struct{})
		srv := newServer(t, mcpkit.NewTool("slow", func(ctx context.Context, call *mcpkit.Call, in echoInput) (string, error) {
			close(call.Get("began").(chan struct{}))
			<-hold
			call.Progress(1, 2, "half")
			call.Logger().Warn("late")
			_, _ = mcpkit.Confirm(ctx, "Still there?")
			_ = call.SetArguments(json.RawMessage(`{"text":"x"}`))
			return fmt.Sprint(in.Text, call.Arguments(), call.Ref(), call.SessionID(), call.Header("X")), ctx.Err()
		}), mcpkit.NewTool("x", ok))
		srv.Use(middleware.Logging(slog.New(slog.NewJSONHandler(io.Discard, nil))), lazy(&late))
		h := streamable.NewHandler(srv, nil)
		s := httptest.NewServer(h)
		c, err := client.Dial(t.Context(), s.URL, client.Version(v), client.LogLevel(protocol.LevelDebug))
		require.NoError(t, err)
		for range 3 {
			_, err := c.CallTool(t.Context(), "slow", echoInput{"hello"}, client.OnProgress(func(*protocol.ProgressParams) {}))
			require.ErrorContains(t, err, "I cannot wait")
			hold <- struct{}{}
			late.Wait()
			_, err = c.Tool(t.Context(), "x", client.Fresh())
			require.NoError(t, err)
		}
		require.NoError(t, c.Close())
		h.Close()
		s.Close()
	}
}
