package natsfleet_test

import (
	"crypto/rand"
	"os"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/fleet/fleettest"
	"github.com/mcpkit/mcpkit-go/fleet/natsfleet"
	"github.com/mcpkit/mcpkit-go/fleet/natsfleet/natsserver"
	"github.com/mcpkit/mcpkit-go/internal/leaktest"
)

func TestMain(m *testing.M) {
	if asChild() {
		os.Exit(0)
	}
	leaktest.VerifyTestMain(m)
}

func newServer(t testing.TB, opts natsserver.Options) *natsserver.Server {
	t.Helper()
	s, err := natsserver.Start(t.Context(), opts)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func connect(t testing.TB, s *natsserver.Server, opts ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := s.Connect(opts...)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

func newEngine(t testing.TB, nc *nats.Conn, opts natsfleet.Options) *natsfleet.Engine {
	t.Helper()
	e := natsfleet.New(nc, &opts)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// storeOn returns an empty store on a server.
func storeOn(s *natsserver.Server, opts natsfleet.Options) func(testing.TB) fleettest.Store {
	return func(testing.TB) fleettest.Store {
		opts := opts
		opts.Prefix = rand.Text()
		return fleettest.Store{Open: func(t testing.TB) fleet.Engine { return natsfleet.New(connect(t, s), &opts) }}
	}
}

func TestEngine(t *testing.T) {
	s := newServer(t, natsserver.Options{Dir: t.TempDir()})
	fleettest.Run(t, storeOn(s, natsfleet.Options{}))
}

func TestEngineInMemory(t *testing.T) {
	s := newServer(t, natsserver.Options{})
	fleettest.Run(t, storeOn(s, natsfleet.Options{Memory: true}))
}
