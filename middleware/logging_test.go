package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

// lines decodes JSON lines.
func lines(t *testing.T, text string) []map[string]any {
	t.Helper()
	var list []map[string]any
	for line := range strings.Lines(text) {
		require.True(t, strings.HasSuffix(line, "\n"), "half a line: %q", line)
		var m map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &m), "%q", line)
		list = append(list, m)
	}
	return list
}

type login struct {
	User string `json:"user"`
	Pass string `json:"pass" secret:"true"`
}

// logged is a server that logs to a buffer, and the lines of one call.
func logged(t *testing.T, opts []middleware.LoggingOption, items ...mcpkit.Item) (*mcpkit.Server, func(func()) map[string]any) {
	var b bytes.Buffer
	srv := newServer(t, items...)
	use := sync.OnceFunc(func() { srv.Use(middleware.Logging(slog.New(slog.NewJSONHandler(&b, nil)), opts...)) })
	return srv, func(call func()) map[string]any {
		use() // last, so that it is outermost
		b.Reset()
		call()
		got := lines(t, b.String())
		require.Len(t, got, 1, "one line a call")
		return got[0]
	}
}

func TestLoggingWritesOneLineForACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, line := logged(t, nil, mcpkit.NewTool("login", func(in login) string { time.Sleep(time.Second); return "hello" }))
		const params = `{"name":"login","arguments":{"user":"ann","pass":"s3cret"}}`
		ctx := oauth.NewContext(t.Context(), &oauth.Principal{Subject: "ann", ClientID: "app"})
		p := legacy(t, srv, "0123456789abcdef")
		p.header = transport.Header{"X-Request-Id": {"r1"}, "Traceparent": {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}
		got := line(func() { p.call(ctx, "tools/call", params) })
		delete(got, "time")
		require.Equal(t, map[string]any{
			"level": "INFO", "msg": "mcp call", "method": "tools/call", "name": "login", "version": "2025-11-25", "duration": 1e9, "outcome": "ok",
			"ref": "r1", "request": "1", "params_bytes": float64(len(params)), "result_bytes": 5.0, "principal": "ann", "client": "app",
			"session": "n59REfey…", "trace": "4bf92f3577b34da6a3ce929d0e0e4736",
		}, got)

		got = line(func() {
			modern(t, srv).call(t.Context(), "tools/list", `{}`, `"traceparent":"00-11111111111111111111111111111111-00f067aa0ba902b7-01"`)
		})
		require.Equal(t, "11111111111111111111111111111111", got["trace"])
		require.NotContains(t, got, "principal")
		require.NotContains(t, got, "session")
		require.Len(t, got["ref"], 10)
	})
}

func TestLogLinesHaveTheSourceOfTheCallToLogging(t *testing.T) {
	var b bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{AddSource: true}))
	srv := newServer(t)
	srv.Use(middleware.Logging(logger))
	modern(t, srv).call(t.Context(), "server/discover", `{}`)
	source, _ := lines(t, b.String())[0]["source"].(map[string]any)
	require.Contains(t, source["file"], "logging_test.go")
}

func TestLoggingFollowsTheDefaultLogger(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	srv := newServer(t, mcpkit.NewTool("x", ok))
	srv.Use(middleware.Logging(nil))
	for range 2 {
		var b bytes.Buffer
		slog.SetDefault(slog.New(slog.NewJSONHandler(&b, nil)))
		modern(t, srv).toolText(t.Context(), "x")
		got := lines(t, b.String())
		require.Len(t, got, 1)
		require.Equal(t, "x", got[0]["name"])
		require.Equal(t, "ok", got[0]["outcome"])
	}
}

func TestLoggingCountsRepairs(t *testing.T) {
	type sums struct {
		A []int `json:"a"`
		B int   `json:"b"`
	}
	var b bytes.Buffer
	repairing := mcpkit.MustNew(nil, quiet, mcpkit.Lenient(mcpkit.LenientScalars, mcpkit.LenientJSON))
	require.NoError(t, repairing.Add(mcpkit.NewTool("sum", func(in sums, call *mcpkit.Call) int { return in.A[0] + in.B + 100*call.Repairs() })))
	repairing.Use(middleware.Logging(slog.New(slog.NewJSONHandler(&b, nil))))
	p := modern(t, repairing)
	require.Equal(t, "203", p.toolText(t.Context(), "sum", `{"a":"[1]","b":"2"}`))
	require.Equal(t, "103", p.toolText(t.Context(), "sum", `{"a":"[1]","b":2}`))
	require.Equal(t, "3", p.toolText(t.Context(), "sum", `{"a":[1],"b":2}`))
	got := lines(t, b.String())
	require.Len(t, got, 3)
	require.Equal(t, 2.0, got[0]["repairs"])
	require.Equal(t, 1.0, got[1]["repairs"])
	require.NotContains(t, got[2], "repairs")
}

func TestLoggingArgumentsIsOptionalAndHidesSecrets(t *testing.T) {
	tool := func() mcpkit.Item { return mcpkit.NewTool("login", func(login) string { return "hello s3cret" }) }
	for _, test := range []struct {
		name    string
		options []middleware.LoggingOption
		args    string
		want    any
	}{
		{"by default", nil, `{"user":"ann","pass":"s3cret"}`, nil},
		{"asked for", []middleware.LoggingOption{middleware.LogArguments(0)}, `{"user":"ann","pass":"s3cret"}`, `{"user":"ann","pass":"[redacted]"}`},
		{"long", []middleware.LoggingOption{middleware.LogArguments(9)}, `{"user":"ann","pass":"s3cret"}`, `{"user":"…`},
	} {
		t.Run(test.name, func(t *testing.T) {
			srv, line := logged(t, test.options, tool())
			got := line(func() { modern(t, srv).call(t.Context(), "tools/call", `{"name":"login","arguments":`+test.args+`}`) })
			require.Equal(t, test.want, got["arguments"])
			require.NotContains(t, fmt.Sprint(got), "s3cret")
		})
	}
}

func TestLoggingSaysHowCallsEnd(t *testing.T) {
	waits := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	srv, line := logged(t, nil,
		mcpkit.NewTool("fails", func() error { return errors.New("full text") }),
		mcpkit.NewTool("panics", func() { panic("oops") }),
		mcpkit.NewTool("slow", waits).Timeout(1),
		mcpkit.NewTool("waits", waits),
		mcpkit.NewTool("limited", ok), mcpkit.NewTool("closed", ok),
		mcpkit.NewTool("breaks", ok),
	)
	srv.Use(
		middleware.When(onTool("limited"), refusing(&mcpkit.RateLimitError{After: time.Second})),
		middleware.When(onTool("closed"), middleware.Scopes("s")),
		middleware.When(onTool("breaks"), func(mcpkit.Handler) mcpkit.Handler {
			return func(context.Context, *mcpkit.Call) (mcpkit.Result, error) { panic("in between") }
		}),
	)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		ctx                   context.Context
		tool                  string
		level, outcome, error string
	}{
		{t.Context(), "fails", "WARN", "error", "full text"},
		{t.Context(), "panics", "ERROR", "panic", "panic: oops"},
		{t.Context(), "slow", "WARN", "timeout", "timed out after 1ns"},
		{gone, "waits", "INFO", "cancelled", "context canceled"},
		{t.Context(), "limited", "WARN", "limited", "too many calls; try again in 1s"},
		{t.Context(), "closed", "WARN", "denied", `not allowed: this needs the scope "s"`},
		{t.Context(), "unknown", "WARN", "protocol_error", `unknown tool "unknown" (code -32602)`},
		{t.Context(), "breaks", "ERROR", "panic", ""},
	} {
		got := line(func() { modern(t, srv).call(test.ctx, "tools/call", `{"name":"`+test.tool+`"}`) })
		require.Equal(t, []any{test.level, test.outcome}, []any{got["level"], got["outcome"]}, test.tool)
		if test.error != "" {
			require.Equal(t, test.error, got["error"], test.tool)
		}
	}
}

func TestLoggingIsNotFloodedByNames(t *testing.T) {
	srv, line := logged(t, nil, mcpkit.NewTool("x", ok))
	got := line(func() { modern(t, srv).call(t.Context(), "tools/call", `{"name":"`+strings.Repeat("x", 100_000)+`"}`) })
	require.Equal(t, strings.Repeat("x", 256)+"…", got["name"])
}

func TestTraceIDs(t *testing.T) {
	var trace string
	srv := newServer(t, mcpkit.NewTool("x", func(ctx context.Context) { trace = middleware.TraceID(mcpkit.CallFrom(ctx)) }))
	for _, test := range []struct{ meta, want string }{
		{`"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"`, "4bf92f3577b34da6a3ce929d0e0e4736"},
		{`"traceparent":"cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later"`, "4bf92f3577b34da6a3ce929d0e0e4736"},
		{`"traceparent":"00-00000000000000000000000000000000-00f067aa0ba902b7-01"`, ""},
		{`"traceparent":"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"`, ""},
		{`"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e473\n-00f067aa0ba902b7-01"`, ""},
		{`"traceparent":"00-4bf9"`, ""},
		{`"traceparent":7`, ""},
		{`"x2":""`, ""},
	} {
		trace = "not run"
		modern(t, srv).call(t.Context(), "tools/call", `{"name":"x"}`, test.meta)
		require.Equal(t, test.want, trace, test.meta)
	}
}

func TestAuditSaysWhoCalledWhatAndHowItEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		srv := newServer(t, mcpkit.NewTool("login", func(in login) error { time.Sleep(time.Second); return errors.New("secret text") }))
		srv.Use(middleware.Audit(slog.NewJSONHandler(&b, nil), middleware.AuditBegin(), middleware.AuditArguments()),
			middleware.When(onTool("closed"), middleware.Scopes("s")))
		require.NoError(t, srv.Add(mcpkit.NewTool("closed", ok)))
		p := legacy(t, srv, "0123456789abcdef")
		b.Reset() // of the beginning of the session
		p.call(as(t.Context(), "ann"), "tools/call", `{"name":"login","arguments":{"user":"ann","pass":"s3cret"}}`)
		p.call(t.Context(), "tools/call", `{"name":"closed"}`)
		got := lines(t, b.String())
		require.Len(t, got, 4)
		ref := got[0]["ref"]
		require.Len(t, ref, 10)
		begin := map[string]any{
			"time": "2000-01-01T00:00:00Z", "level": "INFO", "msg": "audit", "event": "begin", "ref": ref, "request": "1", "method": "tools/call", "name": "login", "version": "2025-11-25",
			"principal": map[string]any{"subject": "ann"}, "session": "n59REfey…", "arguments": map[string]any{"user": "ann", "pass": "[redacted]"},
		}
		require.Equal(t, begin, got[0])
		end := begin
		end["time"], end["event"], end["outcome"], end["durationMs"] = "2000-01-01T00:00:01Z", "end", "error", 1000.0
		require.Equal(t, end, got[1])
		require.Equal(t, "denied", got[3]["outcome"])
		require.EqualValues(t, mcpkit.CodeForbidden, got[3]["code"])
		require.NotContains(t, got[3], "principal")
	})
}

// fullDisk is a writer that fails.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestNoResponseLeavesWithoutItsRecord(t *testing.T) {
	for _, test := range []struct {
		name, tool string
		opts       []middleware.AuditOption
		ran        int
	}{
		{"a result", "x", nil, 1},
		{"a refusal", "unknown", nil, 0},
		{"with begin, nothing runs", "x", []middleware.AuditOption{middleware.AuditBegin()}, 0},
	} {
		ran := 0
		srv := newServer(t, mcpkit.NewTool("x", func() string { ran++; return "answer" }))
		srv.Use(middleware.Audit(slog.NewJSONHandler(fullDisk{}, nil), test.opts...))
		require.Equal(t, "the audit log cannot be written, so there is no result", modern(t, srv).toolText(t.Context(), test.tool), test.name)
		require.Equal(t, test.ran, ran, test.name)
	}
}

func TestACallWhoseResultIsANilPointerHasItsRecord(t *testing.T) {
	var b bytes.Buffer
	srv := newServer(t, mcpkit.NewTool("ok", ok))
	srv.Use(middleware.Audit(slog.NewJSONHandler(&b, nil)), wrap(func(context.Context, *mcpkit.Call, mcpkit.Handler) (mcpkit.Result, error) {
		return (*protocol.CallToolResult)(nil), nil
	}))
	require.NotNil(t, modern(t, srv).call(t.Context(), "tools/call", `{"name":"ok"}`).Error)
	require.Len(t, lines(t, b.String()), 1)
}

func TestAuditHasARecordOfEachRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		srv := newServer(t, pay())
		srv.Use(middleware.Audit(slog.NewJSONHandler(&b, nil), middleware.AuditBegin()))
		p := modern(t, srv)
		second := agree(t, p.round(t.Context(), "pay", ""))
		time.Sleep(time.Minute)
		third := agree(t, p.round(t.Context(), "pay", second))
		require.Equal(t, "paid", textOf(t, p.round(t.Context(), "pay", third)))

		got := lines(t, b.String())
		require.Len(t, got, 4)
		require.Equal(t, "begin", got[0]["event"])
		for i, outcome := range []string{"input_required", "input_required", "ok"} {
			record := got[1+i]
			require.Equal(t, "end", record["event"])
			require.Equal(t, outcome, record["outcome"])
			require.Equal(t, got[0]["ref"], record["ref"])
		}
		require.Equal(t, 2.0, got[3]["round"])
		require.InDelta(t, 63_000, got[3]["durationMs"], 1, "from the first round to the end of the last")
	})
}

// keeping is a log that keeps the records.
type keeping struct {
	slog.Handler
	records []slog.Record
}

func (k *keeping) Handle(_ context.Context, r slog.Record) error {
	k.records = append(k.records, r)
	return nil
}

// The bytes of a request may hold another request after its response.
func TestAuditCopiesArguments(t *testing.T) {
	log := &keeping{}
	srv := newServer(t, mcpkit.NewTool("x", func(in struct {
		Text string `json:"text"`
	}) string {
		return in.Text
	}))
	srv.Use(middleware.Audit(log, middleware.AuditArguments()))
	var sent json.RawMessage
	srv.Use(wrap(func(ctx context.Context, call *mcpkit.Call, next mcpkit.Handler) (mcpkit.Result, error) {
		sent = call.Arguments()
		return next(ctx, call)
	}))
	modern(t, srv).toolText(t.Context(), "x", `{"text":"ann"}`)
	copy(sent, `{"text":"bob"}`)
	var kept json.RawMessage
	log.records[0].Attrs(func(a slog.Attr) bool {
		if a.Key == "arguments" {
			kept = a.Value.Any().(json.RawMessage)
		}
		return true
	})
	require.JSONEq(t, `{"text":"ann"}`, string(kept))
}
