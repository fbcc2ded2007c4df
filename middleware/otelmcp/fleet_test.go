package otelmcp_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/middleware/otelmcp"
)

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
