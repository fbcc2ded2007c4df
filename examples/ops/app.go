package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"github.com/labstack/echo/v4"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/middleware/healthz"
	"github.com/mcpkit/mcpkit-go/middleware/otelmcp"
	"github.com/mcpkit/mcpkit-go/transport/echomcp"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

const path = "/mcp" // of the MCP server

// config has the settings of the program.
type config struct {
	key     []byte                // verifies tokens
	audit   string                // the path of the audit file
	logger  *slog.Logger          // receives all logs
	spans   sdktrace.SpanExporter // exports traces
	figures sdkmetric.Exporter    // exports metrics
	drain   time.Duration         // the time between failing readiness checks and shutting down
}

// app is the program before it runs.
type app struct {
	config
	echo    *echo.Echo
	service *Orders
	server  *mcpkit.Server
	mcp     *streamable.Handler
	ready   *healthz.Ready
	audit   *os.File
	traces  *sdktrace.TracerProvider
	metrics *sdkmetric.MeterProvider
}

func newApp(c config) (*app, error) {
	if err := checkKey(c.key); err != nil {
		return nil, err
	}
	a := &app{config: c, echo: echo.New(), service: NewOrders()}
	var err error
	if a.audit, err = os.OpenFile(c.audit, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return nil, err
	}
	a.traces = sdktrace.NewTracerProvider(sdktrace.WithBatcher(c.spans))
	a.metrics = sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(c.figures)))
	if a.server, err = mcpkit.New(a.service, mcpkit.Logger(c.logger), mcpkit.Authenticated()); err != nil {
		return nil, errors.Join(err, a.audit.Close())
	}
	a.use()
	a.routes()
	return a, nil
}

// docs:begin chain

// use adds the middleware, the outermost first. Middleware that observes is outermost, so it sees
// refused calls, too.
func (a *app) use() {
	a.server.Use(
		otelmcp.Middleware(otelmcp.TracerProvider(a.traces), otelmcp.MeterProvider(a.metrics)),
		middleware.Logging(a.logger),
	)
	audit := slog.NewJSONHandler(a.audit, nil)
	a.server.UseFor(mcpkit.OnMethod("tools/call"), middleware.Audit(audit, middleware.AuditBegin(), middleware.AuditArguments()))
	a.server.Use(
		middleware.RateLimit(5, 10),
		middleware.Concurrency(64),
	)
	a.server.UseFor(mcpkit.OnTag("money"), middleware.RateLimit(1, 2, middleware.By(middleware.CallerAndTargetOf)))
	a.server.Use(
		middleware.ResultLimit(64<<10),
		middleware.Cache(10*time.Second),
	)
}

// docs:end chain

// docs:begin routes

// routes mounts the server behind tokens, and the health checks without.
func (a *app) routes() {
	a.ready = healthz.New(
		healthz.Check{Name: "orders", Run: a.service.Ping, OnFailure: func(err error) { a.logger.Warn("not ready", "error", err) }},
		healthz.Overdue(a.server.Overdue, 100), // methods that do not return
	)
	a.echo.HideBanner, a.echo.HidePort = true, true
	a.echo.GET("/livez", echo.WrapHandler(healthz.Live()))
	a.echo.GET("/readyz", echo.WrapHandler(a.ready))
	a.mcp = echomcp.Mount(a.echo, path, a.server,
		echomcp.Use(bearer(a.key)),
		echomcp.Streamable(&streamable.Options{Logger: a.logger}))
}

// docs:end routes

// docs:begin serve

// serve serves until ctx ends, and then lets the calls in flight finish.
func (a *app) serve(ctx context.Context, ln net.Listener) error {
	if err := a.server.Start(ctx); err != nil { // otherwise the first request starts the services
		return err
	}
	a.logger.Info("serving", "addr", ln.Addr().String(), "path", path, "build", build())
	server := &http.Server{Handler: a.echo, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	// Ends when the server is shut down.
	go func() { failed <- server.Serve(ln) }()
	select {
	case err := <-failed:
		return errors.Join(err, a.close(context.WithoutCancel(ctx)))
	case <-ctx.Done():
	}
	a.ready.Drain()
	time.Sleep(a.drain) // the load balancer sends requests until it has checked /readyz

	// Longer than any tool may run, so no call is cancelled.
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), mcpkit.DefaultToolTimeout+5*time.Second)
	defer cancel()
	return errors.Join(echomcp.Shutdown(bound, server, a.mcp), a.close(context.WithoutCancel(ctx)))
}

// close closes the resources of the program after the last call.
func (a *app) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second) // the time limit of the calls may be over
	defer cancel()
	return errors.Join(a.server.Close(), a.audit.Close(), a.traces.Shutdown(ctx), a.metrics.Shutdown(ctx))
}

// docs:end serve

// build returns the version of the module that the program was built from, or "(devel)" if it was
// built without information from git.
func build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return info.Main.Version
}

// A collector writes spans and metrics to the log. Your program would use the OTLP exporters of
// OpenTelemetry instead.
type collector struct{ logger *slog.Logger }

// A meter is the part of a collector that exports metrics.
type meter struct{ logger *slog.Logger }

// Export writes each histogram to the log.
func (m meter) Export(ctx context.Context, data *metricdata.ResourceMetrics) error {
	for _, scope := range data.ScopeMetrics {
		for _, metric := range scope.Metrics {
			m.logger.InfoContext(ctx, "metric", "name", metric.Name, "unit", metric.Unit)
		}
	}
	return nil
}

// Temporality returns the default.
func (meter) Temporality(kind sdkmetric.InstrumentKind) metricdata.Temporality {
	return sdkmetric.DefaultTemporalitySelector(kind)
}

// Aggregation returns the default.
func (meter) Aggregation(kind sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(kind)
}

// ForceFlush does nothing, since each line is written at once.
func (meter) ForceFlush(context.Context) error { return nil }

// Shutdown does nothing.
func (meter) Shutdown(context.Context) error { return nil }

// ExportSpans writes each span to the log.
func (c collector) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	for _, s := range spans {
		c.logger.InfoContext(ctx, "span", "name", s.Name(), "trace", s.SpanContext().TraceID().String(), "took", s.EndTime().Sub(s.StartTime()))
	}
	return nil
}

// Shutdown does nothing.
func (c collector) Shutdown(context.Context) error { return nil }
