// Command fleet serves parcels from any number of replicas. Any of them may die: its tasks go on at
// another one, and clients notice nothing but requests that were in flight.
//
// On one machine, with Redis and Caddy in front of two replicas at http://127.0.0.1:8080/mcp:
//
//	go build
//	redis-server &
//	export FLEET_KEY=$(head -c 32 /dev/urandom | base64)
//	./fleet -http 127.0.0.1:8081 &
//	./fleet -http 127.0.0.1:8082 &
//	caddy reverse-proxy --from http://127.0.0.1:8080 --to 127.0.0.1:8081 --to 127.0.0.1:8082
//
// On many machines, give all of them the same key and -engine redis://HOST:6379. A single process
// whose tasks survive its restarts needs no Redis: -engine bolt:///var/lib/parcels/fleet.db.
package main

import (
	"context"
	"encoding/base64"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/fleet"
	_ "github.com/mcpkit/mcpkit-go/fleet/boltfleet"  // bolt://
	_ "github.com/mcpkit/mcpkit-go/fleet/redisfleet" // redis://
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

func main() {
	addr := flag.String("http", "127.0.0.1:8081", "address to serve on")
	engine := flag.String("engine", "redis://127.0.0.1:6379", "URL of what the replicas share")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr, *engine, os.Getenv("FLEET_KEY")); err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx ends, and then lets the calls in flight finish.
func run(ctx context.Context, addr, engineURL, base64Key string) error {
	key, err := base64.StdEncoding.DecodeString(base64Key)
	if err != nil {
		return fmt.Errorf("FLEET_KEY: %w", err)
	}
	engine, err := fleet.Open(ctx, engineURL)
	if err != nil {
		return err
	}
	srv, err := newServer(engine, key, logCarrier{})
	if err != nil {
		return err
	}
	return srv.Serve(ctx, streamable.Listen(addr, nil))
}

// newServer returns one replica. The server closes the engine.
func newServer(engine fleet.Engine, key []byte, carrier Carrier) (*mcpkit.Server, error) {
	parcels := &Parcels{carrier: carrier}
	srv, err := mcpkit.New(parcels, mcpkit.StateKeys(key), mcpkit.Fleet(engine), tasks.New())
	if err != nil {
		return nil, err
	}
	parcels.changed = srv.ResourceUpdated
	return srv, nil
}
