// Command notes keeps short notes. It serves on standard input and output, or over HTTP.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

func main() {
	addr := flag.String("http", "", "address to serve HTTP on, instead of stdio")
	flag.Parse()
	if err := run(*addr); err != nil {
		log.Fatal(err)
	}
}

func run(addr string) error {
	if addr == "" {
		return mcpkit.Serve(NewNotes())
	}
	secret := os.Getenv("NOTES_SECRET")
	if len(secret) < 32 {
		return errors.New("set NOTES_SECRET to at least 32 characters that nobody can guess")
	}
	srv, err := mcpkit.New(NewNotes())
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return serveHTTP(ctx, srv, addr, []byte(secret))
}
