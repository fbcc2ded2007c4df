package fleettest_test

import (
	"flag"
	"testing"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/fleet/fleettest"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
)

func TestMain(m *testing.M) {
	// The tests mostly wait.
	flag.Parse()
	_ = flag.Set("test.parallel", "16")
	testkit.VerifyTestMain(m)
}

// Without a clock that moves, the tests wait for what expires.
func TestMemoryInRealTime(t *testing.T) {
	fleettest.Run(t, func(testing.TB) fleettest.Store {
		m := fleet.NewMemory(fleet.MemoryOptions{})
		return fleettest.Store{Open: func(testing.TB) fleet.Engine { return m.Open() }}
	})
}

// An engine is tested like the one in memory.
func ExampleRun() {
	_ = func(t *testing.T) {
		fleettest.Run(t, func(t testing.TB) fleettest.Store {
			m := fleet.NewMemory(fleet.MemoryOptions{}) // make an empty database, and remove it with t.Cleanup
			return fleettest.Store{Open: func(t testing.TB) fleet.Engine {
				return m.Open() // connect to that database
			}}
		})
	}
	// Output:
}
