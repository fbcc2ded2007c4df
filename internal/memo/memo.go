// Package memo caches results, for the middleware and for the tag cache.
package memo

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/expiring"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// Results caches results by key for a time. While a call runs, further calls with its key wait for
// its result. Results is safe for concurrent use. Make one with [New].
type Results[K comparable, R any] struct {
	clone    func(R) R
	ttl      time.Duration
	maxBytes int
	kept     *expiring.Map[K, R]

	mu      sync.Mutex
	flights map[K]*flight[R] // guarded by mu
}

// Defaults of [New].
const (
	Entries  = 1000
	MaxBytes = 64 << 10
)

// New returns a cache of up to so many results, each of at most maxBytes. It drops the least
// recently used result first. Zero means [Entries] and [MaxBytes]. The cache keeps and returns
// clones, so callers may change their results.
func New[K comparable, R any](ttl time.Duration, entries, maxBytes int, clone func(R) R) *Results[K, R] {
	if entries <= 0 {
		entries = Entries
	}
	if maxBytes <= 0 {
		maxBytes = MaxBytes
	}
	return &Results[K, R]{
		clone: clone, ttl: ttl, maxBytes: maxBytes,
		kept: expiring.New[K, R](entries), flights: map[K]*flight[R]{},
	}
}

// A flight is a call in progress, for whose result others wait.
type flight[R any] struct {
	done chan struct{}
	// The fields below are set before done is closed.
	result    R
	size      int
	shared    bool // others may have the result
	cancelled bool // by its caller
}

// Do returns the cached result for key, or calls run and caches its result unless it is an error.
// share returns the size of a result, and false if it must not be cached. keySize counts as a part
// of the size.
func (r *Results[K, R]) Do(ctx context.Context, key K, keySize int, run func() (R, error), share func(R) (size int, ok bool)) (R, error) {
	var none R
	for {
		r.mu.Lock()
		if result, ok := r.kept.Get(key, time.Now()); ok {
			r.mu.Unlock()
			return r.clone(result), nil
		}
		f := r.flights[key]
		if f == nil {
			f = &flight[R]{done: make(chan struct{})}
			r.flights[key] = f
			r.mu.Unlock()
			return r.lead(ctx, key, keySize, f, run, share)
		}
		r.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			return none, ctx.Err()
		}
		switch {
		case f.shared:
			return r.clone(f.result), nil
		case !f.cancelled:
			return run() // after an error, each caller runs its own call
		}
		// The caller of the first call has cancelled it: one of the waiting calls runs next.
	}
}

// lead runs the call for which others wait.
func (r *Results[K, R]) lead(ctx context.Context, key K, keySize int, f *flight[R], run func() (R, error), share func(R) (int, bool)) (R, error) {
	defer r.land(key, keySize, f) // even if the method panics
	result, err := run()
	if err == nil {
		if f.size, f.shared = share(result); f.shared {
			f.result = r.clone(result)
		}
	}
	f.cancelled = ctx.Err() != nil
	return result, err
}

// land caches the result of a flight and wakes the calls that wait for it.
func (r *Results[K, R]) land(key K, keySize int, f *flight[R]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.flights, key)
	close(f.done)
	if f.shared && f.size+keySize <= r.maxBytes {
		r.kept.Put(key, f.result, time.Now().Add(r.ttl))
	}
}

// Arguments returns the arguments of a call without white space, as a part of a key.
func Arguments(args json.RawMessage) string {
	if args == nil {
		return "{}"
	}
	compact, err := jsonx.Compact(slices.Clone(args))
	if err != nil {
		return string(args)
	}
	return string(compact)
}

// Scopes returns scopes in a fixed order, as a part of a key.
func Scopes(scopes []string) string {
	return strings.Join(slices.Sorted(slices.Values(scopes)), "\x00")
}
