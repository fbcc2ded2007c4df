package taskbolt_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

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

func TestOpenReportsFilesThatLostTheirEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	s, err := taskbolt.Open(path)
	require.NoError(t, err)
	for i := range 50 {
		r := &tasks.Record{ID: fmt.Sprint(i), State: tasks.Ready, Created: time.Now(), Expires: time.Now().Add(time.Hour), Data: make([]byte, 3000)}
		require.NoError(t, s.Create(t.Context(), r, tasks.Limits{}))
	}
	require.NoError(t, s.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, size := range []int{1, 100, 4096, 8192, 9000, 16384, 20000, 65536, 100000} {
		path := filepath.Join(t.TempDir(), "tasks.db")
		require.NoError(t, os.WriteFile(path, whole[:size], 0o600))
		_, err := taskbolt.Open(path)
		require.ErrorContains(t, err, "taskbolt: ", size)
	}
	again, err := taskbolt.Open(path)
	require.NoError(t, err)
	_, err = again.Get(t.Context(), "49")
	require.NoError(t, err)
	require.NoError(t, again.Close())
	half := filepath.Join(t.TempDir(), "tasks.db")
	require.NoError(t, os.WriteFile(half, whole[:len(whole)/2], 0o600))
	_, err = taskbolt.Open(half)
	require.ErrorContains(t, err, fmt.Sprintf("%s is damaged: it has %d bytes of", half, len(whole)/2))
}

func BenchmarkStore(b *testing.B) {
	taskstoretest.Benchmark(b, func(b *testing.B) tasks.Store { return open(b, filepath.Join(b.TempDir(), "tasks.db")) })
}
