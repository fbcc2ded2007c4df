// Command notes is a server for short notes, with tools, a resource, a prompt and completion.
//
//	notes             serves standard input and output
//	notes -http ADDR  serves HTTP at http://ADDR/mcp
package main

import (
	"context"
	"flag"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

func main() {
	addr := flag.String("http", "", "address to serve HTTP on, instead of stdio")
	flag.Parse()

	srv, err := newServer(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		log.Fatal(err)
	}
	var over transport.Transport = stdio.New(nil)
	if *addr != "" {
		over = streamable.Listen(*addr, nil)
	}
	if err := srv.Serve(context.Background(), over); err != nil {
		log.Fatal(err)
	}
}

//go:generate go run ../../cmd/mcpkit gen

func newServer(logger *slog.Logger) (*mcpkit.Server, error) {
	srv, err := mcpkit.New(NewNotes(), mcpkit.Logger(logger))
	if err != nil {
		return nil, err
	}
	srv.Use(middleware.Logging(logger), middleware.Timeout(30*time.Second), middleware.RateLimit(10, 20))
	return srv, nil
}
