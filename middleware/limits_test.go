package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

func ok() string { return "ok" }

func TestRateLimitRefillsAtItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t, mcpkit.NewTool("x", ok))
		srv.Use(middleware.RateLimit(2, 3))
		p := modern(t, srv)
		try := func(want string) { t.Helper(); require.Equal(t, want, p.toolText(t.Context(), "x")) }
		for range 3 {
			try("ok")
		}
		try("too many calls; try again in 500ms")
		time.Sleep(499 * time.Millisecond)
		try("too many calls; try again in 1ms")
		time.Sleep(time.Millisecond)
		try("ok")
		try("too many calls; try again in 500ms")
		time.Sleep(time.Hour) // the bucket is full again
		for range 3 {
			try("ok")
		}
		try("too many calls; try again in 500ms")
	})
}

func TestRateLimitIsForEachCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t, mcpkit.NewTool("x", ok), mcpkit.NewTool("y", ok))
		srv.Use(middleware.RateLimit(1, 1))
		const limited = "too many calls; try again in 1s"
		one, two, three := legacy(t, srv, "one"), legacy(t, srv, "two"), modern(t, srv)
		here, there := transport.WithAddress(t.Context(), "192.0.2.1"), transport.WithAddress(t.Context(), "192.0.2.2")
		require.Equal(t, "ok", one.toolText(here, "x"), "an address")
		require.Equal(t, limited, one.toolText(here, "y"))
		require.Equal(t, limited, two.toolText(here, "x"), "in whichever session")
		require.Equal(t, "ok", two.toolText(there, "x"), "another address")
		require.Equal(t, "ok", three.toolText(t.Context(), "x"), "none")
		require.Equal(t, limited, modern(t, srv).toolText(t.Context(), "x"))

		require.Equal(t, "ok", one.toolText(as(t.Context(), "ann"), "x"), "a principal")
		require.Equal(t, limited, two.toolText(as(t.Context(), "ann"), "x"), "in whichever session")
		require.Equal(t, limited, three.toolText(as(t.Context(), "ann"), "x"), "or revision")
		require.Equal(t, "ok", one.toolText(as(t.Context(), "bob"), "x"), "another principal")
	})
}

func TestRateLimitByTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t, mcpkit.NewTool("x", ok), mcpkit.NewTool("y", ok))
		srv.Use(middleware.RateLimit(1, 2, middleware.By(middleware.TargetOf)), middleware.RateLimit(1, 1, middleware.By(middleware.CallerAndTargetOf)))
		const limited = "too many calls; try again in 1s"
		p := modern(t, srv)
		require.Equal(t, "ok", p.toolText(as(t.Context(), "ann"), "x"))
		require.Equal(t, "ok", p.toolText(as(t.Context(), "ann"), "y"))
		require.Equal(t, "ok", p.toolText(as(t.Context(), "bob"), "x"))
		require.Equal(t, limited, p.toolText(as(t.Context(), "ann"), "y"), "the caller's own limit of the tool")
		require.Equal(t, limited, p.toolText(as(t.Context(), "eve"), "x"), "the tool's limit for everybody")
	})
}

func TestRateLimitTellsPrograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t, mcpkit.NewTool("x", ok), mcpkit.NewPrompt("p", ok), mcpkit.NewResource("r://x", "r", ok))
		srv.Use(middleware.RateLimit(4, 1))
		p := modern(t, srv)
		p.toolText(t.Context(), "x")
		require.Contains(t, said(t, p.call(t.Context(), "tools/call", `{"name":"x"}`)), `"io.github.mcpkit/error":{"retryAfterMs":250}`)
		err := p.call(t.Context(), "prompts/get", `{"name":"p"}`).Error
		require.Equal(t, "too many calls; try again in 250ms", err.Message)
		require.JSONEq(t, `{"retryAfterMs":250}`, string(err.Data))
		require.Nil(t, p.call(t.Context(), "tools/list", `{}`).Error, "lists cost nothing")
		old := legacy(t, srv, "s1")
		for range 3 {
			require.Nil(t, old.call(t.Context(), "resources/subscribe", `{"uri":"r://x"}`).Error, "subscriptions cost nothing")
		}
	})
}

func TestRateLimitForgetsWhoWasSeenLongestAgo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t, mcpkit.NewTool("x", ok))
		srv.Use(middleware.RateLimit(1, 1))
		p := modern(t, srv)
		require.Equal(t, "ok", p.toolText(as(t.Context(), "ann"), "x"))
		for i := range 10_000 {
			p.call(as(t.Context(), fmt.Sprint("user ", i)), "tools/call", `{"name":"x"}`)
		}
		require.Equal(t, "ok", p.toolText(as(t.Context(), "ann"), "x"), "forgotten, so it begins anew")
		require.Equal(t, "too many calls; try again in 1s", p.toolText(as(t.Context(), "user 9999"), "x"), "remembered")
	})
}

func TestRateLimitOfAReplicaWarnsOnceThatItCountsItsOwnCalls(t *testing.T) {
	engine := fleet.NewMemory(fleet.MemoryOptions{})
	defer engine.Close()
	for range 2 {
		var log bytes.Buffer
		srv, err := mcpkit.New(nil, mcpkit.Logger(slog.New(slog.NewTextHandler(&log, nil))),
			mcpkit.StateKeys([]byte(strings.Repeat("k", 32))), mcpkit.Fleet(engine.Open()))
		require.NoError(t, err)
		require.NoError(t, srv.Add(mcpkit.NewTool("x", ok)))
		srv.Use(middleware.RateLimit(0.001, 2))
		for range 2 {
			require.Equal(t, "ok", modern(t, srv).toolText(t.Context(), "x"))
		}
		require.Contains(t, modern(t, srv).toolText(t.Context(), "x"), "too many calls")
		require.Equal(t, 1, strings.Count(log.String(), "divide them by the number of replicas"))
		require.NoError(t, srv.Close())
	}
}

// gate is a tool that waits, and counts how many wait.
type gate struct {
	open    chan struct{}
	running atomic.Int64
	most    atomic.Int64
}

func newGate() *gate { return &gate{open: make(chan struct{})} }

func (g *gate) tool(ctx context.Context) (string, error) {
	n := g.running.Add(1)
	defer g.running.Add(-1)
	for m := g.most.Load(); n > m && !g.most.CompareAndSwap(m, n); m = g.most.Load() {
	}
	select {
	case <-g.open:
		return "done", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func TestConcurrencyRefusesCallsBeyondItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		srv := newServer(t, mcpkit.NewTool("x", g.tool).Timeout(0))
		srv.Use(middleware.Concurrency(2))
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { assert.Equal(t, "done", modern(t, srv).toolText(t.Context(), "x")) })
		}
		synctest.Wait()
		refused := said(t, modern(t, srv).call(t.Context(), "tools/call", `{"name":"x"}`))
		require.Contains(t, refused, "too many calls at a time (2); try again when others are done")
		require.Contains(t, refused, `"io.github.mcpkit/error":{"limit":2}`)
		require.Nil(t, modern(t, srv).call(t.Context(), "tools/list", `{}`).Error, "lists do not count")
		close(g.open)
		wg.Wait()
		require.Equal(t, "done", modern(t, srv).toolText(t.Context(), "x"))
	})
}

func TestConcurrencyByCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		srv := newServer(t, mcpkit.NewTool("x", g.tool).Timeout(0), mcpkit.NewTool("panics", func() { panic("oops") }))
		srv.Use(middleware.Concurrency(1, middleware.By(middleware.CallerOf)))
		var wg sync.WaitGroup
		for _, who := range []string{"ann", "bob"} {
			wg.Go(func() { modern(t, srv).toolText(as(t.Context(), who), "x") })
		}
		synctest.Wait()
		require.Equal(t, int64(2), g.running.Load())
		require.Contains(t, modern(t, srv).toolText(as(t.Context(), "ann"), "x"), "too many calls at a time")
		close(g.open)
		wg.Wait()
		for range 3 { // a panic gives its turn back
			require.Contains(t, modern(t, srv).toolText(as(t.Context(), "ann"), "panics"), "internal error")
		}
	})
}

func TestTimeoutEndsTheContextAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended time.Duration
		waits := func(ctx context.Context) (string, error) {
			start := time.Now()
			<-ctx.Done()
			ended = time.Since(start)
			return "", ctx.Err()
		}
		srv := newServer(t, mcpkit.NewTool("x", waits), mcpkit.NewTool("quick", waits).Timeout(time.Second), mcpkit.NewPrompt("p", waits),
			mcpkit.NewTool("deaf", func() string { time.Sleep(time.Minute); return "at last" }))
		srv.Use(middleware.Timeout(5*time.Second), wrap(func(ctx context.Context, call *mcpkit.Call, next mcpkit.Handler) (mcpkit.Result, error) {
			if call.Name() == "unknown" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return next(ctx, call)
		}))
		p := modern(t, srv)
		require.Equal(t, "timed out after 5s", p.toolText(t.Context(), "unknown"), "inner middleware waits")
		require.Equal(t, "timed out after 5s", p.toolText(t.Context(), "x"))
		require.Equal(t, 5*time.Second, ended)
		require.Equal(t, "timed out after 1s", p.toolText(t.Context(), "quick"), "the tool's own is shorter")
		require.Equal(t, time.Second, ended)
		require.Equal(t, "timed out after 5s", p.call(t.Context(), "prompts/get", `{"name":"p"}`).Error.Message)
		require.Equal(t, "timed out after 5s", p.toolText(t.Context(), "deaf"), "what does not look at its context is not waited for")
		require.Equal(t, 1, srv.Overdue())
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Zero(t, srv.Overdue())
	})
}

func TestTimeoutLeavesSubscriptionsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t, mcpkit.NewTool("x", ok))
		srv.Use(middleware.Timeout(time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		modern(t, srv).call(ctx, "subscriptions/listen", `{"notifications":{"toolsListChanged":true}}`)
		require.Equal(t, time.Hour, time.Since(start))
	})
}

// Kiosk answers a few times.
type Kiosk struct {
	_ struct {
		Ask  mcpkit.Tool     `rate:"2/m"`
		Tell mcpkit.Tool     `rate:"120/m burst=1"`
		Page mcpkit.Resource `uri:"kiosk://page" rate:"1/h"`
		Help mcpkit.Prompt   `rate:"1/s"`
	}
}

func (Kiosk) Ask() string  { return "ok" }
func (Kiosk) Tell() string { return "ok" }
func (Kiosk) Page() string { return "ok" }
func (Kiosk) Help() string { return "ok" }

func TestRateTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := mcpkit.MustNew(&Kiosk{}, quiet)
		require.NoError(t, srv.Add(mcpkit.NewTool("built", ok).Rate("1/s")))
		p := modern(t, srv)
		ann, bob := as(t.Context(), "ann"), as(t.Context(), "bob")

		require.Equal(t, "ok", p.toolText(ann, "ask"))
		require.Equal(t, "ok", p.toolText(ann, "ask"))
		require.Equal(t, "too many calls; try again in 30s", p.toolText(ann, "ask"))
		require.Equal(t, "ok", p.toolText(bob, "ask"), "another caller")
		require.Equal(t, "ok", p.toolText(ann, "tell"), "another tool")
		require.Equal(t, "too many calls; try again in 500ms", p.toolText(ann, "tell"))
		require.Contains(t, said(t, p.call(ann, "tools/call", `{"name":"tell"}`)), `"io.github.mcpkit/error":{"retryAfterMs":500}`)
		time.Sleep(30 * time.Second)
		require.Equal(t, "ok", p.toolText(ann, "ask"))
		require.Equal(t, "too many calls; try again in 30s", p.toolText(ann, "ask"))

		require.Nil(t, p.call(ann, "resources/read", `{"uri":"kiosk://page"}`).Error)
		require.JSONEq(t, `{"retryAfterMs":3600000}`, string(p.call(ann, "resources/read", `{"uri":"kiosk://page"}`).Error.Data))
		require.Nil(t, p.call(ann, "prompts/get", `{"name":"help"}`).Error)
		require.Equal(t, "too many calls; try again in 1s", p.call(ann, "prompts/get", `{"name":"help"}`).Error.Message)
		require.Equal(t, "ok", p.toolText(ann, "built"))
		require.Equal(t, "too many calls; try again in 1s", p.toolText(ann, "built"))
	})
}

// A mounted server counts each call once, whether it comes directly or through its parent.
func TestRateTagsOfMountedServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := mcpkit.MustNew(&Kiosk{}, quiet)
		srv := newServer(t)
		require.NoError(t, srv.Mount("k", inner))
		p := modern(t, srv)
		require.Equal(t, "ok", p.toolText(as(t.Context(), "ann"), "k_ask"))
		require.Equal(t, "ok", modern(t, inner).toolText(as(t.Context(), "ann"), "ask"))
		require.Equal(t, "too many calls; try again in 30s", p.toolText(as(t.Context(), "ann"), "k_ask"))
	})
}

func TestOverdueMethodsOfMountedServersKeepTheirTurn(t *testing.T) {
	for range 400 { // the servers stop waiting in any order
		synctest.Test(t, func(t *testing.T) {
			inner := newServer(t, mcpkit.NewTool("deaf", func() string { time.Sleep(time.Minute); return "" }).Timeout(time.Second))
			inner.Use(middleware.Concurrency(1))
			between, srv := newServer(t), newServer(t)
			between.MustMount("b", inner)
			srv.MustMount("a", between)
			srv.Use(middleware.Timeout(time.Hour))
			p := modern(t, srv)
			require.Equal(t, "timed out after 1s", p.toolText(t.Context(), "a_b_deaf"))
			synctest.Wait()
			require.Contains(t, p.toolText(t.Context(), "a_b_deaf"), "too many calls at a time")
			time.Sleep(time.Minute)
			synctest.Wait()
			require.Equal(t, "timed out after 1s", p.toolText(t.Context(), "a_b_deaf"))
			time.Sleep(time.Minute)
		})
	}
}

func TestLimitsThatCannotBeMeantPanic(t *testing.T) {
	for want, f := range map[string]func(){
		"middleware: RateLimit(0, 5) allows no calls; write for example RateLimit(10, 20)":   func() { middleware.RateLimit(0, 5) },
		"middleware: RateLimit(5, 0) allows no calls; write for example RateLimit(10, 20)":   func() { middleware.RateLimit(5, 0, middleware.By(middleware.CallerOf)) },
		"middleware: RateLimit(NaN, 5) allows no calls; write for example RateLimit(10, 20)": func() { middleware.RateLimit(math.NaN(), 5) },
		"middleware: Concurrency(0): the limit is less than 1":                               func() { middleware.Concurrency(0) },
		"middleware: Timeout(-1s): the time is negative":                                     func() { middleware.Timeout(-time.Second) },
		"middleware: ResultLimit(0): the limit is less than 1 byte":                          func() { middleware.ResultLimit(0) },
		"middleware: ResultLimit(-1): the limit is less than 1 byte":                         func() { middleware.ResultLimit(-1, middleware.NoTruncation()) },
		"middleware: Cache(-1s) with 0 entries of 0 bytes: a value is negative":              func() { middleware.Cache(-time.Second) },
		"middleware: By: the key function is nil":                                            func() { middleware.By[string](nil) },
	} {
		require.PanicsWithValue(t, want, f)
	}
}

// post sends a request to a handler in memory.
func post(h http.Handler, body string, header http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	for name, values := range header {
		r.Header[name] = values
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// overHTTP calls a tool as a legacy and as a modern client.
func overHTTP(t *testing.T, srv *mcpkit.Server, call func(name string, post func(tool string) *httptest.ResponseRecorder)) {
	h := streamable.NewHandler(srv, nil)
	t.Cleanup(h.Close)
	call("modern", func(tool string) *httptest.ResponseRecorder {
		return post(h, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`",`+modernMeta+`,"progressToken":1}}}`,
			http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {tool}})
	})
	hello := post(h, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+initializeParams+`}`, nil)
	require.Equal(t, 200, hello.Code, hello.Body)
	session := http.Header{"Mcp-Session-Id": hello.Header()["Mcp-Session-Id"], "Mcp-Protocol-Version": {"2025-11-25"}}
	require.Equal(t, 202, post(h, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session).Code)
	call("legacy", func(tool string) *httptest.ResponseRecorder {
		return post(h, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","_meta":{"progressToken":1}}}`, session)
	})
}

type later struct {
	error
	after time.Duration
}

func (l later) Unwrap() error             { return l.error }
func (l later) RetryAfter() time.Duration { return l.after }

// refusing answers each tool call with an error.
func refusing(err error) mcpkit.Middleware {
	return middleware.When(func(call *mcpkit.Call) bool { return call.Method() == "tools/call" }, func(mcpkit.Handler) mcpkit.Handler {
		return func(context.Context, *mcpkit.Call) (mcpkit.Result, error) { return nil, err }
	})
}

func TestRefusalsSayInAHeaderWhenToComeBack(t *testing.T) {
	limited := func(after time.Duration) error { return &mcpkit.RateLimitError{After: after} }
	for _, test := range []struct {
		name string
		use  []mcpkit.Middleware
		want string // the header; "" for none
		body string
	}{
		{"in whole seconds", []mcpkit.Middleware{refusing(limited(2 * time.Second))}, "2", `"io.github.mcpkit/error":{"retryAfterMs":2000}`},
		{"rounded up", []mcpkit.Middleware{refusing(limited(time.Second + 1))}, "2", `"io.github.mcpkit/error":{"retryAfterMs":1001}`},
		{"at least one", []mcpkit.Middleware{refusing(limited(1))}, "1", `"io.github.mcpkit/error":{"retryAfterMs":1}`},
		{"no turn is free", []mcpkit.Middleware{refusing(&mcpkit.BusyError{Limit: 2})}, "1", `"io.github.mcpkit/error":{"limit":2}`},
		{"as a protocol error", []mcpkit.Middleware{middleware.ErrorCodes(), refusing(limited(3 * time.Second))}, "3", `"code":-32603,"message":"too many calls; try again in 3s","data":{"retryAfterMs":3000}`},
		{"an error of one's own", []mcpkit.Middleware{refusing(later{mcpkit.Errorf("closed on Sundays"), 24 * time.Hour})}, "86400", `closed on Sundays`},
		{"not before now", []mcpkit.Middleware{refusing(later{mcpkit.Errorf("x"), -time.Hour})}, "", `"isError":true`},
		{"another error", []mcpkit.Middleware{refusing(mcpkit.Errorf("x"))}, "", `"isError":true`},
	} {
		t.Run(test.name, func(t *testing.T) {
			srv := newServer(t, mcpkit.NewTool("x", ok))
			srv.Use(test.use...)
			overHTTP(t, srv, func(family string, call func(string) *httptest.ResponseRecorder) {
				w := call("x")
				require.Equal(t, 200, w.Code, family)
				require.Equal(t, "application/json", w.Header().Get("Content-Type"))
				require.Equal(t, test.want, w.Header().Get("Retry-After"), family)
				require.Contains(t, w.Body.String(), test.body, family)
			})
		})
	}
}

func TestARefusalOnAStreamHasNoHeader(t *testing.T) {
	srv := newServer(t, mcpkit.NewTool("x", func(call *mcpkit.Call) error {
		call.Progress(1, 2, "half")
		return &mcpkit.RateLimitError{After: time.Second}
	}))
	overHTTP(t, srv, func(family string, call func(string) *httptest.ResponseRecorder) {
		w := call("x")
		require.Equal(t, "text/event-stream", w.Header().Get("Content-Type"), family)
		require.NotContains(t, w.Header(), "Retry-After")
		require.Contains(t, w.Body.String(), `"retryAfterMs":1000`)
	})
}

// round sends tools/call on 2026-07-28 from a client whose user can be asked. more are further
// members of the params, each with a comma in front.
func (p *peer) round(ctx context.Context, name, more string) *jsonrpc.Response {
	p.t.Helper()
	msg, bad := jsonrpc.Decode(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q%s,"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}}}`, name, more))
	require.Nil(p.t, bad)
	return p.srv.ServeRPC(ctx, msg.Request, p)
}

// agree returns the params, without the name, of the next round if the user says yes to each
// question of this one.
func agree(t testing.TB, resp *jsonrpc.Response) string {
	t.Helper()
	require.Nil(t, resp.Error, "%+v", resp.Error)
	var r struct {
		InputRequests map[string]json.RawMessage
		RequestState  string
	}
	require.NoError(t, json.Unmarshal(resp.Result, &r))
	require.NotEmpty(t, r.InputRequests, "%s", resp.Result)
	answers := map[string]any{}
	for key := range r.InputRequests {
		answers[key] = map[string]any{"action": "accept", "content": map[string]any{"confirm": true}}
	}
	text, err := json.Marshal(answers)
	require.NoError(t, err)
	return fmt.Sprintf(`,"requestState":%q,"inputResponses":%s`, r.RequestState, text)
}

// pay is a tool that asks twice, one question after the other, and takes a second for each round.
func pay() mcpkit.Item {
	return mcpkit.NewTool("pay", func(ctx context.Context) (string, error) {
		time.Sleep(time.Second)
		for _, question := range []string{"Pay?", "Really?"} {
			if _, err := mcpkit.Confirm(ctx, question); err != nil {
				return "", err
			}
		}
		return "paid", nil
	})
}

func TestRateLimitCountsFirstAndRepeatedRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t, pay())
		srv.Use(middleware.RateLimit(1.0/60, 1))
		p := modern(t, srv)
		second := agree(t, p.round(t.Context(), "pay", ""))
		third := agree(t, p.round(t.Context(), "pay", second))
		require.Equal(t, "paid", textOf(t, p.round(t.Context(), "pay", third)))
		require.Contains(t, textOf(t, p.round(t.Context(), "pay", "")), "too many calls")

		// Each use of a state after the first one counts.
		for range 2 {
			require.Contains(t, textOf(t, p.round(t.Context(), "pay", second)), "too many calls")
			time.Sleep(time.Minute)
			require.Equal(t, "paid", textOf(t, p.round(t.Context(), "pay", third)))
		}
	})
}

func TestConcurrencyLimitsEachRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t, pay())
		srv.Use(middleware.Concurrency(1))
		p := modern(t, srv)
		answers := agree(t, p.round(t.Context(), "pay", ""))
		other := agree(t, p.round(t.Context(), "pay", ""))
		done := make(chan struct{})
		go func() { // ends after the second that the round takes
			defer close(done)
			agree(t, p.round(t.Context(), "pay", answers))
		}()
		synctest.Wait()
		require.Contains(t, textOf(t, p.round(t.Context(), "pay", other)), "too many calls at a time")
		<-done
		agree(t, p.round(t.Context(), "pay", other))
	})
}

func TestMiddlewareMayAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		ran := 0
		srv := newServer(t, mcpkit.NewTool("erase", func() string { ran++; return "erased" }))
		srv.Use(middleware.Audit(slog.NewJSONHandler(&b, nil), middleware.AuditBegin()), middleware.ErrorCodes(), wrap(func(ctx context.Context, call *mcpkit.Call, next mcpkit.Handler) (mcpkit.Result, error) {
			if agreed, err := mcpkit.Confirm(ctx, "Erase?"); err != nil || !agreed {
				return nil, err
			}
			return next(ctx, call)
		}))
		p := modern(t, srv)
		answers := agree(t, p.round(t.Context(), "erase", ""))
		require.Zero(t, ran)
		require.Equal(t, "erased", textOf(t, p.round(t.Context(), "erase", answers)))
		require.Equal(t, 1, ran)
		got := lines(t, b.String())
		require.Len(t, got, 3)
		require.Equal(t, "begin", got[0]["event"])
		require.Equal(t, "input_required", got[1]["outcome"])
		require.Equal(t, "ok", got[2]["outcome"])
	})
}
