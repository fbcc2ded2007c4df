package natsfleet_test

import (
	"context"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet/natsfleet"
	"github.com/mcpkit/mcpkit-go/fleet/natsfleet/natsserver"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

type orders struct{}

// Find returns an order.
func (orders) Find() string { return "A1" }

// docs:begin replica

// serve runs one of many replicas until ctx ends.
func serve(ctx context.Context, addr, natsURL string, key []byte) error {
	conn, err := nats.Connect(natsURL, nats.MaxReconnects(-1))
	if err != nil {
		return err
	}
	defer conn.Close()
	srv, err := mcpkit.New(&orders{}, mcpkit.StateKeys(key), mcpkit.Fleet(natsfleet.New(conn, nil)))
	if err != nil {
		return err
	}
	return srv.Serve(ctx, streamable.Listen(addr, nil))
}

// docs:end replica

func TestReplicasOfTheGuide(t *testing.T) {
	server, err := natsserver.Start(t.Context(), natsserver.Options{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	defer server.Close()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	for range 2 {
		go func() { ended <- serve(ctx, "127.0.0.1:0", server.URL(), []byte(strings.Repeat("k", 32))) }()
	}
	stop()
	for range 2 {
		require.NoError(t, <-ended)
	}
}
