package middleware_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

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
