// Command ops is a production server: in an echo app with bearer tokens, with limits, an audit
// log, telemetry, health checks and a graceful shutdown.
//
//	OPS_KEY=... ops -http 127.0.0.1:8080 -audit audit.jsonl
//
// It also makes the tokens that callers need:
//
//	OPS_KEY=... ops -token bob -scope orders:refund
package main

//go:generate go run ../../cmd/mcpkit gen

import (
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	addr := flag.String("http", "127.0.0.1:8080", "address to serve on")
	audit := flag.String("audit", "audit.jsonl", "file to append the audit log to")
	subject := flag.String("token", "", "print a token for this caller, valid for 1 hour, and exit")
	scope := flag.String("scope", "", "scopes of the token, separated by spaces")
	flag.Parse()
	key := []byte(os.Getenv("OPS_KEY"))
	if len(key) < 32 {
		log.Fatal("the key must have at least 32 random bytes; set OPS_KEY")
	}
	if *subject != "" {
		token, err := newToken(key, *subject, *scope)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(token)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	file, err := os.OpenFile(*audit, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	a, err := newApp(key, slog.New(slog.NewJSONHandler(os.Stderr, nil)), slog.NewJSONHandler(file, nil))
	if err != nil {
		log.Fatal(err)
	}
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	if err := a.serve(ctx, ln, 5*time.Second); err != nil {
		log.Fatal(err)
	}
}
