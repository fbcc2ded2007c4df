// Command workstation gives a model the tools of a Go developer: the files below one directory, its
// git history, and go test. One server has three services.
//
//	workstation                       serves the current directory over standard input and output
//	workstation -root DIR             serves DIR
//	workstation -http 127.0.0.1:8080  serves HTTP, in an echo app, at http://127.0.0.1:8080/mcp
//
// Callers of go_test run code as the user of the server. So the program listens on loopback
// addresses only.
package main

import (
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/labstack/echo/v4"
	echomw "github.com/labstack/echo/v4/middleware"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/transport/echomcp"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

func main() {
	root := flag.String("root", ".", "directory to serve")
	addr := flag.String("http", "", "loopback address to serve HTTP on, instead of stdio")
	flag.Parse()
	// Standard output belongs to the protocol.
	srv, err := newServer(*root, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *addr == "" {
		err = srv.Serve(ctx)
	} else if ln, failed := listen(*addr); failed != nil {
		err = failed
	} else {
		err = serveHTTP(ctx, srv, ln)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// source holds the doc comments of the services, for a program that runs without its source.
//
//go:embed files.go git.go gotool.go
var source embed.FS

// docs:begin server

// newServer returns a server with three services. Each has a prefix: files_read, git_log, go_test.
func newServer(root string, logger *slog.Logger) (*mcpkit.Server, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	srv, err := mcpkit.New(nil,
		mcpkit.Name("workstation", "1.0.0"),
		mcpkit.Instructions("The files, the git history and the tests of "+root+". All paths are relative to it."),
		mcpkit.Docs(source, "main"),
		mcpkit.Logger(logger),
		mcpkit.ToolTimeout(30*time.Second), // go_test has a longer one in its tag
		mcpkit.With(&Files{dir: root}, mcpkit.Prefix("files")),
		mcpkit.With(&Git{dir: root}, mcpkit.Prefix("git")),
		mcpkit.With(&Go{dir: root}, mcpkit.Prefix("go")),
	)
	if err != nil {
		return nil, err
	}
	srv.Use(middleware.Logging(logger), middleware.RateLimit(10, 20))
	return srv, nil
}

// docs:end server

// docs:begin app

// newApp returns an echo app with its own route and the server mounted at /mcp.
func newApp(srv *mcpkit.Server) (*echo.Echo, *streamable.Handler) {
	app := echo.New()
	app.HideBanner, app.HidePort = true, true
	app.Server.ReadHeaderTimeout = 10 * time.Second // echo sets none
	app.Use(echomw.Recover(), echomw.RequestID(), echomw.Gzip())
	app.GET("/healthz", func(c echo.Context) error { return c.String(http.StatusOK, "ok") })
	return app, echomcp.Mount(app, "/mcp", srv)
}

// docs:end app

// docs:begin serve

// serveHTTP serves until ctx ends. Then it ends the MCP streams, because the app would wait for
// them, shuts down the app and closes the services.
func serveHTTP(ctx context.Context, srv *mcpkit.Server, ln net.Listener) error {
	app, handler := newApp(srv)
	app.Listener = ln
	failed := make(chan error, 1)
	// Ends when the app is shut down.
	go func() { failed <- app.Start("") }()
	select {
	case err := <-failed:
		return errors.Join(err, srv.Close())
	case <-ctx.Done():
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(echomcp.Shutdown(bound, app, handler), srv.Close())
}

// docs:end serve

// listen refuses addresses that other machines can reach.
func listen(addr string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	if !ln.Addr().(*net.TCPAddr).IP.IsLoopback() {
		reason := fmt.Errorf("-http %q is reachable from other machines; write for example 127.0.0.1:8080", addr)
		return nil, errors.Join(reason, ln.Close())
	}
	return ln, nil
}
