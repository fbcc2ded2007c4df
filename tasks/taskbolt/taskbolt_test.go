package taskbolt_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/tasks"
	"github.com/mcpkit/mcpkit-go/tasks/taskbolt"
	"github.com/mcpkit/mcpkit-go/tasks/taskstoretest"
)

func open(t testing.TB, path string) *taskbolt.Store {
	s, err := taskbolt.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestStore(t *testing.T) {
	taskstoretest.Run(t, func(t *testing.T) tasks.Store { return open(t, filepath.Join(t.TempDir(), "tasks.db")) })
}

func TestOpenReportsFilesThatAreNotStores(t *testing.T) {
	_, err := taskbolt.Open(t.TempDir())
	require.ErrorContains(t, err, "taskbolt: ")
}

func BenchmarkStore(b *testing.B) {
	taskstoretest.Benchmark(b, func(b *testing.B) tasks.Store { return open(b, filepath.Join(b.TempDir(), "tasks.db")) })
}
