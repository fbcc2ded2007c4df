package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
)

// BenchmarkEngine measures each operation of each engine with 600 bytes of data, with one caller and
// with 64. A subscription is measured from Publish to deliver.
func BenchmarkEngine(b *testing.B) {
	data := make([]byte, 600)
	_, _ = rand.Read(data)
	keep := fleet.Keep{Entries: 1000, Bytes: 4 << 20, TTL: time.Hour}
	record := func(key string) fleet.Record {
		return fleet.Record{Key: key, Data: data, Group: "group", TTL: time.Hour, Due: fleet.AtOnce}
	}
	const known = 1000 // records before each benchmark
	// Each operation gets a number of its own. The name is that of a set, and of a group of logs.
	operations := []struct {
		name string
		run  func(ctx context.Context, e fleet.Engine, name string, n int64) error
	}{
		{"Get", func(ctx context.Context, e fleet.Engine, name string, n int64) error {
			_, err := e.Get(ctx, name, fmt.Sprint("known", n%known))
			return err
		}},
		{"CreateDelete", func(ctx context.Context, e fleet.Engine, name string, n int64) error {
			if _, err := e.Create(ctx, name, record(fmt.Sprint(n))); err != nil {
				return err
			}
			return e.Delete(ctx, name, fmt.Sprint(n), 0)
		}},
		{"GetUpdate", func(ctx context.Context, e fleet.Engine, name string, n int64) error {
			r, err := e.Get(ctx, name, fmt.Sprint("known", n%known))
			if err != nil {
				return err
			}
			r.Due = fleet.AtOnce
			if _, err = e.Update(ctx, name, r); errors.Is(err, fleet.ErrConflict) {
				return nil
			}
			return err
		}},
		{"Due10of1000", func(ctx context.Context, e fleet.Engine, name string, _ int64) error {
			all, err := e.Due(ctx, name, 0, 10)
			if err == nil && len(all) != 10 {
				err = fmt.Errorf("%d are due", len(all))
			}
			return err
		}},
		{"List10of1000", func(ctx context.Context, e fleet.Engine, name string, n int64) error {
			_, err := e.List(ctx, name, "group", fmt.Sprint("known", n%known), 10)
			return err
		}},
		{"Count", func(ctx context.Context, e fleet.Engine, name string, _ int64) error {
			_, err := e.Count(ctx, name, "group")
			return err
		}},
		{"Append", func(ctx context.Context, e fleet.Engine, name string, n int64) error {
			return e.Append(ctx, name, fmt.Sprint(n), fleet.Entry{Seq: 1, Data: data}, keep)
		}},
		{"AppendToOneLog", func(ctx context.Context, e fleet.Engine, name string, n int64) error {
			err := e.Append(ctx, name, "log", fleet.Entry{Seq: uint64(n) + 100, Data: data}, keep)
			if errors.Is(err, fleet.ErrConflict) { // another caller was faster
				return nil
			}
			return err
		}},
		{"After100", func(ctx context.Context, e fleet.Engine, name string, _ int64) error {
			_, err := e.After(ctx, name, "log", 0, 100)
			return err
		}},
		{"Publish", func(ctx context.Context, e fleet.Engine, _ string, _ int64) error {
			return e.Publish(ctx, "topic", data)
		}},
	}
	all := stores(b)
	stored := 0
	for _, store := range order {
		if store == "none" || all[store] == nil {
			continue
		}
		for _, op := range operations {
			for _, callers := range []int{1, 64} {
				b.Run(fmt.Sprintf("%s/%s/%d", store, op.name, callers), func(b *testing.B) {
					e := all[store]()
					defer e.Close()
					stored++
					name := fmt.Sprint("set", stored)
					for i := range known {
						_, err := e.Create(b.Context(), name, record(fmt.Sprint("known", i)))
						require.NoError(b, err)
					}
					for seq := uint64(1); seq <= 100; seq++ {
						require.NoError(b, e.Append(b.Context(), name, "log", fleet.Entry{Seq: seq, Data: data}, keep))
					}
					var n atomic.Int64
					if callers == 1 {
						for b.Loop() {
							require.NoError(b, op.run(b.Context(), e, name, n.Add(1)))
						}
						return
					}
					b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
					b.ResetTimer()
					b.RunParallel(func(pb *testing.PB) {
						for pb.Next() {
							if err := op.run(b.Context(), e, name, n.Add(1)); err != nil {
								b.Error(err)
								return
							}
						}
					})
				})
			}
		}
		b.Run(store+"/Subscribe/1", func(b *testing.B) {
			e := all[store]()
			defer e.Close()
			got := make(chan struct{}, 1)
			require.NoError(b, e.Subscribe(b.Context(), []string{"topic"}, func(string, []byte) { got <- struct{}{} }, func() {}))
			for b.Loop() {
				require.NoError(b, e.Publish(b.Context(), "topic", data))
				<-got
			}
		})
	}
}
