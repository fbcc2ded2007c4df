// Command workstation gives a model the tools of a Go developer: the files below one directory, its
// git history, and go test. One server has three services.
//
//	workstation            serves the current directory over standard input and output
//	workstation -root DIR  serves DIR
//
// Callers of go_test run code as the user of the server. So it serves no network.
package main

import (
	"context"
	"flag"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
)

func main() {
	root := flag.String("root", ".", "directory to serve")
	flag.Parse()
	// Standard output belongs to the protocol.
	srv, err := newServer(*root, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := srv.Serve(ctx); err != nil {
		log.Fatal(err)
	}
}

//go:generate go run ../../cmd/mcpkit gen

// newServer returns a server with three services. Each has a prefix: files_read, git_log, go_test.
func newServer(root string, logger *slog.Logger) (*mcpkit.Server, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	// docs:begin server
	srv, err := mcpkit.New(nil,
		mcpkit.Name("workstation", "1.0.0"),
		mcpkit.Instructions("The files, the git history and the tests of "+root+". All paths are relative to it."),
		mcpkit.Logger(logger),
		mcpkit.ToolTimeout(30*time.Second), // go_test has a longer one in its tag
		mcpkit.With(&Files{dir: root}, mcpkit.Prefix("files")),
		mcpkit.With(&Git{dir: root}, mcpkit.Prefix("git")),
		mcpkit.With(&Go{dir: root}, mcpkit.Prefix("go")),
	)
	// docs:end server
	if err != nil {
		return nil, err
	}
	srv.Use(middleware.Logging(logger), middleware.RateLimit(10, 20))
	return srv, nil
}
