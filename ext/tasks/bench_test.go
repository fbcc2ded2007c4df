package tasks_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A brewer has the tool of the benchmarks.
type brewer struct {
	_ struct {
		Brew mcpkit.Tool `task:"optional"`
	}
}

type tea struct {
	Kind string `json:"kind"`
}

func (brewer) Brew(in tea) string { return "a cup of " + in.Kind }

func dialBrewer(b *testing.B, store tasks.Store, opts ...client.DialOption) *client.Client {
	srv := mcpkit.MustNew(&brewer{}, tasks.New(tasks.StoreIn(store)), quiet())
	c, err := client.Dial(b.Context(), srv, append(opts, client.Version(protocol.V20260728))...)
	require.NoError(b, err)
	b.Cleanup(func() {
		_ = c.Close()
		_ = srv.Close()
	})
	return c
}

// BenchmarkCall compares a plain call with one that becomes a task and is polled once, when it has
// ended.
func BenchmarkCall(b *testing.B) {
	b.Run("plain", func(b *testing.B) {
		c := dialBrewer(b, &tasks.MemoryStore{})
		b.ReportAllocs()
		for b.Loop() {
			_, err := client.Call[string](b.Context(), c, "brew", tea{"green"})
			require.NoError(b, err)
		}
	})
	b.Run("task", func(b *testing.B) {
		store, ended := &tasks.MemoryStore{}, make(chan struct{}, 1)
		c := dialBrewer(b, store, client.Tasks())
		go func() { // ends with the benchmark
			store.Watch(b.Context(), func(id string) {
				if r, err := store.Get(b.Context(), id); err == nil && r.State == tasks.Ended {
					ended <- struct{}{}
				}
			})
		}()
		b.ReportAllocs()
		for b.Loop() {
			task, err := client.Start(b.Context(), c, "brew", tea{"green"})
			require.NoError(b, err)
			<-ended
			d, err := task.Get(b.Context())
			require.NoError(b, err)
			require.Equal(b, protocol.TaskCompleted, d.Status)
		}
	})
}

// BenchmarkOpenTasks measures the memory of 10,000 tasks that wait for a user, and a sweep that
// finds none of them expired.
func BenchmarkOpenTasks(b *testing.B) {
	const open = 10_000
	for b.Loop() {
		store := &tasks.MemoryStore{}
		srv := mcpkit.MustNew(&office{}, tasks.New(tasks.StoreIn(store), tasks.MaxOpen(open), tasks.MaxKept(open)), quiet())
		require.NoError(b, srv.Start(b.Context()))
		before := heap()
		c, err := client.Dial(b.Context(), srv, client.Tasks(), client.Version(protocol.V20260728), client.Handlers(agreeable{}))
		require.NoError(b, err)
		for range open {
			task, err := client.Start(b.Context(), c, "trip", nil)
			require.NoError(b, err)
			require.NotEmpty(b, task.ID())
		}
		for asleep := 0; asleep < open; { // until all ask
			asleep = 0
			list, err := store.List(b.Context(), "", "", open)
			require.NoError(b, err)
			for _, r := range list {
				if r.State == tasks.Asleep {
					asleep++
				}
			}
			runtime.Gosched()
		}
		b.ReportMetric(float64(heap()-before)/open, "B/task")
		begin := time.Now()
		n, err := store.Sweep(b.Context(), time.Now())
		require.NoError(b, err)
		require.Zero(b, n)
		b.ReportMetric(float64(time.Since(begin).Microseconds()), "µs/sweep")
		_ = c.Close()
		_ = srv.Close()
	}
}
