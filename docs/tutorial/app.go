package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/golang-jwt/jwt/v5"
	echojwt "github.com/labstack/echo-jwt/v4"
	"github.com/labstack/echo/v4"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/echomcp"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// newApp is an echo app with a route of its own, and with the server at /mcp for callers who have
// a token that is signed with the secret.
func newApp(srv *mcpkit.Server, secret []byte) (*echo.Echo, *streamable.Handler) {
	app := echo.New()
	app.HideBanner, app.HidePort = true, true
	app.Server.ReadHeaderTimeout = 10 * time.Second // echo sets none
	app.GET("/healthz", func(c echo.Context) error { return c.String(http.StatusOK, "ok") })
	return app, echomcp.Mount(app, "/mcp", srv, echomcp.Use(echojwt.JWT(secret)))
}

// newToken returns a token for a user of the app, which is valid for an hour.
func newToken(user string, secret []byte) (string, error) {
	claims := jwt.MapClaims{"sub": user, "exp": time.Now().Add(time.Hour).Unix()}
	return jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(secret)
}

// serveHTTP serves until ctx ends, and lets the calls in flight finish.
func serveHTTP(ctx context.Context, srv *mcpkit.Server, addr string, secret []byte) error {
	if err := srv.Start(ctx); err != nil {
		return errors.Join(err, srv.Close())
	}
	app, handler := newApp(srv, secret)
	var err error
	if app.Listener, err = net.Listen("tcp", addr); err != nil {
		return errors.Join(err, srv.Close())
	}
	failed := make(chan error, 1)
	go func() { failed <- app.Start("") }() // ends when the app is shut down
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(echomcp.Shutdown(bound, app, handler), srv.Close())
}
