package streamable_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/fleet/fleettest"
	"github.com/mcpkit/mcpkit-go/internal/conformance/replicas"
)

func TestReplicas(t *testing.T) {
	replicas.Run(t, func(t testing.TB) fleettest.Store {
		m := fleet.NewMemory(fleet.MemoryOptions{})
		t.Cleanup(func() { require.NoError(t, m.Close()) })
		return fleettest.Store{Open: func(testing.TB) fleet.Engine { return m.Open() }}
	})
}
