package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/echomcp"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// docs:begin app

// newApp returns an echo app with its own route and the server mounted at /mcp.
func newApp(srv *mcpkit.Server, logger *slog.Logger) (*echo.Echo, *streamable.Handler) {
	app := echo.New()
	app.HideBanner, app.HidePort = true, true
	app.Server.ReadHeaderTimeout = 10 * time.Second // echo sets none
	app.Use(middleware.Recover(), middleware.RequestID(), middleware.Gzip())
	app.GET("/healthz", func(c echo.Context) error { return c.String(http.StatusOK, "ok") })
	handler := echomcp.Mount(app, "/mcp", srv, echomcp.Streamable(&streamable.Options{Logger: logger}))
	return app, handler
}

// docs:end app

// shutdownTimeout is how long calls in flight may take when the program shuts down.
const shutdownTimeout = 10 * time.Second

// docs:begin serve

// serveHTTP serves until ctx ends. Then it ends the MCP streams, because the app would wait for
// them, shuts down the app and closes the services.
func serveHTTP(ctx context.Context, srv *mcpkit.Server, addr string, logger *slog.Logger) error {
	if err := loopback(addr); err != nil {
		return err
	}
	if err := srv.Start(ctx); err != nil {
		return errors.Join(err, srv.Close())
	}
	app, handler := newApp(srv, logger)
	var err error
	if app.Listener, err = net.Listen("tcp", addr); err != nil {
		return errors.Join(err, srv.Close())
	}
	logger.Info("serving", "url", "http://"+app.Listener.Addr().String()+"/mcp")
	failed := make(chan error, 1)
	// Ends when the app is shut down.
	go func() { failed <- app.Start("") }()
	select {
	case err := <-failed:
		return errors.Join(err, srv.Close())
	case <-ctx.Done():
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err = echomcp.Shutdown(bound, app, handler)
	<-failed
	return errors.Join(err, srv.Close())
}

// docs:end serve

// loopback refuses addresses that other machines could reach.
func loopback(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("-http %q is not an address; write for example 127.0.0.1:8080", addr)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("-http %q is reachable from other machines, and its callers can run code; write for example 127.0.0.1:8080", addr)
	}
	return nil
}
