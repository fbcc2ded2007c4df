package otelmcp

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcpkit/mcpkit-go/fleet"
)

// ObserveFleet measures the operations of the engine of a fleet, and makes spans for those that are
// part of a trace:
//
//	mcpkit.Fleet(engine, otelmcp.ObserveFleet())
//
// The metric is mcpkit.fleet.operation.duration. Its attributes, and those of the spans, are
// db.operation.name, such as Update; db.collection.name, which is the set; and
// mcpkit.fleet.outcome: ok, not_found, exists, conflict, cancelled, too_large, invalid, timeout or
// unavailable. The last four are also the error.type. Of the options, only [TracerProvider] and
// [MeterProvider] matter.
func ObserveFleet(opts ...Option) fleet.Option {
	o := options{tracers: otel.GetTracerProvider(), meters: otel.GetMeterProvider()}
	for _, opt := range opts {
		opt(&o)
	}
	tracer := o.tracers.Tracer(scope)
	durations := usable(o.meters.Meter(scope).Float64Histogram("mcpkit.fleet.operation.duration", metric.WithUnit("s"),
		metric.WithDescription("How long operations of the fleet's engine took."),
		metric.WithExplicitBucketBoundaries(0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)))
	return fleet.Observe(func(ctx context.Context, op, set string) (context.Context, func(error)) {
		start := time.Now()
		attributes := []attribute.KeyValue{attribute.String("db.operation.name", op)}
		name := op
		if set != "" {
			attributes = append(attributes, attribute.String("db.collection.name", set))
			name += " " + set
		}
		span := trace.SpanFromContext(context.Background()) // does nothing
		if trace.SpanContextFromContext(ctx).IsValid() {
			ctx, span = tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
		}
		return ctx, func(err error) {
			outcome, failed := fleetOutcome(err)
			ended := []attribute.KeyValue{attribute.String("mcpkit.fleet.outcome", outcome)}
			if failed {
				ended = append(ended, attribute.String("error.type", outcome))
				span.SetStatus(codes.Error, outcome) // errors may have addresses
			}
			span.SetAttributes(ended...)
			span.End()
			durations.Record(ctx, time.Since(start).Seconds(), metric.WithAttributes(append(attributes, ended...)...))
		}
	})
}

// fleetOutcome returns a word for the error of an operation, and whether it is a failure.
func fleetOutcome(err error) (outcome string, failed bool) {
	switch {
	case err == nil:
		return "ok", false
	case errors.Is(err, fleet.ErrNotFound):
		return "not_found", false
	case errors.Is(err, fleet.ErrExists):
		return "exists", false
	case errors.Is(err, fleet.ErrConflict):
		return "conflict", false
	case errors.Is(err, fleet.ErrTooLarge):
		return "too_large", true
	case errors.Is(err, fleet.ErrInvalid):
		return "invalid", true
	case errors.Is(err, context.Canceled):
		return "cancelled", false
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout", true
	}
	return "unavailable", true
}
