package middleware_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
)

// A watched engine can be made to fail. It notes the keys of rates.
type watched struct {
	*fleet.Memory
	away atomic.Bool

	mu   sync.Mutex
	keys map[string]struct{} // guarded by mu
}

func (f *watched) Get(ctx context.Context, set, key string) (fleet.Record, error) {
	if f.away.Load() {
		return fleet.Record{}, errors.New("connection refused")
	}
	if set == "rates" {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.keys[key] = struct{}{}
	}
	return f.Memory.Get(ctx, set, key)
}

// limitedReplicas starts replicas with the middleware that use returns.
func limitedReplicas(t *testing.T, n int, use func() mcpkit.Middleware) (clients []*peer, engine *fleet.Memory, flakies []*watched) {
	t.Helper()
	engine = fleet.NewMemory(fleet.MemoryOptions{})
	t.Cleanup(func() { _ = engine.Close() })
	for range n {
		f := &watched{Memory: engine.Open(), keys: map[string]struct{}{}}
		srv, err := mcpkit.New(nil, quiet, mcpkit.Name("limited", "1"), mcpkit.StateKeys([]byte(strings.Repeat("k", 32))), mcpkit.Fleet(f))
		require.NoError(t, err)
		require.NoError(t, srv.Add(mcpkit.NewTool("x", ok), mcpkit.NewTool("y", ok)))
		srv.Use(use())
		require.NoError(t, srv.Start(t.Context()))
		t.Cleanup(func() { _ = srv.Close() })
		clients, flakies = append(clients, modern(t, srv)), append(flakies, f)
	}
	return clients, engine, flakies
}

func rateOfFour() mcpkit.Middleware { return middleware.RateLimit(1, 4) }

func TestRateLimitCountsForAllReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, engine, flakies := limitedReplicas(t, 3, rateOfFour)
		ann, bob := as(t.Context(), "ann"), as(t.Context(), "bob")
		for i := range 4 {
			require.Equal(t, "ok", all[i%3].toolText(ann, "x"))
		}
		for _, p := range all {
			require.Equal(t, "too many calls; try again in 1s", p.toolText(ann, "x"))
		}
		require.Equal(t, "ok", all[0].toolText(bob, "x"), "others have limits of their own")
		time.Sleep(2 * time.Second)
		require.Equal(t, "ok", all[0].toolText(ann, "x"))
		require.Equal(t, "ok", all[1].toolText(ann, "x"))
		require.Equal(t, "too many calls; try again in 1s", all[2].toolText(ann, "x"))

		keys := map[string]struct{}{}
		for _, f := range flakies {
			for key := range f.keys {
				require.NotContains(t, key, "ann")
				keys[key] = struct{}{}
			}
		}
		require.Len(t, keys, 2, "one for each caller, at all replicas alike")
		time.Sleep(2 * time.Minute)
		n, err := engine.Count(t.Context(), "rates", "")
		require.NoError(t, err)
		require.Zero(t, n, "full buckets are forgotten")
	})
}

func TestRateLimitWithoutTheEngineCountsByReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, _, flakies := limitedReplicas(t, 2, rateOfFour)
		for _, f := range flakies {
			f.away.Store(true)
		}
		for _, p := range all {
			for range 4 {
				require.Equal(t, "ok", p.toolText(t.Context(), "x"))
			}
			require.Equal(t, "too many calls; try again in 1s", p.toolText(t.Context(), "x"))
		}
		for _, f := range flakies {
			f.away.Store(false)
		}
		time.Sleep(time.Minute)
		for i := range 4 {
			require.Equal(t, "ok", all[i%2].toolText(t.Context(), "x"))
		}
		require.Contains(t, all[0].toolText(t.Context(), "x"), "too many calls", "they count together again")
	})
}

func TestRateLimitOfManyCallsAtOnceIsExact(t *testing.T) {
	all, _, _ := limitedReplicas(t, 3, func() mcpkit.Middleware { return middleware.RateLimit(1.0/3600, 50) })
	var went, refused atomic.Int64
	var calls sync.WaitGroup
	for i := range 150 {
		calls.Go(func() {
			if all[i%3].toolText(t.Context(), "x") == "ok" {
				went.Add(1)
			} else {
				refused.Add(1)
			}
		})
	}
	calls.Wait()
	require.EqualValues(t, 50, went.Load())
	require.EqualValues(t, 100, refused.Load())
}

func TestRateLimitsOfDifferentLinesDoNotCountTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, _, _ := limitedReplicas(t, 2, func() mcpkit.Middleware {
			x := middleware.RateLimit(1, 1)
			y := middleware.RateLimit(1, 1)
			return func(next mcpkit.Handler) mcpkit.Handler {
				forX, forY := x(next), y(next)
				return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
					if call.Name() == "x" {
						return forX(ctx, call)
					}
					return forY(ctx, call)
				}
			}
		})
		require.Equal(t, "ok", all[0].toolText(t.Context(), "x"))
		require.Equal(t, "ok", all[1].toolText(t.Context(), "y"))
		require.Contains(t, all[1].toolText(t.Context(), "x"), "too many calls")
		require.Contains(t, all[0].toolText(t.Context(), "y"), "too many calls")
	})
}

func TestARateThatNeverRefillsHoldsForTheFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, _, _ := limitedReplicas(t, 2, func() mcpkit.Middleware { return middleware.RateLimit(0, 2) })
		require.Equal(t, "ok", all[0].toolText(t.Context(), "x"))
		require.Equal(t, "ok", all[1].toolText(t.Context(), "x"))
		require.Equal(t, "too many calls", all[0].toolText(t.Context(), "x"))
		time.Sleep(24 * time.Hour)
		require.Equal(t, "too many calls", all[1].toolText(t.Context(), "x"))
	})
}
