package redisfleet_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/fleet/fleettest"
	"github.com/mcpkit/mcpkit-go/fleet/redisfleet"
	"github.com/mcpkit/mcpkit-go/internal/conformance/replicas"
)

// kit returns stores with keys of their own in one server.
func kit(s *server) func(t testing.TB) fleettest.Store {
	return func(testing.TB) fleettest.Store {
		opts := &redisfleet.Options{Prefix: fmt.Sprint("kit", prefixes.Add(1))}
		return fleettest.Store{Open: func(t testing.TB) fleet.Engine {
			client := redis.NewClient(&redis.Options{Network: "unix", Addr: s.socket(), PoolSize: 10, ContextTimeoutEnabled: true})
			t.Cleanup(func() { require.NoError(t, client.Close()) })
			e, err := redisfleet.New(client, opts)
			require.NoError(t, err)
			return e
		}}
	}
}

func TestEngine(t *testing.T) {
	fleettest.Run(t, kit(start(t)))
}

func TestReplicas(t *testing.T) {
	replicas.Run(t, kit(start(t)))
}
