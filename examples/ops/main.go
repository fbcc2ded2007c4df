// Command ops is a production server: in an echo app with bearer tokens, with limits, an audit
// file, telemetry, health checks and a graceful shutdown.
//
//	OPS_KEY=... ops -http 127.0.0.1:8080 -audit audit.jsonl
package main

import (
	"context"
	"flag"
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
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	rotated := make(chan os.Signal, 1)
	signal.Notify(rotated, syscall.SIGHUP)
	a, err := newApp(config{
		key: []byte(os.Getenv("OPS_KEY")), audit: *audit, rotated: rotated, logger: logger,
		spans: collector{logger}, figures: meter{logger}, drain: 5 * time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	if err := a.serve(ctx, ln); err != nil {
		log.Fatal(err)
	}
}
