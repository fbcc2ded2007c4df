package taskstoretest_test

import (
	"testing"

	"github.com/mcpkit/mcpkit-go/internal/leaktest"
	"github.com/mcpkit/mcpkit-go/tasks"
	"github.com/mcpkit/mcpkit-go/tasks/taskstoretest"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

func TestMemoryStore(t *testing.T) {
	taskstoretest.Run(t, func(*testing.T) tasks.Store { return &tasks.MemoryStore{} })
}

// A store is tested like the one in memory.
func ExampleRun() {
	_ = func(t *testing.T) {
		taskstoretest.Run(t, func(t *testing.T) tasks.Store {
			return &tasks.MemoryStore{} // open your store, and close it with t.Cleanup
		})
	}
	// Output:
}

func BenchmarkMemoryStore(b *testing.B) {
	taskstoretest.Benchmark(b, func(*testing.B) tasks.Store { return &tasks.MemoryStore{} })
}
