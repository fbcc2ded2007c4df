package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/middleware/healthz"
	"github.com/mcpkit/mcpkit-go/middleware/otelmcp"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport/echomcp"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// app is the program before it runs.
type app struct {
	logger *slog.Logger
	echo   *echo.Echo
	server *mcpkit.Server
	mcp    *streamable.Handler
	ready  *healthz.Ready
}

// newApp returns an app for tokens that are signed with the key.
func newApp(key []byte, logger *slog.Logger, audit slog.Handler) (*app, error) {
	orders := NewOrders()
	srv, err := mcpkit.New(orders, mcpkit.Logger(logger), mcpkit.Authenticated())
	if err != nil {
		return nil, err
	}
	a := &app{logger: logger, echo: echo.New(), server: srv}
	a.use(audit)
	a.routes(key, orders)
	return a, nil
}

// docs:begin chain

// use adds the middleware, the outermost first. Middleware that observes is outermost, so it sees
// refused calls, too.
func (a *app) use(audit slog.Handler) {
	calls := func(call *mcpkit.Call) bool { return call.Method() == protocol.MethodToolsCall }
	money := func(call *mcpkit.Call) bool { return slices.Contains(call.Tags(), "money") }
	a.server.Use(
		otelmcp.Middleware(), // sends to the providers that otel.SetTracerProvider and SetMeterProvider set
		middleware.Logging(a.logger),
		middleware.When(calls, middleware.Audit(audit, middleware.AuditBegin(), middleware.AuditArguments())),
		middleware.RateLimit(5, 10),
		middleware.Concurrency(64),
		middleware.When(money, middleware.RateLimit(1, 2, middleware.By(middleware.CallerAndTargetOf))),
		middleware.ResultLimit(64<<10),
		middleware.Cache(10*time.Second),
	)
}

// docs:end chain

// docs:begin routes

// routes mounts the server behind tokens, and the health checks without.
func (a *app) routes(key []byte, orders *Orders) {
	warn := func(err error) { a.logger.Warn("not ready", "error", err) }
	a.ready = healthz.New(
		healthz.Check{Name: "orders", Run: orders.Ping, OnFailure: warn},
		healthz.Overdue(a.server.Overdue, 100), // methods that do not return
	)
	a.echo.HideBanner, a.echo.HidePort = true, true
	a.echo.GET("/livez", echo.WrapHandler(healthz.Live()))
	a.echo.GET("/readyz", echo.WrapHandler(a.ready))
	a.mcp = echomcp.Mount(a.echo, "/mcp", a.server,
		echomcp.Use(bearer(key)),
		echomcp.Streamable(&streamable.Options{Logger: a.logger}))
}

// docs:end routes

// serve serves until ctx ends, and then lets the calls in flight finish. Before that it waits until
// the load balancer has noticed, by /readyz, that the program is about to end.
func (a *app) serve(ctx context.Context, ln net.Listener, drain time.Duration) error {
	if err := a.server.Start(ctx); err != nil { // otherwise the first request starts the services
		return err
	}
	a.logger.Info("serving", "addr", ln.Addr().String())
	server := &http.Server{Handler: a.echo, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	// Ends when the server is shut down.
	go func() { failed <- server.Serve(ln) }()
	select {
	case err := <-failed:
		return errors.Join(err, a.server.Close())
	case <-ctx.Done():
	}
	a.ready.Drain()
	time.Sleep(drain)

	// Longer than the 30 s that a tool may run, so no call is cancelled.
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), 35*time.Second)
	defer cancel()
	return errors.Join(echomcp.Shutdown(bound, server, a.mcp), a.server.Close())
}
