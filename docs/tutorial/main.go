// Command notes keeps short notes. It serves on standard input and output, or over HTTP.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

func main() {
	addr := flag.String("http", "", "address to serve HTTP on, instead of stdio")
	user := flag.String("token", "", "user to print a token for, instead of serving")
	flag.Parse()
	if err := run(*addr, *user); err != nil {
		log.Fatal(err)
	}
}

func run(addr, user string) error {
	if addr == "" && user == "" {
		return mcpkit.Serve(NewNotes())
	}
	secret := os.Getenv("NOTES_SECRET")
	if len(secret) < 32 {
		return errors.New("set NOTES_SECRET to at least 32 characters that nobody can guess")
	}
	if user != "" {
		token, err := newToken(user, []byte(secret))
		if err != nil {
			return err
		}
		fmt.Println(token)
		return nil
	}
	srv, err := mcpkit.New(NewNotes())
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return serveHTTP(ctx, srv, addr, []byte(secret))
}
