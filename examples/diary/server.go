package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
	"github.com/mcpkit/mcpkit-go/transport/echomcp"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// config has the settings of the server.
type config struct {
	resource string // the URL by which clients know the server
	issuer   string // the authorization server
	insecure bool   // allows loopback addresses without TLS
	logger   *slog.Logger
	change   func(*resource.Options) // changes the options of the guard; may be nil
}

// docs:begin guard

// newGuard returns a guard that accepts tokens of the issuer for this resource.
func newGuard(c config) (*resource.Guard, error) {
	opts := resource.Options{
		Issuer:           c.issuer,
		Resource:         c.resource,
		Scopes:           []string{"diary:read"}, // required for every request
		ScopesSupported:  []string{"diary:read", "diary:write"},
		Name:             "Diary",
		InsecureLoopback: c.insecure,
		Logger:           c.logger,
	}
	if c.change != nil {
		c.change(&opts)
	}
	return resource.New(opts)
}

// docs:end guard

// docs:begin mount

// newApp returns an echo app with the server behind the guard. The metadata is public.
func newApp(c config) (*echo.Echo, *streamable.Handler, error) {
	guard, err := newGuard(c)
	if err != nil {
		return nil, nil, err
	}
	srv, err := mcpkit.New(NewDiary(), mcpkit.Logger(c.logger), mcpkit.Authenticated(), mcpkit.StepUp())
	if err != nil {
		return nil, nil, err
	}
	app := echo.New()
	app.HideBanner, app.HidePort = true, true
	for _, path := range guard.MetadataPaths() {
		app.Any(path, echo.WrapHandler(guard.Metadata())) // with OPTIONS, for pages
	}
	handler := echomcp.Mount(app, "/mcp", srv,
		echomcp.Use(echo.WrapMiddleware(guard.Wrap)),
		echomcp.Streamable(&streamable.Options{Logger: c.logger}))
	return app, handler, nil
}

// docs:end mount

// serve serves until ctx ends.
func serve(ctx context.Context, c config, ln net.Listener) error {
	app, handler, err := newApp(c)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: app, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	// Ends when the server is shut down.
	go func() { failed <- server.Serve(ln) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return echomcp.Shutdown(bound, server, handler)
}
