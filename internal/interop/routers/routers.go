// Package routers mounts a server in net/http, chi, gin and fiber, behind a middleware of each that
// knows the caller. docs/howto/mount.md shows these functions. Its tests also hold echomcp to its
// word with the JWT middleware of echo, which the library itself does not need.
package routers

//lint:file-ignore U1000 The guide shows these functions, and the tests call them.

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/adaptor"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// docs:begin shutdown

// shutDown lets the calls in flight finish for up to 10 seconds.
func shutDown(ctx context.Context, handler *streamable.Handler, server *http.Server, srv *mcpkit.Server) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(handler.Shutdown(ctx), server.Shutdown(ctx), srv.Close())
}

// docs:end shutdown

// docs:begin nethttp

// inNetHTTP mounts the handler behind the app's authentication.
func inNetHTTP(mcp http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.Handle("/mcp", authenticate(mcp))
	return mux
}

// docs:end nethttp

// docs:begin user

// authenticate stands for the app's own authentication. It tells the server who is calling.
func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, ok := userOf(r)
		if !ok {
			http.Error(w, "log in first", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(oauth.NewContext(r.Context(), user)))
	})
}

// docs:end user

func userOf(r *http.Request) (*oauth.Principal, bool) {
	name, _, ok := r.BasicAuth()
	return &oauth.Principal{Subject: name}, ok
}

// docs:begin chi

// inChi mounts the handler in a group with the app's authentication.
func inChi(mcp http.Handler) http.Handler {
	r := chi.NewRouter()
	r.Get("/healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	r.Group(func(r chi.Router) {
		r.Use(authenticate)
		r.Handle("/mcp", mcp)
	})
	return r
}

// docs:end chi

// docs:begin gin

// inGin mounts the handler in a group with the app's authentication.
func inGin(mcp http.Handler) http.Handler {
	r := gin.New()
	r.Use(gin.Recovery())
	r.GET("/healthz", func(c *gin.Context) { c.Status(http.StatusOK) })
	private := r.Group("/", ginAuthenticate)
	private.Any("/mcp", gin.WrapH(mcp))
	return r
}

// ginAuthenticate is authenticate for gin.
func ginAuthenticate(c *gin.Context) {
	user, ok := userOf(c.Request)
	if !ok {
		c.AbortWithStatus(http.StatusUnauthorized)
		return
	}
	c.Request = c.Request.WithContext(oauth.NewContext(c.Request.Context(), user))
}

// docs:end gin

// docs:begin fiber

// inFiber mounts the handler with the app's authentication in front of it.
func inFiber(mcp http.Handler) *fiber.App {
	app := fiber.New()
	app.Get("/healthz", func(c fiber.Ctx) error { return c.SendStatus(fiber.StatusOK) })
	app.All("/mcp", adaptor.HTTPHandler(authenticate(mcp)))
	return app
}

// docs:end fiber
