package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/protocol"
)

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
