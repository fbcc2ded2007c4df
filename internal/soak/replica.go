package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/ext/events"
	"github.com/mcpkit/mcpkit-go/ext/tasks"
	fleets "github.com/mcpkit/mcpkit-go/fleet"
	_ "github.com/mcpkit/mcpkit-go/fleet/redisfleet"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// The environment variables of a replica.
const (
	envName   = "SOAK_REPLICA" // without it, the program is the one that starts replicas
	envStore  = "SOAK_STORE"   // URL of Redis
	envKey    = "SOAK_KEY"     // 32 bytes in base64
	envLedger = "SOAK_LEDGER"  // URL of the ledger
	envLogins = "SOAK_LOGINS"  // URLs of a broker and its provider, which the replica serves instead of a desk
)

const boardURI = "board://today"

// serveReplica serves until standard input ends, which it does when the parent does.
func serveReplica() error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	// Ends with the process.
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	key, err := base64.StdEncoding.DecodeString(os.Getenv(envKey))
	if err != nil {
		return err
	}
	engine, err := fleets.Open(ctx, os.Getenv(envStore))
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})).
		With("replica", os.Getenv(envName))
	if urls := os.Getenv(envLogins); urls != "" {
		return serveLogins(ctx, urls, engine, key, logger)
	}
	desk := &Desk{ledger: os.Getenv(envLedger)}
	srv, err := mcpkit.New(desk, mcpkit.StateKeys(key), mcpkit.Fleet(engine), mcpkit.Logger(logger), mcpkit.PageSize(2),
		tasks.New(tasks.PollInterval(200*time.Millisecond)), events.New(rang))
	if err != nil {
		return err
	}
	desk.changed = srv.ResourceUpdated
	return srv.Serve(ctx, named{streamable.Listen("127.0.0.1:0", &streamable.Options{
		Logger:   logger,
		OnListen: func(a net.Addr) { fmt.Println(a) }, // the parent reads it
	}), srv})
}

// A named transport authenticates one client, as the proxy of a company would.
type named struct {
	transport.Transport
	srv *mcpkit.Server
}

// Serve serves srv.
func (n named) Serve(ctx context.Context, _ transport.Handler) error {
	return n.Transport.Serve(ctx, authenticated{n.srv})
}

type authenticated struct{ *mcpkit.Server }

// ServeRPC answers with a principal for the subscriber.
func (a authenticated) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	if h := peer.Header(); h != nil && h.Get(headerClient) == subscriber {
		ctx = oauth.NewContext(ctx, &oauth.Principal{Subject: subscriber})
	}
	return a.Server.ServeRPC(ctx, req, peer)
}

// rang tells of a bell.
var rang = events.NewType[Ring, struct{}]("bell_rang", "Somebody rang the bell.", nil)

// Desk takes orders. It keeps nothing in memory.
type Desk struct {
	_ mcpkit.Info `name:"desk" version:"1.0.0"`
	_ struct {
		Count   mcpkit.Tool     `hints:"readonly"`
		Colour  mcpkit.Tool     `hints:"readonly"`
		Order   mcpkit.Tool     `hints:"additive" params:"id"`
		Pin     mcpkit.Tool     `hints:"idempotent" params:"id"`
		Deliver mcpkit.Tool     `hints:"additive" params:"id" task:"optional,durable"`
		Ring    mcpkit.Tool     `hints:"idempotent"`
		Board   mcpkit.Resource `uri:"board://today"`
	}

	ledger  string
	changed func(uri string) bool
}

// Count counts to five and reports its progress.
func (d *Desk) Count(ctx context.Context, call *mcpkit.Call) (string, error) {
	for i := range 5 {
		call.Progress(float64(i+1), 5, "counting")
		if err := sleep(ctx, 40*time.Millisecond); err != nil {
			return "", err
		}
	}
	return "counted", nil
}

// A Choice is the answer to the question for a colour.
type Choice struct {
	Name string `json:"name"`
}

// Colour asks the user for a colour.
func (d *Desk) Colour(ctx context.Context) (string, error) {
	c, err := mcpkit.Elicit[Choice](ctx, "Which colour?")
	return c.Name, err
}

// Order writes an order after the user has agreed. Clients that cannot ask agree by calling.
func (d *Desk) Order(ctx context.Context, id string) (string, error) {
	ok, err := mcpkit.Confirm(ctx, "Order "+id+"?")
	if errors.Is(err, mcpkit.ErrUnsupported) {
		ok, err = true, nil
	}
	if err != nil || !ok {
		return "nothing was ordered", err
	}
	return "ordered " + id, d.write(ctx, "order "+id, "")
}

// Pin pins a note to the board.
func (d *Desk) Pin(ctx context.Context, id string) (string, error) {
	if err := d.write(ctx, "note "+id, ""); err != nil {
		return "", err
	}
	d.changed(boardURI)
	return "pinned " + id, nil
}

// Deliver packs a parcel, and sends it when the user agrees.
func (d *Desk) Deliver(ctx context.Context, id string) (string, error) {
	if err := d.write(ctx, "run "+id, ""); err != nil {
		return "", err
	}
	if err := d.once(ctx, "packed", id); err != nil {
		return "", err
	}
	if ok, err := mcpkit.Confirm(ctx, "Deliver "+id+"?"); err != nil || !ok {
		return "nothing was delivered", err
	}
	return "delivered " + id, d.once(ctx, "sent", id)
}

// Ring rings the bell.
func (d *Desk) Ring(ctx context.Context, r Ring) (string, error) { return "rung", rang.Emit(ctx, r) }

// Board returns the board.
func (d *Desk) Board() string { return "the board" }

// once writes a line in one run of a task.
func (d *Desk) once(ctx context.Context, kind, id string) error {
	_, err := mcpkit.Once(ctx, kind, func() (bool, error) {
		return true, d.write(ctx, kind+" "+id, mcpkit.OnceKey(ctx, kind))
	})
	return err
}

// write writes a line into the ledger, which ignores it if it has seen the key.
func (d *Desk) write(ctx context.Context, line, key string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.ledger, strings.NewReader(line))
	if err != nil {
		return err
	}
	req.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
