package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
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
