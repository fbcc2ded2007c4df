package otelmcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/middleware/otelmcp"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// peer sends modern requests, over HTTP when it has headers.
type peer struct{ header transport.Header }

func (peer) Notify(context.Context, *jsonrpc.Request) error { return nil }

func (peer) Call(context.Context, *jsonrpc.Request) (*jsonrpc.Response, error) {
	return nil, transport.ErrNoServerRequests
}

func (peer) Session() *transport.Session { return nil }

func (p peer) Header() transport.Header { return p.header }

type login struct {
	User string `json:"user"`
	Pass string `json:"pass,omitempty" secret:"true"`
}

// bench is a server whose telemetry is kept in memory.
type bench struct {
	t      testing.TB
	srv    *mcpkit.Server
	spans  *tracetest.InMemoryExporter
	reader *sdkmetric.ManualReader
	traces *sdktrace.TracerProvider
}

func newBench(t testing.TB, opts ...otelmcp.Option) *bench {
	b := &bench{t: t, spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	b.traces = sdktrace.NewTracerProvider(sdktrace.WithSyncer(b.spans))
	opts = append(opts, otelmcp.TracerProvider(b.traces), otelmcp.MeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(b.reader))))
	b.srv = newServer(t)
	on := func(tool string) func(*mcpkit.Call) bool {
		return func(call *mcpkit.Call) bool { return call.Target() == tool }
	}
	b.srv.Use(otelmcp.Middleware(opts...), middleware.When(on("limited"), limited), middleware.When(on("closed"), middleware.Scopes("s")))
	return b
}

func limited(mcpkit.Handler) mcpkit.Handler {
	return func(context.Context, *mcpkit.Call) (mcpkit.Result, error) {
		return nil, &mcpkit.RateLimitError{After: time.Second}
	}
}

func newServer(t testing.TB) *mcpkit.Server {
	srv, err := mcpkit.New(nil, mcpkit.Name("test", "1"), mcpkit.Logger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	ok := func() string { return "ok" }
	require.NoError(t, srv.Add(
		mcpkit.NewTool("login", func(in login) string { time.Sleep(3 * time.Second); return "hello" }),
		mcpkit.NewTool("fails", func() error { return errors.New("full text") }),
		mcpkit.NewTool("says", func() *protocol.CallToolResult { return &protocol.CallToolResult{IsError: true} }),
		mcpkit.NewTool("panics", func() { panic("oops") }),
		mcpkit.NewTool("slow", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }).Timeout(time.Second),
		mcpkit.NewTool("limited", ok), mcpkit.NewTool("closed", ok),
		mcpkit.NewTool("trace", func(ctx context.Context) string {
			return trace.SpanContextFromContext(ctx).TraceID().String() + " " + baggage.FromContext(ctx).String()
		}),
		mcpkit.NewPrompt("greet", func() (string, error) { return "", errors.New("x") }),
		mcpkit.NewResource("note://{id}", "note", func(id string) (string, error) {
			if id == "none" {
				return "", fmt.Errorf("table notes: %w", mcpkit.ErrNotFound)
			}
			return id, nil
		}),
	))
	return srv
}

const declared = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`

// call sends a request; meta are further members of its _meta.
func (b *bench) call(ctx context.Context, p peer, method, params, meta string) string {
	b.t.Helper()
	if params != "" {
		params += ","
	}
	msg, bad := jsonrpc.Decode(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"r1","method":%q,"params":{%s"_meta":{%s%s}}}`, method, params, declared, meta))
	require.Nil(b.t, bad)
	return string(jsonrpc.AppendResponse(nil, b.srv.ServeRPC(ctx, msg.Request, p)))
}

// span is the one span that was made since the last.
func (b *bench) span() tracetest.SpanStub {
	b.t.Helper()
	spans := b.spans.GetSpans()
	b.spans.Reset()
	require.Len(b.t, spans, 1)
	return spans[0]
}

func text(list []attribute.KeyValue) map[string]string {
	m := map[string]string{}
	for _, kv := range list {
		m[string(kv.Key)] = kv.Value.String()
	}
	return m
}

func TestSpansFollowTheConventions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plain := newBench(t)
		full := newBench(t, otelmcp.Arguments(), otelmcp.NoResourceURIs())
		common := map[string]string{"mcp.protocol.version": "2026-07-28", "jsonrpc.request.id": "r1", "network.transport": "pipe"}
		tool := func(name string) map[string]string {
			return map[string]string{"mcp.method.name": "tools/call", "gen_ai.tool.name": name, "gen_ai.operation.name": "execute_tool"}
		}
		with := func(m map[string]string, more ...string) map[string]string {
			for i := 0; i < len(more); i += 2 {
				m[more[i]] = more[i+1]
			}
			return m
		}
		for _, test := range []struct {
			bench          *bench
			method, params string
			name           string
			want           map[string]string
			status         codes.Code
		}{
			{plain, "tools/list", ``, "tools/list", map[string]string{"mcp.method.name": "tools/list"}, codes.Unset},
			{plain, "tools/call", `"name":"login","arguments":{"user":"ann","pass":"s3cret"}`, "tools/call login", tool("login"), codes.Unset},
			{full, "tools/call", `"name":"login","arguments":{"user":"ann","pass":"s3cret"}`, "tools/call login",
				with(tool("login"), "gen_ai.tool.call.arguments", `{"user":"ann","pass":"[redacted]"}`), codes.Unset},
			{plain, "tools/call", `"name":"fails"`, "tools/call fails", with(tool("fails"), "error.type", "tool_error"), codes.Error},
			{plain, "tools/call", `"name":"says"`, "tools/call says", with(tool("says"), "error.type", "tool_error"), codes.Error},
			{plain, "tools/call", `"name":"panics"`, "tools/call panics", with(tool("panics"), "error.type", "panic"), codes.Error},
			{plain, "tools/call", `"name":"slow"`, "tools/call slow", with(tool("slow"), "error.type", "timeout"), codes.Error},
			{plain, "tools/call", `"name":"limited"`, "tools/call limited", with(tool("limited"), "error.type", "limited"), codes.Error},
			{plain, "tools/call", `"name":"closed"`, "tools/call closed",
				with(tool("closed"), "error.type", "-31001", "rpc.response.status_code", "-31001"), codes.Error},
			{plain, "tools/call", `"name":"made up by a client"`, "tools/call",
				map[string]string{"mcp.method.name": "tools/call", "error.type": "-32602", "rpc.response.status_code": "-32602"}, codes.Error},
			{plain, "prompts/get", `"name":"greet"`, "prompts/get greet",
				map[string]string{"mcp.method.name": "prompts/get", "gen_ai.prompt.name": "greet", "error.type": "-32603", "rpc.response.status_code": "-32603"}, codes.Error},
			{full, "resources/read", `"uri":"note://1"`, "resources/read", map[string]string{"mcp.method.name": "resources/read"}, codes.Unset},
			{plain, "resources/read", `"uri":"note://none"`, "resources/read", map[string]string{"mcp.method.name": "resources/read", "mcp.resource.uri": "note://none",
				"error.type": "-32602", "rpc.response.status_code": "-32602"}, codes.Error},
			{plain, "resources/read", `"uri":"note://1"`, "resources/read",
				map[string]string{"mcp.method.name": "resources/read", "mcp.resource.uri": "note://1"}, codes.Unset},
		} {
			test.bench.call(t.Context(), peer{}, test.method, test.params, "")
			span := test.bench.span()
			require.Equal(t, test.name, span.Name)
			require.Equal(t, trace.SpanKindServer, span.SpanKind)
			for k, v := range common {
				test.want[k] = v
			}
			require.Equal(t, test.want, text(span.Attributes), test.name)
			require.Equal(t, test.status, span.Status.Code, test.name)
		}
	})
}

func TestClientTextIsShortened(t *testing.T) {
	b := newBench(t)
	long := strings.Repeat("é", 5000)
	b.call(t.Context(), peer{}, "resources/read", `"uri":"note://`+long+`"`, "")
	uri := text(b.span().Attributes)["mcp.resource.uri"]
	require.Less(t, len(uri), 1100)
	require.True(t, utf8.ValidString(uri))
	b.call(t.Context(), peer{}, "tools/call", `"name":"`+long+`"`, "")
	said := b.span().Status.Description
	require.Contains(t, said, "unknown tool")
	require.Less(t, len(said), 1100)
	require.True(t, utf8.ValidString(said))
}

const (
	clientTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	traceparent = `,"traceparent":"00-` + clientTrace + `-00f067aa0ba902b7-01","tracestate":"a=b","baggage":"tenant=acme"`
)

func TestContextIsReadFromMeta(t *testing.T) {
	b := newBench(t)
	t.Run("of the client", func(t *testing.T) {
		require.Contains(t, b.call(t.Context(), peer{}, "tools/call", `"name":"trace"`, traceparent), clientTrace+" tenant=acme")
		span := b.span()
		require.Equal(t, "00f067aa0ba902b7", span.Parent.SpanID().String())
		require.Equal(t, "a=b", span.SpanContext.TraceState().String())
		require.Empty(t, span.Links)
	})
	t.Run("of the client, within a span of HTTP", func(t *testing.T) {
		ctx, around := b.traces.Tracer("http").Start(t.Context(), "POST /mcp")
		b.call(ctx, peer{}, "tools/call", `"name":"trace"`, traceparent)
		span := b.span()
		require.Equal(t, clientTrace, span.SpanContext.TraceID().String())
		require.Len(t, span.Links, 1)
		require.Equal(t, around.SpanContext().SpanID(), span.Links[0].SpanContext.SpanID())
	})
	t.Run("none, within a span of HTTP", func(t *testing.T) {
		ctx, around := b.traces.Tracer("http").Start(t.Context(), "POST /mcp")
		b.call(ctx, peer{}, "tools/call", `"name":"trace"`, "")
		span := b.span()
		require.Equal(t, around.SpanContext().SpanID(), span.Parent.SpanID())
		require.Empty(t, span.Links)
	})
	for name, meta := range map[string]string{"none": "", "malformed": `,"traceparent":"00-zz"`, "no string": `,"traceparent":{"a":1}`} {
		t.Run(name, func(t *testing.T) {
			b.call(t.Context(), peer{}, "tools/call", `"name":"trace"`, meta)
			require.False(t, b.span().Parent.IsValid())
		})
	}
}

func TestInjectWritesContextToMeta(t *testing.T) {
	b := newBench(t)
	ctx, span := b.traces.Tracer("app").Start(t.Context(), "work")
	meta := otelmcp.Inject(ctx, protocol.Meta{"x": []byte("1")})
	require.Equal(t, fmt.Sprintf(`"00-%s-%s-01"`, span.SpanContext().TraceID(), span.SpanContext().SpanID()), string(meta["traceparent"]))
	require.Equal(t, "1", string(meta["x"]))
	back := trace.SpanContextFromContext(otelmcp.Extract(t.Context(), meta))
	require.Equal(t, span.SpanContext().SpanID(), back.SpanID())
	require.True(t, back.IsRemote())
	require.Empty(t, otelmcp.Inject(t.Context(), nil), "nothing to say")
}

func TestDurationsHaveFewAttributes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, otelmcp.Arguments())
		header := transport.Header{"Content-Type": {"application/json"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"login"}}
		for range 2 {
			b.call(t.Context(), peer{header}, "tools/call", `"name":"login","arguments":{"user":"ann"}`, "")
		}
		for i := range 3 {
			b.call(t.Context(), peer{}, "tools/call", fmt.Sprintf(`"name":"unknown %d"`, i), "")
		}
		require.Len(t, b.metrics(), 1)
		points := b.points("mcp.server.operation.duration")
		require.Len(t, points, 2)
		login := points["gen_ai.operation.name=execute_tool,gen_ai.tool.name=login,mcp.method.name=tools/call,mcp.protocol.version=2026-07-28,network.protocol.name=http,network.transport=tcp"]
		require.Equal(t, uint64(2), login.Count)
		require.InDelta(t, 6, login.Sum, 0)
		require.Equal(t, []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}, login.Bounds)
		unknown := points["error.type=-32602,mcp.method.name=tools/call,mcp.protocol.version=2026-07-28,network.transport=pipe,rpc.response.status_code=-32602"]
		require.Equal(t, uint64(3), unknown.Count)
	})
}

// metrics are what was measured, by name.
func (b *bench) metrics() map[string]metricdata.Aggregation {
	b.t.Helper()
	var data metricdata.ResourceMetrics
	require.NoError(b.t, b.reader.Collect(b.t.Context(), &data))
	require.Len(b.t, data.ScopeMetrics, 1)
	all := map[string]metricdata.Aggregation{}
	for _, m := range data.ScopeMetrics[0].Metrics {
		all[m.Name] = m.Data
	}
	return all
}

func TestOverdueMethodsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		require.NoError(t, b.srv.Add(mcpkit.NewTool("deaf", func() string { time.Sleep(time.Minute); return "" }).Timeout(time.Second)))
		overdue := func() int64 {
			points := b.metrics()["mcpkit.overdue"].(metricdata.Sum[int64])
			require.False(t, points.IsMonotonic)
			require.Len(t, points.DataPoints, 1)
			require.Equal(t, "deaf", text(points.DataPoints[0].Attributes.ToSlice())["gen_ai.tool.name"])
			return points.DataPoints[0].Value
		}
		b.call(t.Context(), peer{}, "tools/call", `"name":"slow"`, "")
		require.NotContains(t, b.metrics(), "mcpkit.overdue", "it has returned")
		b.call(t.Context(), peer{}, "tools/call", `"name":"deaf"`, "")
		b.call(t.Context(), peer{}, "tools/call", `"name":"deaf"`, "")
		require.EqualValues(t, 2, overdue())
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Zero(t, overdue())
	})
}

func TestCallWithSeveralRoundsCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		require.NoError(t, b.srv.Add(mcpkit.NewTool("pay", func(ctx context.Context) (bool, error) {
			time.Sleep(time.Second)
			return mcpkit.Confirm(ctx, "Pay?", mcpkit.Key("sure"))
		})))
		round := func(more string) string {
			msg, bad := jsonrpc.Decode(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"r1","method":"tools/call","params":{"name":"pay"%s,"_meta":{`+
				`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}}}`, more))
			require.Nil(t, bad)
			return string(b.srv.ServeRPC(t.Context(), msg.Request, peer{}).Result)
		}
		var asked protocol.InputRequiredResult
		require.NoError(t, json.Unmarshal([]byte(round("")), &asked))
		require.NotContains(t, text(b.span().Attributes), "mcpkit.round")
		require.Contains(t, round(fmt.Sprintf(`,"requestState":%q,"inputResponses":{"sure":{"action":"accept","content":{"confirm":true}}}`, *asked.RequestState)), "true")
		require.Equal(t, "1", text(b.span().Attributes)["mcpkit.round"])

		all := b.metrics()
		for _, name := range []string{"mcp.server.operation.duration", "mcpkit.round.duration"} {
			points := all[name].(metricdata.Histogram[float64]).DataPoints
			require.Len(t, points, 1, name)
			require.Equal(t, uint64(1), points[0].Count, name)
		}
	})
}

func TestRepairsAreCounted(t *testing.T) {
	b := newBench(t)
	b.reader = sdkmetric.NewManualReader()
	srv := mcpkit.MustNew(nil, mcpkit.Logger(slog.New(slog.DiscardHandler)), mcpkit.Lenient(mcpkit.LenientScalars))
	require.NoError(t, srv.Add(mcpkit.NewTool("double", func(in struct {
		N int `json:"n"`
	}) int {
		return 2 * in.N
	})))
	srv.Use(otelmcp.Middleware(otelmcp.TracerProvider(b.traces), otelmcp.MeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(b.reader)))))
	b.srv = srv
	for _, n := range []string{`"1"`, `2`, `"3"`} {
		b.call(t.Context(), peer{}, "tools/call", `"name":"double","arguments":{"n":`+n+`}`, "")
	}
	spans := b.spans.GetSpans()
	require.Len(t, spans, 3)
	require.Equal(t, "1", text(spans[0].Attributes)["mcpkit.repairs"])
	require.NotContains(t, text(spans[1].Attributes), "mcpkit.repairs")
	points := b.metrics()["mcpkit.repairs"].(metricdata.Sum[int64]).DataPoints
	require.Len(t, points, 1)
	require.EqualValues(t, 2, points[0].Value)
	require.Equal(t, "double", text(points[0].Attributes.ToSlice())["gen_ai.tool.name"])
}

// odd is an engine that fails for some keys.
type odd struct{ *fleet.Local }

func (o odd) Get(ctx context.Context, set, key string) (fleet.Record, error) {
	switch key {
	case "broken":
		return fleet.Record{}, errors.New("10.0.0.1:6379 refuses the password hunter2")
	case "hangs":
		<-ctx.Done()
		return fleet.Record{}, ctx.Err()
	}
	return o.Local.Get(ctx, set, key)
}

func TestOperationsOfTheFleetAreObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
		b.traces = sdktrace.NewTracerProvider(sdktrace.WithSyncer(b.spans))
		opts := fleet.Options{
			Seal:   func(_ string, plain []byte) []byte { return bytes.Clone(plain) },
			Open:   func(_ string, sealed []byte) ([]byte, error) { return bytes.Clone(sealed), nil },
			Logger: slog.New(slog.DiscardHandler),
		}
		otelmcp.ObserveFleet(otelmcp.TracerProvider(b.traces), otelmcp.MeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(b.reader))))(&opts)
		f := fleet.New(odd{fleet.NewMemory(fleet.MemoryOptions{})}, opts)
		set := f.Set("things", 1)

		_, err := set.Create(t.Context(), fleet.Record{Key: "a", TTL: time.Hour})
		require.NoError(t, err)
		require.Empty(t, b.spans.GetSpans(), "it is no part of a trace")

		ctx, parent := b.traces.Tracer("app").Start(t.Context(), "request")
		_, err = set.Create(ctx, fleet.Record{Key: "a", TTL: time.Hour})
		require.ErrorIs(t, err, fleet.ErrExists)
		for _, key := range []string{"a", "b", "broken", "hangs", "not a name"} {
			_, _ = set.Get(ctx, key)
		}
		_, err = set.Update(ctx, fleet.Record{Key: "a", TTL: time.Hour, Revision: 99})
		require.ErrorIs(t, err, fleet.ErrConflict)
		gone, cancel := context.WithCancel(ctx)
		cancel()
		_, err = set.Count(gone, "")
		require.Error(t, err)
		_, err = f.After(ctx, "group", "log", 0, 1)
		require.NoError(t, err)
		parent.End()

		const things = "db.collection.name=things,db.operation.name="
		points := b.points("mcpkit.fleet.operation.duration")
		counts := map[string]uint64{}
		for set, p := range points {
			counts[set] = p.Count
		}
		require.Equal(t, map[string]uint64{
			things + "Create,mcpkit.fleet.outcome=ok":                              1,
			things + "Create,mcpkit.fleet.outcome=exists":                          1,
			things + "Get,mcpkit.fleet.outcome=ok":                                 1,
			things + "Get,mcpkit.fleet.outcome=not_found":                          1,
			things + "Get,error.type=unavailable,mcpkit.fleet.outcome=unavailable": 1,
			things + "Get,error.type=timeout,mcpkit.fleet.outcome=timeout":         1,
			things + "Get,error.type=invalid,mcpkit.fleet.outcome=invalid":         1,
			things + "Update,mcpkit.fleet.outcome=conflict":                        1,
			things + "Count,mcpkit.fleet.outcome=cancelled":                        1,
			"db.operation.name=After,mcpkit.fleet.outcome=ok":                      1,
		}, counts)
		require.InDelta(t, 2, points[things+"Get,error.type=timeout,mcpkit.fleet.outcome=timeout"].Sum, 0.01)

		failed := 0
		for _, s := range b.spans.GetSpans() {
			if s.Name == "request" {
				continue
			}
			require.Equal(t, parent.SpanContext().SpanID(), s.Parent.SpanID())
			require.NotContains(t, s.Status.Description, "hunter2")
			if s.Status.Code == codes.Error {
				failed++
			}
		}
		require.Equal(t, 3, failed)
		require.Contains(t, b.named(), "Get things")
	})
}

// model is a client whose model responds after two seconds, or fails.
type model struct {
	meta protocol.Meta // of the last server request
	err  error
}

func (m *model) Sample(_ context.Context, p *protocol.CreateMessageParams) (*protocol.CreateMessageResult, error) {
	m.meta = p.Meta
	time.Sleep(2 * time.Second)
	if m.err != nil {
		return nil, m.err
	}
	return &protocol.CreateMessageResult{Role: protocol.RoleAssistant, Model: "m", Content: protocol.SamplingContents{&protocol.TextContent{Text: "hi"}}}, nil
}

// poet is a tool that asks the client's model, in a span of its own.
func poet(b *bench) mcpkit.Item {
	return mcpkit.NewTool("poem", func(ctx context.Context) (string, error) {
		ctx, span := b.traces.Tracer("app").Start(ctx, "think")
		defer span.End()
		r, err := mcpkit.Sample(ctx, &protocol.CreateMessageParams{MaxTokens: 1, Meta: protocol.Meta{"own": []byte(`"kept"`), "traceparent": []byte(`"stale"`)},
			Messages: []protocol.SamplingMessage{{Role: protocol.RoleUser, Content: protocol.SamplingContents{&protocol.TextContent{Text: "a poem"}}}}})
		if err != nil {
			return "", err
		}
		return r.Content[0].(*protocol.TextContent).Text, nil
	})
}

// named are the spans that have ended since the last time, by name.
func (b *bench) named() map[string]tracetest.SpanStub {
	spans := map[string]tracetest.SpanStub{}
	for _, s := range b.spans.GetSpans() {
		spans[s.Name] = s
	}
	b.spans.Reset()
	return spans
}

// points are the measurements of one metric, by the text of their attributes.
func (b *bench) points(name string) map[string]metricdata.HistogramDataPoint[float64] {
	b.t.Helper()
	var data metricdata.ResourceMetrics
	require.NoError(b.t, b.reader.Collect(b.t.Context(), &data))
	points := map[string]metricdata.HistogramDataPoint[float64]{}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name == name {
				require.Equal(b.t, "s", m.Unit)
				for _, p := range m.Data.(metricdata.Histogram[float64]).DataPoints {
					set := p.Attributes
					points[set.Encoded(attribute.DefaultEncoder())] = p
				}
			}
		}
	}
	return points
}

func dial(t *testing.T, target any, v protocol.Version, opts ...client.DialOption) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), target, append(opts, client.Version(v))...)
	require.NoError(t, err)
	return c
}

func TestServerRequestsCarryTheContextInMeta(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		require.NoError(t, b.srv.Add(poet(b)))
		m := &model{}
		c := dial(t, client.InMemory(b.srv), protocol.V20251125, client.Handlers(m))
		b.named()
		_, err := c.CallTool(t.Context(), "poem", nil, client.Meta("traceparent", "00-"+clientTrace+"-00f067aa0ba902b7-01"))
		require.NoError(t, err)

		spans := b.named()
		call, think, ask := spans["tools/call poem"], spans["think"], spans["sampling/createMessage"]
		require.Equal(t, clientTrace, call.SpanContext.TraceID().String())
		require.Equal(t, trace.SpanKindClient, ask.SpanKind)
		require.Equal(t, think.SpanContext.SpanID(), ask.Parent.SpanID())
		require.Equal(t, 2*time.Second, ask.EndTime.Sub(ask.StartTime))
		require.Equal(t, codes.Unset, ask.Status.Code)
		attributes := text(ask.Attributes)
		require.Equal(t, map[string]string{"mcp.method.name": "sampling/createMessage", "mcp.protocol.version": "2025-11-25", "network.transport": "pipe"}, attributes)
		require.Equal(t, protocol.Meta{
			"own": []byte(`"kept"`), "traceparent": []byte(`"00-` + clientTrace + "-" + ask.SpanContext.SpanID().String() + `-01"`),
		}, m.meta)

		m.err = errors.New("no model today")
		_, err = c.CallTool(t.Context(), "poem", nil)
		require.Error(t, err)
		failed := b.named()["sampling/createMessage"]
		require.Equal(t, codes.Error, failed.Status.Code)
		require.NotEmpty(t, failed.Status.Description)
		require.Equal(t, "-32603", text(failed.Attributes)["error.type"])
		require.Equal(t, "-32603", text(failed.Attributes)["rpc.response.status_code"])

		points := b.points("mcp.client.operation.duration")
		require.Len(t, points, 2)
		fine := points["mcp.method.name=sampling/createMessage,mcp.protocol.version=2025-11-25,network.transport=pipe"]
		require.Equal(t, uint64(1), fine.Count)
		require.InDelta(t, 2, fine.Sum, 0)
		require.NoError(t, c.Close())
	})
}

func TestModernServerRequestsHaveNoSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		require.NoError(t, b.srv.Add(poet(b)))
		m := &model{}
		c := dial(t, client.InMemory(b.srv), protocol.V20260728, client.Handlers(m))
		b.spans.Reset()
		_, err := c.CallTool(t.Context(), "poem", nil, client.Meta("traceparent", "00-"+clientTrace+"-00f067aa0ba902b7-01"))
		require.NoError(t, err)
		var names []string
		for _, s := range b.spans.GetSpans() {
			names = append(names, s.Name)
			require.Equal(t, clientTrace, s.SpanContext.TraceID().String(), "the rounds are in the client's own trace")
		}
		require.Equal(t, []string{"think", "tools/call poem", "think", "tools/call poem"}, names)
		require.Empty(t, b.points("mcp.client.operation.duration"))
		require.NoError(t, c.Close())
	})
}

// Each transport is named in the span.
func TestSpansNameTheTransport(t *testing.T) {
	b := newBench(t)
	streamed, sockets := streamable.NewHandler(b.srv, nil), websocket.NewHandler(b.srv, nil)
	for _, test := range []struct {
		name   string
		target func(t *testing.T) any
		v      protocol.Version
		want   string
	}{
		{"in memory", func(*testing.T) any { return client.InMemory(b.srv) }, protocol.V20260728, "pipe"},
		{"streamable", func(t *testing.T) any {
			s := httptest.NewServer(streamed)
			t.Cleanup(func() { streamed.Close(); s.Close() })
			return s.URL
		}, protocol.V20260728, "tcp http"},
		{"websocket", func(t *testing.T) any {
			s := httptest.NewServer(sockets)
			t.Cleanup(func() { sockets.Close(); s.Close() })
			return strings.Replace(s.URL, "http", "ws", 1)
		}, protocol.V20260728, "tcp websocket"},
	} {
		t.Run(test.name, func(t *testing.T) {
			target := test.target(t)
			c := dial(t, target, test.v)
			_, err := c.CallTool(t.Context(), "trace", nil)
			require.NoError(t, err)
			got := text(b.named()["tools/call trace"].Attributes)
			require.Equal(t, test.want, strings.TrimSpace(got["network.transport"]+" "+got["network.protocol.name"]))
			require.NoError(t, c.Close())
		})
	}
}
