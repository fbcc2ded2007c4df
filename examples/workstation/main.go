// Command workstation gives a model the tools of a Go developer: the files below one directory, its
// git history, and the go tool. One server has three services.
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
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	root := flag.String("root", ".", "directory to serve")
	addr := flag.String("http", "", "loopback address to serve HTTP on, instead of stdio")
	flag.Parse()

	// Standard output belongs to the protocol.
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := run(*root, *addr, logger); err != nil {
		fmt.Fprintln(os.Stderr, "workstation:", err)
		os.Exit(1)
	}
}

func run(root, addr string, logger *slog.Logger) error {
	srv, err := newServer(root, logger)
	if err != nil {
		return err
	}
	if addr == "" {
		return srv.Serve(context.Background())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return serveHTTP(ctx, srv, addr, logger)
}
