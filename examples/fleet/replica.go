package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/fleet"
	_ "github.com/mcpkit/mcpkit-go/fleet/redisfleet"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/sse"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// The environment variables of a replica.
const (
	envReplica = "DESK_REPLICA" // its name; without it, the program starts replicas
	envStore   = "DESK_STORE"   // URL of the store
	envKey     = "DESK_KEY"     // 32 bytes in base64, the same for all replicas
	envBooks   = "DESK_BOOKS"   // URL of the books
	envNext    = "DESK_NEXT"    // "yes": it runs the next version of the program
)

// runReplica serves until standard input ends, which it does when the parent does.
func runReplica() {
	if err := serveReplica(); err != nil {
		log.Fatal(err)
	}
}

func serveReplica() error {
	key, err := base64.StdEncoding.DecodeString(os.Getenv(envKey))
	if err != nil {
		return fmt.Errorf("%s: %w", envKey, err)
	}
	engine, err := fleet.Open(context.Background(), os.Getenv(envStore))
	if err != nil {
		return err
	}
	desk := &Desk{replica: os.Getenv(envReplica), books: os.Getenv(envBooks)}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})).With("desk", desk.replica)
	opts := []mcpkit.Option{
		mcpkit.StateKeys(key), mcpkit.Fleet(engine), mcpkit.Logger(logger),
		tasks.New(tasks.Lease(taskLease), tasks.PollInterval(taskInterval)),
	}
	next := os.Getenv(envNext) == "yes"
	if next {
		desk.replica += nextVersion
	}
	srv, err := version(next, desk, opts)
	if err != nil {
		return err
	}
	desk.changed = srv.ResourceUpdated
	if err := srv.Start(context.Background()); err != nil {
		return err
	}
	defer srv.Close()
	mux := http.NewServeMux()
	mux.Handle("/mcp", streamable.NewHandler(srv, &streamable.Options{Logger: logger}))
	mux.Handle("/sse", sse.NewHandler(srv, &sse.Options{Logger: logger}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	web := &http.Server{Handler: mux}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = web.Close()
	}()
	fmt.Println(listener.Addr()) // the parent reads it
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// A task whose replica dies goes on after a few seconds, which is sooner than by default.
const (
	taskLease    = 3 * time.Second
	taskInterval = 200 * time.Millisecond
)

// nextVersion follows the name of a replica in the responses of the next version of the program.
const nextVersion = " (2.0.0)"

// version returns the server of one of two versions of the program. The next one has another tool,
// registers the rest in another order, and its pages of lists are small.
func version(next bool, desk *Desk, opts []mcpkit.Option) (*mcpkit.Server, error) {
	if !next {
		return mcpkit.New(desk, append(opts, mcpkit.PageSize(3))...)
	}
	srv, err := mcpkit.New(nil, append(opts, mcpkit.PageSize(2), mcpkit.Name("desk", "2.0.0"))...)
	if err == nil {
		err = srv.Add(mcpkit.NewTool("hours", Hours))
	}
	if err == nil {
		err = srv.Register(desk)
	}
	return srv, err
}
