package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/middleware/expvarmcp"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// notes keeps the measurements.
type notes struct {
	began int
	ended []middleware.Measurement
}

func (n *notes) CallBegan(context.Context, *mcpkit.Call) { n.began++ }

func (n *notes) CallEnded(_ context.Context, _ *mcpkit.Call, m middleware.Measurement) {
	n.ended = append(n.ended, m)
}

func TestMetricsMeasureEveryCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &notes{}
		srv := newServer(t,
			mcpkit.NewTool("x", func() string { time.Sleep(time.Second); return "12345" }),
			mcpkit.NewResource("x://{id}", "t", func(id string) string { return id }).MIME("text/plain"),
			mcpkit.NewResource("s://s", "s", func() io.Reader { return strings.NewReader(strings.Repeat("x", 100<<10)) }).MIME("text/plain"),
			mcpkit.NewResource("r://r", "r", func() io.Reader { return strings.NewReader("x") }).MIME("text/plain"),
		)
		srv.Use(middleware.Recover(nil), middleware.Metrics(n))
		srv.UseFor(mcpkit.OnTool("breaks"), func(mcpkit.Handler) mcpkit.Handler {
			return func(context.Context, *mcpkit.Call) (mcpkit.Result, error) { panic("in between") }
		})
		require.NoError(t, srv.Add(mcpkit.NewTool("breaks", ok)))
		p := modern(t, srv)
		for _, test := range []struct {
			method, params, target string
			outcome                middleware.Outcome
			took                   time.Duration
			bytes                  int
		}{
			{"tools/call", `{"name":"x"}`, "x", middleware.OK, time.Second, 5},
			{"tools/call", `{"name":"made up by a client"}`, "", middleware.ProtocolError, 0, -1},
			{"tools/call", `{"name":"breaks"}`, "breaks", middleware.Panicked, 0, -1},
			{"resources/read", `{"uri":"x://123"}`, "x://{id}", middleware.OK, 0, 3},
			{"resources/read", `{"uri":"s://s"}`, "s://s", middleware.OK, 0, -1},
			{"resources/read", `{"uri":"r://r"}`, "r://r", middleware.OK, 0, 1},
		} {
			*n = notes{}
			said(t, p.call(t.Context(), test.method, test.params))
			require.Equal(t, 1, n.began)
			require.Len(t, n.ended, 1)
			require.Positive(t, n.ended[0].ParamsBytes)
			n.ended[0].ParamsBytes = 0
			require.Equal(t, middleware.Measurement{
				Method: test.method, Target: test.target, Version: protocol.V20260728, Outcome: test.outcome, Duration: test.took, ResultBytes: test.bytes,
			}, n.ended[0])
		}
	})
}

func TestExpvar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := expvarmcp.New("")
		var during string
		srv := newServer(t,
			mcpkit.NewTool("x", func() string {
				during = metrics.Map().Get("in_flight").String()
				time.Sleep(20 * time.Millisecond)
				return "12345"
			}),
			mcpkit.NewTool("fails", func() error { return errors.New("x") }),
		)
		srv.Use(middleware.Metrics(metrics))
		p := modern(t, srv)
		for range 3 {
			p.toolText(t.Context(), "x")
		}
		p.toolText(t.Context(), "fails")
		p.call(t.Context(), "tools/call", `{"name":"unknown"}`)
		require.Equal(t, "1", during)
		var got map[string]any
		require.NoError(t, json.Unmarshal([]byte(metrics.Map().String()), &got))
		require.Positive(t, got["params_bytes"])
		delete(got, "params_bytes")
		require.Equal(t, map[string]any{
			"in_flight":        0.0,
			"fleet_operations": map[string]any{}, "fleet_failures": map[string]any{}, "fleet_duration_ms": map[string]any{},
			"overdue":      0.0,
			"rounds":       map[string]any{},
			"calls":        map[string]any{"tools/call x ok": 3.0, "tools/call fails error": 1.0, "tools/call protocol_error": 1.0},
			"duration_ms":  map[string]any{"tools/call x": 60.0, "tools/call fails": 0.0, "tools/call": 0.0},
			"duration_le":  map[string]any{"0.001": 2.0, "0.005": 2.0, "0.025": 5.0, "0.1": 5.0, "0.5": 5.0, "2.5": 5.0, "10": 5.0, "30": 5.0, "+Inf": 5.0},
			"result_bytes": 15.0, "repairs": 0.0,
		}, got)
	})
}

func TestMetricsCountRepairs(t *testing.T) {
	metrics := expvarmcp.New("")
	srv := mcpkit.MustNew(nil, quiet, mcpkit.Repair())
	require.NoError(t, srv.Add(mcpkit.NewTool("add", func(in struct {
		A int `json:"a"`
		B int `json:"b"`
	}) int {
		return in.A + in.B
	})))
	srv.Use(middleware.Metrics(metrics))
	for _, p := range families(t, srv) {
		require.Equal(t, "3", p.toolText(t.Context(), "add", `{"a":"1","b":"2"}`))
		require.Equal(t, "3", p.toolText(t.Context(), "add", `{"a":1,"b":"2"}`))
		require.Equal(t, "3", p.toolText(t.Context(), "add", `{"a":1,"b":2}`))
	}
	require.Equal(t, "6", metrics.Map().Get("repairs").String())
}

func TestRecoverReportsPanics(t *testing.T) {
	var reported []any
	srv := newServer(t, mcpkit.NewTool("panics", func() { panic("in the method") }), mcpkit.NewTool("breaks", ok), mcpkit.NewTool("fails", func() error { return errors.New("x") }))
	srv.Use(middleware.Recover(func(_ context.Context, call *mcpkit.Call, p *mcpkit.PanicError) {
		require.NotEmpty(t, p.Stack)
		reported = append(reported, call.Name(), p.Value)
	}))
	srv.UseFor(mcpkit.OnTool("breaks"), func(mcpkit.Handler) mcpkit.Handler {
		return func(context.Context, *mcpkit.Call) (mcpkit.Result, error) { panic("in between") }
	})
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
