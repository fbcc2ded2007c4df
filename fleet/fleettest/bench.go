package fleettest

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
)

// Benchmark measures each operation of an engine with 600 bytes of data, with one caller and with
// 64. A subscription is measured from Publish to deliver.
func Benchmark(b *testing.B, open func(t testing.TB) Store) {
	data := random(600)
	r := fleet.Record{Data: data, Group: "group", TTL: time.Hour}
	keep := fleet.Keep{Entries: 1000, Bytes: 4 << 20, TTL: time.Hour}
	const known = 1000 // records before each benchmark
	fill := func(b *testing.B, e fleet.Engine) {
		for i := range known {
			r := r
			r.Key, r.Due = fmt.Sprint("known", i), fleet.AtOnce
			create(b, e, r)
		}
		for i := range uint64(100) {
			require.NoError(b, e.Append(b.Context(), "known", "log", fleet.Entry{Seq: i + 1, Data: data}, keep))
		}
	}
	// Each operation gets a number of its own.
	for _, op := range []struct {
		name string
		run  func(ctx context.Context, e fleet.Engine, n int64) error
	}{
		{"Get", func(ctx context.Context, e fleet.Engine, n int64) error {
			_, err := e.Get(ctx, "set", fmt.Sprint("known", n%known))
			return err
		}},
		{"CreateDelete", func(ctx context.Context, e fleet.Engine, n int64) error {
			r := r
			r.Key = fmt.Sprint(n)
			if _, err := e.Create(ctx, "set", r); err != nil {
				return err
			}
			return e.Delete(ctx, "set", r.Key, 0)
		}},
		{"GetUpdate", func(ctx context.Context, e fleet.Engine, n int64) error {
			r, err := e.Get(ctx, "set", fmt.Sprint("known", n%known))
			if err != nil {
				return err
			}
			r.Due = fleet.AtOnce
			if _, err = e.Update(ctx, "set", r); is(err, fleet.ErrConflict) {
				return nil
			}
			return err
		}},
		{"Due10of1000", func(ctx context.Context, e fleet.Engine, _ int64) error {
			all, err := e.Due(ctx, "set", 10)
			if err == nil && len(all) != 10 {
				err = fmt.Errorf("%d are due", len(all))
			}
			return err
		}},
		{"List10of1000", func(ctx context.Context, e fleet.Engine, n int64) error {
			_, err := e.List(ctx, "set", "group", fmt.Sprint("known", n%known), 10)
			return err
		}},
		{"Count", func(ctx context.Context, e fleet.Engine, _ int64) error {
			_, err := e.Count(ctx, "set", "group")
			return err
		}},
		{"Append", func(ctx context.Context, e fleet.Engine, n int64) error {
			return e.Append(ctx, "group", fmt.Sprint(n), fleet.Entry{Seq: 1, Data: data}, keep)
		}},
		{"After100", func(ctx context.Context, e fleet.Engine, _ int64) error {
			_, err := e.After(ctx, "known", "log", 0, 100)
			return err
		}},
		{"Publish", func(ctx context.Context, e fleet.Engine, _ int64) error {
			return e.Publish(ctx, "topic", data)
		}},
	} {
		for _, callers := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/%d", op.name, callers), func(b *testing.B) {
				s := store{open(b)}
				e := s.open(b)
				fill(b, e)
				var n atomic.Int64
				if callers == 1 {
					for b.Loop() {
						require.NoError(b, op.run(b.Context(), e, n.Add(1)))
					}
					return
				}
				b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if err := op.run(b.Context(), e, n.Add(1)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
	b.Run("AppendToOneLog/1", func(b *testing.B) {
		s := store{open(b)}
		e := s.open(b)
		for n := uint64(1); b.Loop(); n++ {
			require.NoError(b, e.Append(b.Context(), "group", "log", fleet.Entry{Seq: n, Data: data}, keep))
		}
	})
	b.Run("Subscribe/1", func(b *testing.B) {
		s := store{open(b)}
		e, other := s.open(b), s.open(b)
		got := make(chan struct{}, 1)
		require.NoError(b, other.Subscribe(b.Context(), []string{"topic"}, func(string, []byte) { got <- struct{}{} }, func() {}))
		for b.Loop() {
			require.NoError(b, e.Publish(b.Context(), "topic", data))
			<-got
		}
	})
}
