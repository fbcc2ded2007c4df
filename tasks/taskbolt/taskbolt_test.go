package taskbolt_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

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

func TestFilesHaveALimitOfBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	const limit = 4 << 20
	s, err := taskbolt.OpenWith(path, &taskbolt.Options{MaxBytes: limit})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	n := 0
	create := func(owner string, state tasks.State) (*tasks.Record, error) {
		n++
		r := record(fmt.Sprintf("%032d", n), owner)
		r.State, r.Data = state, make([]byte, 100<<10)
		return r, s.Create(t.Context(), r, tasks.Limits{})
	}
	var last *tasks.Record
	for {
		r, err := create("ann", tasks.Ready)
		if err != nil {
			var full *tasks.LimitError
			require.ErrorAs(t, err, &full)
			require.Equal(t, tasks.LimitError{Total: true, Bytes: true, Limit: limit}, *full)
			require.EqualError(t, err, "the server has too many tasks; try again later")
			break
		}
		last = r
	}
	require.InDelta(t, 38, n, 3)

	last.State = tasks.Asleep
	require.NoError(t, s.Update(t.Context(), last), "a task may ask")
	last.Data = append(last.Data, make([]byte, 200<<10)...)
	var full *tasks.LimitError
	require.ErrorAs(t, s.Update(t.Context(), last), &full, "its answer is refused")
	last.State = tasks.Ended
	require.NoError(t, s.Update(t.Context(), last), "its outcome is kept")

	_, err = create("eve", tasks.Ready)
	require.ErrorAs(t, err, &full, "the task of ann is not deleted for eve")
	for range 200 { // each makes room for the next
		r, err := create("ann", tasks.Ready)
		require.NoError(t, err)
		r.State = tasks.Ended
		require.NoError(t, s.Update(t.Context(), r))
	}
	_, err = s.Get(t.Context(), last.ID)
	require.ErrorIs(t, err, tasks.ErrNotFound)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(limit+20<<20), "the file grows by 16 MiB at a time")

	deleted, err := s.Sweep(t.Context(), time.Now().Add(2*time.Hour))
	require.NoError(t, err)
	require.Greater(t, deleted, 30)
	_, err = create("eve", tasks.Ready)
	require.NoError(t, err, "space that is free is used again")
}

func TestLimitsOfBytesAreNotNegative(t *testing.T) {
	_, err := taskbolt.OpenWith(filepath.Join(t.TempDir(), "tasks.db"), &taskbolt.Options{MaxBytes: -1})
	require.EqualError(t, err, "taskbolt: MaxBytes is -1; 0 means 4294967296")
}

func record(id, owner string) *tasks.Record {
	now := time.Now().UTC()
	return &tasks.Record{ID: id, Owner: owner, State: tasks.Ready, Created: now, Expires: now.Add(time.Hour), Data: []byte("data")}
}

// damage changes the bytes of a record in the file.
func damage(t *testing.T, path, id string, change func([]byte) []byte) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte("records"))
		return b.Put([]byte(id), change(bytes.Clone(b.Get([]byte(id)))))
	}))
	require.NoError(t, db.Close())
}

func TestDamagedRecordsDoNotBlockOthers(t *testing.T) {
	for name, change := range map[string]func([]byte) []byte{
		"empty":              func([]byte) []byte { return nil },
		"cut":                func(b []byte) []byte { return b[:len(b)/2] },
		"another owner":      func(b []byte) []byte { return bytes.Replace(b, []byte("ann"), []byte("bob"), 1) },
		"a bit of the data":  func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"a size of a header": func(b []byte) []byte { b[4] = 0x7f; return b },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tasks.db")
			first := open(t, path)
			for _, id := range []string{"1-damaged", "2-whole", "3-whole"} { // claimed in this order
				require.NoError(t, first.Create(t.Context(), record(id, "ann"), tasks.Limits{}))
			}
			ended := record("0-damaged", "ann")
			ended.State = tasks.Ended
			require.NoError(t, first.Create(t.Context(), ended, tasks.Limits{}))
			require.NoError(t, first.Close())
			damage(t, path, "1-damaged", change)
			damage(t, path, "0-damaged", change)

			var log strings.Builder
			s, err := taskbolt.OpenWith(path, &taskbolt.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			require.NoError(t, err)
			ids := func() (ids []string) {
				list, err := s.List(t.Context(), "ann", "", 10)
				require.NoError(t, err)
				for _, r := range list {
					ids = append(ids, r.ID)
				}
				return ids
			}
			require.Equal(t, []string{"2-whole", "3-whole"}, ids())
			later := time.Now().Add(time.Minute)
			for _, want := range []string{"2-whole", "3-whole"} {
				r, err := s.Claim(t.Context(), later, later.Add(time.Minute))
				require.NoError(t, err)
				require.Equal(t, want, r.ID)
			}
			for range 3 {
				_, err = s.Claim(t.Context(), later, later.Add(time.Minute))
				require.ErrorIs(t, err, tasks.ErrNotFound)
			}
			_, err = s.Get(t.Context(), "1-damaged")
			require.ErrorContains(t, err, "taskbolt: the record is damaged")
			require.NoError(t, s.Create(t.Context(), record("4-whole", "ann"), tasks.Limits{Kept: 6}))
			var full *tasks.LimitError
			require.ErrorAs(t, s.Create(t.Context(), record("5-whole", "ann"), tasks.Limits{Kept: 5}), &full, "the damaged one that has ended cannot make room")
			deleted, err := s.Sweep(t.Context(), time.Now().Add(2*time.Hour))
			require.NoError(t, err)
			require.Equal(t, 3, deleted)
			require.Empty(t, ids())

			for _, id := range []string{"0-damaged", "1-damaged"} {
				require.Equal(t, 1, strings.Count(log.String(), `msg="taskbolt: a record is damaged; it stays in the file" task=`+id[:8]), log.String())
			}
			require.NoError(t, s.Close())
			db, err := bolt.Open(path, 0o600, nil)
			require.NoError(t, err)
			require.NoError(t, db.View(func(tx *bolt.Tx) error {
				n := 0
				require.NoError(t, tx.Bucket([]byte("records")).ForEach(func(_, _ []byte) error { n++; return nil }))
				require.Equal(t, 2, n, "the operator has the damaged records")
				return nil
			}))
			require.NoError(t, db.Close())
		})
	}
}

func BenchmarkStore(b *testing.B) {
	taskstoretest.Benchmark(b, func(b *testing.B) tasks.Store { return open(b, filepath.Join(b.TempDir(), "tasks.db")) })
}
