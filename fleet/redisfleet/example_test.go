package redisfleet_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/fleet/redisfleet"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

type orders struct{}

// Find returns an order.
func (orders) Find() string { return "A1" }

// docs:begin replica

// serve runs one of many replicas until ctx ends.
func serve(ctx context.Context, addr, redisURL string, key []byte) error {
	engine, err := fleet.Open(ctx, redisURL) // import _ "github.com/mcpkit/mcpkit-go/fleet/redisfleet"
	if err != nil {
		return err
	}
	srv, err := mcpkit.New(&orders{}, mcpkit.StateKeys(key), mcpkit.Fleet(engine))
	if err != nil {
		return err
	}
	return srv.Serve(ctx, streamable.Listen(addr, nil))
}

// docs:end replica

func TestReplicasOfTheGuide(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, free.Close())
	_, port, _ := net.SplitHostPort(free.Addr().String())
	start(t, "--port", port)
	url := "redis://127.0.0.1:" + port
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	for range 2 {
		go func() { ended <- serve(ctx, "127.0.0.1:0", url, []byte(strings.Repeat("k", 32))) }()
	}
	stop()
	for range 2 {
		require.NoError(t, <-ended)
	}
}

// An application has a client already, and closes it after the engine.
func ExampleNew() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
	defer client.Close()
	engine, err := redisfleet.New(client, &redisfleet.Options{Prefix: "trips"})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close() // give it to mcpkit.Fleet
}

// A program that knows the URL only. The import of redisfleet makes it known.
func ExampleOpen() {
	engine, err := fleet.Open(context.Background(), "redis://localhost:6379/0?prefix=trips")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(engine.Close())
	// Output: <nil>
}
