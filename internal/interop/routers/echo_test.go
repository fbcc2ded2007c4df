package routers

// docs:begin both

import (
	"log/slog"

	echojwt "github.com/labstack/echo-jwt/v4"
	"github.com/labstack/echo/v4"
	echomw "github.com/labstack/echo/v4/middleware"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/transport/echomcp"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// mount mounts a server in an app. Middleware of echo handles HTTP requests, and middleware of
// mcpkit the calls in them.
func mount(app *echo.Echo, srv *mcpkit.Server, secret []byte) *streamable.Handler {
	app.Use(echomw.RequestID())
	srv.Use(middleware.Logging(slog.Default()))
	return echomcp.Mount(app, "/mcp", srv, echomcp.Use(echojwt.JWT(secret)))
}

// docs:end both
