// Package otelmcp traces and measures the calls of mcpkit servers with OpenTelemetry. It follows
// the semantic conventions for MCP, which are still in development, so attribute names may change.
//
//	srv.Use(otelmcp.Middleware())
//
// The W3C trace context comes from the request's _meta (traceparent, tracestate and baggage). If
// there is a span already, such as that of an HTTP server, it becomes a link if the client sent a
// context, and the parent otherwise. In a legacy session, each server request (sampling,
// elicitation, roots) has a span, whose context is sent in the _meta of that request. In version
// 2026-07-28 a server request is part of a result and belongs to the client's trace. [Inject] adds
// the context to the _meta of requests that the program itself sends.
package otelmcp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// scope names this package to exporters.
const scope = "github.com/mcpkit/mcpkit-go/middleware/otelmcp"

// An Option configures [Middleware].
type Option func(*options)

type options struct {
	tracers        trace.TracerProvider
	meters         metric.MeterProvider
	arguments      bool
	noResourceURIs bool
}

// TracerProvider sets where spans go. The default is otel.GetTracerProvider.
func TracerProvider(p trace.TracerProvider) Option { return func(o *options) { o.tracers = p } }

// MeterProvider sets where metrics go. The default is otel.GetMeterProvider.
func MeterProvider(p metric.MeterProvider) Option { return func(o *options) { o.meters = p } }

// Arguments adds the arguments of tools to spans, without secret values; see
// [mcpkit.Call.RedactedArguments].
func Arguments() Option { return func(o *options) { o.arguments = true } }

// NoResourceURIs keeps the URIs of resources out of spans.
func NoResourceURIs() Option { return func(o *options) { o.noResourceURIs = true } }

// Middleware makes a span for each call. Add it first, so that it sees the calls that other
// middleware refuses. It records these metrics:
//
//	mcp.server.operation.duration  each call
//	mcp.client.operation.duration  each server request to a legacy client, which also has a span
//	mcpkit.round.duration          each later round of a call with server requests
//	mcpkit.repairs                 argument values that mcpkit.Lenient repaired
//	mcpkit.overdue                 methods that still run after their callers got a timeout error
//
// In version 2026-07-28, a call with server requests has several rounds. Each has a span; later
// ones have the attribute mcpkit.round. Only the first round counts as an operation.
//
// The attribute error.type of a failed call is the JSON-RPC code if the client gets one. For tool
// errors it is timeout, limited, cancelled or panic (see [middleware.Outcome]), or else tool_error.
func Middleware(opts ...Option) mcpkit.Middleware {
	o := options{tracers: otel.GetTracerProvider(), meters: otel.GetMeterProvider()}
	for _, opt := range opts {
		opt(&o)
	}
	t := &telemetry{options: o, tracer: o.tracers.Tracer(scope)}
	meter := o.meters.Meter(scope)
	t.durations = histogram(meter, "mcp.server.operation.duration", "How long the server took to answer requests.")
	t.questions = histogram(meter, "mcp.client.operation.duration", "How long clients took to answer what the server asked them.")
	t.rounds = histogram(meter, "mcpkit.round.duration", "How long the server took for the later rounds of calls that ask questions.")
	t.overdue = usable(meter.Int64UpDownCounter("mcpkit.overdue", metric.WithUnit("{method}"),
		metric.WithDescription("How many methods still run though their callers were answered in their place.")))
	t.repairs = usable(meter.Int64Counter("mcpkit.repairs", metric.WithUnit("{value}"),
		metric.WithDescription("How many values of arguments were repaired.")))
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) { return t.call(ctx, call, next) }
	}
}

func histogram(meter metric.Meter, name, description string) metric.Float64Histogram {
	return usable(meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description),
		metric.WithExplicitBucketBoundaries(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)))
}

// usable reports the error of making an instrument, which works in any case, but may do nothing.
func usable[T any](instrument T, err error) T {
	if err != nil {
		otel.Handle(err)
	}
	return instrument
}

// telemetry holds the state shared by all calls.
type telemetry struct {
	options
	tracer                       trace.Tracer
	durations, rounds, questions metric.Float64Histogram
	repairs                      metric.Int64Counter
	overdue                      metric.Int64UpDownCounter
	labels                       labelTable
}

func (t *telemetry) call(ctx context.Context, call *mcpkit.Call, next mcpkit.Handler) (result mcpkit.Result, err error) {
	start := time.Now()
	ctx, span := t.start(ctx, call)
	finished := false
	defer func() {
		outcome := middleware.Panicked // an inner middleware panicked; the panic continues
		if finished {
			outcome = middleware.OutcomeOf(result, err)
		}
		l := labelsOf(call, outcome, err)
		option := t.labels.option(l)
		if round := call.Round(); round == 0 {
			t.durations.Record(ctx, time.Since(start).Seconds(), option)
		} else {
			t.rounds.Record(ctx, time.Since(start).Seconds(), option)
			span.SetAttributes(attribute.Int("mcpkit.round", round))
		}
		if call.Overdue() {
			t.overdue.Add(ctx, 1, option)
			call.OnReturn(func() { t.overdue.Add(context.Background(), -1, option) })
		}
		if n := call.Repairs(); n > 0 {
			t.repairs.Add(ctx, int64(n), option)
			span.SetAttributes(attribute.Int("mcpkit.repairs", n))
		}
		if span.IsRecording() {
			end(span, l, outcome, err)
		}
		span.End()
	}()
	call.Trace(func(ctx context.Context, e mcpkit.TraceEvent) (context.Context, func(error)) {
		if e.Kind != mcpkit.TraceQuestion {
			return nil, nil
		}
		return t.question(ctx, call, e)
	})
	result, err = next(ctx, call)
	finished = true
	return result, err
}

// start begins the span of a call.
func (t *telemetry) start(ctx context.Context, call *mcpkit.Call) (context.Context, trace.Span) {
	around := trace.SpanContextFromContext(ctx)
	ctx = w3c.Extract(ctx, metaCarrier{get: call.Meta})
	options := make([]trace.SpanStartOption, 0, 3)
	options = append(options, trace.WithSpanKind(trace.SpanKindServer))
	if parent := trace.SpanContextFromContext(ctx); around.IsValid() && !parent.Equal(around) {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: around}))
	}
	l := labels{method: call.Method(), target: targetOf(call)}
	options = append(options, trace.WithAttributes(l.start()...)) // for samplers
	name := l.method
	if l.target != "" {
		name += " " + l.target
	}
	ctx, span := t.tracer.Start(ctx, name, options...)
	if span.IsRecording() {
		t.describe(span, call)
	}
	return ctx, span
}

// describe adds the attributes that are known before the call runs.
func (t *telemetry) describe(span trace.Span, call *mcpkit.Call) {
	span.SetAttributes(
		attribute.String("mcp.protocol.version", string(call.Version())),
		attribute.String("jsonrpc.request.id", clip(idText(call.RequestID()))),
	)
	span.SetAttributes(networkOf(call).append(nil)...)
	if id := call.SessionID(); id != "" {
		span.SetAttributes(attribute.String("mcp.session.id", sessionID(id)))
	}
	if !t.noResourceURIs && isResource(call) {
		span.SetAttributes(attribute.String("mcp.resource.uri", clip(call.Name())))
	}
	if t.arguments && call.Method() == protocol.MethodToolsCall {
		if args := call.RedactedArguments(); args != nil {
			span.SetAttributes(attribute.String("gen_ai.tool.call.arguments", string(args)))
		}
	}
}

// end records how the call ended.
func end(span trace.Span, l labels, outcome middleware.Outcome, err error) {
	if l.code != "" {
		span.SetAttributes(attribute.String("rpc.response.status_code", l.code))
	}
	if l.errorType == "" {
		return
	}
	span.SetAttributes(attribute.String("error.type", l.errorType))
	span.SetStatus(codes.Error, description(outcome, err))
}

// description returns the error message that the client gets, if it is known here, or the outcome.
func description(outcome middleware.Outcome, err error) string {
	if rpc, ok := errors.AsType[*jsonrpc.Error](err); ok && rpc != nil {
		return clip(rpc.Message)
	}
	return string(outcome)
}

// maxText is the longest text from a peer that a span contains, in bytes.
const maxText = 1024

// clip shortens s to maxText.
func clip(s string) string {
	if len(s) > maxText {
		return strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return s
}

var w3c = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})

// Inject adds the W3C context of ctx to the _meta of a request to be sent, and returns it. meta may
// be nil.
func Inject(ctx context.Context, meta protocol.Meta) protocol.Meta {
	if meta == nil {
		meta = protocol.Meta{}
	}
	w3c.Inject(ctx, metaCarrier{set: meta})
	return meta
}

// Extract returns ctx with the W3C context of the _meta of a received message.
func Extract(ctx context.Context, meta protocol.Meta) context.Context {
	return w3c.Extract(ctx, metaCarrier{get: func(key string) json.RawMessage { return meta[key] }})
}
