package otelmcp_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

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
