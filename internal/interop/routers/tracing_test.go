package routers

// docs:begin tracing

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/trace"
)

// startTracing sends spans to the collector that the environment names. The function that it
// returns sends what is left: call it when the server has ended.
func startTracing(ctx context.Context) (shutdown func(context.Context) error, err error) {
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, err
	}
	spans := trace.NewTracerProvider(trace.WithBatcher(exporter))
	otel.SetTracerProvider(spans)
	return spans.Shutdown, nil
}

// docs:end tracing
