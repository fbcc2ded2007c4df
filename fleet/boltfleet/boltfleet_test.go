package boltfleet_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/fleet/boltfleet"
	"github.com/mcpkit/mcpkit-go/fleet/fleettest"
	"github.com/mcpkit/mcpkit-go/internal/leaktest"
)

func TestMain(m *testing.M) {
	if asChild() || asServer() {
		os.Exit(0)
	}
	leaktest.VerifyTestMain(m)
}

func open(t testing.TB, path string, opts *boltfleet.Options) *boltfleet.Engine {
	t.Helper()
	e, err := boltfleet.Open(path, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// newStore returns an empty file.
func newStore(t testing.TB) fleettest.Store {
	e := open(t, filepath.Join(t.TempDir(), "fleet.db"), nil)
	return fleettest.Store{Open: func(t testing.TB) fleet.Engine {
		other, err := e.Open()
		require.NoError(t, err)
		return other
	}}
}

func TestEngine(t *testing.T) { fleettest.Run(t, newStore) }
