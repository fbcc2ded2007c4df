// Command catalog serves a small forge, and shows each caller a part of it: what the process was
// started for, what the request selects, and what the scopes of the caller allow.
//
//	catalog -http 127.0.0.1:8080
//
// It prints a token for each of its users. Requests select with the URL, such as
// /mcp/issues,pulls/readonly, and with headers, such as X-MCP-Toolsets. The environment selects for
// the whole process (FORGE_TOOLSETS, FORGE_READONLY, FORGE_TOOLS, FORGE_EXCLUDE_TOOLS), lets models
// enable toolsets (FORGE_DYNAMIC=1), chooses the language (FORGE_LANGUAGE=de) and replaces single
// texts (MCPKIT_TOOL_LIST_ISSUES_DESCRIPTION).
package main

//go:generate go run ../../cmd/mcpkit gen

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mcpkit/mcpkit-go/ext/catalog"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/transport/echomcp"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// newServer returns the server for an environment.
func newServer(getenv func(string) string, environ []string) (*mcpkit.Server, error) {
	texts, err := catalog.Overrides(nil, environ)
	if err != nil {
		return nil, err
	}
	forge := newForge()
	// docs:begin server
	opts := []mcpkit.Option{
		mcpkit.Name("forge", "1.0.0"), mcpkit.Authenticated(),
		mcpkit.With(&Repositories{forge: forge}), mcpkit.With(&Issues{forge: forge}),
		mcpkit.With(&Pulls{forge: forge}), mcpkit.With(&Users{users: users}),
		mcpkit.Describe(translate(languages[getenv("FORGE_LANGUAGE")])), texts,
		catalog.Select(catalog.FromEnv("FORGE_", getenv)), // what the operator offers
		catalog.Narrow(catalog.Path("/mcp")),              // what a request asks for
		catalog.Narrow(catalog.Headers),
		mcpkit.Visible(preview),
	}
	if getenv("FORGE_DYNAMIC") == "1" {
		opts = append(opts, catalog.Dynamic(time.Hour)) // what a model has enabled
	}
	// docs:end server
	srv, err := mcpkit.New(nil, opts...)
	if err == nil {
		srv.Use(instruct)
	}
	return srv, err
}

var users = []User{{"ann", "ann@example.com"}, {"bob", ""}}

// principals are who the users are for the server.
var principals = []*oauth.Principal{
	{Subject: "ann", Scopes: []string{"repo", "merge"}},
	{Subject: "bob", Scopes: []string{"public_repo", "read:org"}},
}

// newApp mounts the server in an echo app. Requests without a token reach what needs no scopes.
func newApp(srv *mcpkit.Server, tokens map[string]*oauth.Principal) (*echo.Echo, *streamable.Handler) {
	app := echo.New()
	app.HideBanner, app.HidePort = true, true
	app.Server.ReadHeaderTimeout = 10 * time.Second
	bearer := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if authorization := c.Request().Header.Get("Authorization"); authorization != "" {
				user := tokens[strings.TrimPrefix(authorization, "Bearer ")]
				if user == nil {
					c.Response().Header().Set("WWW-Authenticate", "Bearer")
					return echo.NewHTTPError(http.StatusUnauthorized, "the token is not valid")
				}
				c.Set("user", user)
			}
			return next(c)
		}
	}
	handler := streamable.NewHandler(srv, nil)
	app.Any("/mcp", echomcp.Wrap(handler), bearer)
	app.Any("/mcp/*", echomcp.Wrap(handler), bearer)
	return app, handler
}

func main() {
	addr := flag.String("http", "127.0.0.1:8080", "address to serve on")
	flag.Parse()
	srv, err := newServer(os.Getenv, os.Environ())
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *addr, srv); err != nil {
		log.Fatal(err)
	}
}

// serve serves until ctx ends. It returns an error if the environment selects what does not exist.
func serve(ctx context.Context, addr string, srv *mcpkit.Server) error {
	if err := srv.Start(ctx); err != nil {
		return err
	}
	tokens := map[string]*oauth.Principal{}
	for _, p := range principals {
		token := rand.Text()
		tokens[token] = p
		fmt.Printf("%s, with the scopes %s: Authorization: Bearer %s\n", p.Subject, p.Scopes, token)
	}
	app, handler := newApp(srv, tokens)
	failed := make(chan error, 1)
	// Ends when the app is shut down.
	go func() { failed <- app.Start(addr) }()
	select {
	case err := <-failed:
		return errors.Join(err, srv.Close())
	case <-ctx.Done():
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(echomcp.Shutdown(bound, app, handler), srv.Close())
}
