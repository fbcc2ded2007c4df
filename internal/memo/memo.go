// Package memo keeps results for a while: what the middleware and the tags of methods share.
package memo

import (
	"container/list"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// Results keeps results under keys, each for TTL, and knows which are being made: calls of one key that come meanwhile wait
// for the first. It is safe for concurrent use. Make one with [New].
type Results[K comparable, R any] struct {
	clone    func(R) R
	ttl      time.Duration
	entries  int
	maxBytes int

	mu      sync.Mutex
	recent  *list.List // of *entry[K, R], the latest used in front
	byKey   map[K]*list.Element
	flights map[K]*flight[R]
}

// What is kept by default.
const (
	Entries  = 1000
	MaxBytes = 64 << 10
)

// New keeps up to so many results, none of more than maxBytes of content; the one that was not used for longest goes first.
// Zero means [Entries] and [MaxBytes].
//
// What is kept and what callers are given are clones, so that a caller may change its own.
func New[K comparable, R any](ttl time.Duration, entries, maxBytes int, clone func(R) R) *Results[K, R] {
	if entries <= 0 {
		entries = Entries
	}
	if maxBytes <= 0 {
		maxBytes = MaxBytes
	}
	return &Results[K, R]{
		clone: clone, ttl: ttl, entries: entries, maxBytes: maxBytes,
		recent: list.New(), byKey: map[K]*list.Element{}, flights: map[K]*flight[R]{},
	}
}

type entry[K comparable, R any] struct {
	key     K
	result  R
	expires time.Time
}

// A flight is a call whose result others wait for.
type flight[R any] struct {
	done chan struct{}
	// What follows is set before done is closed.
	result R
	size   int
	shared bool // there is a result for others
	given  bool // the call was given up by its caller
}

// Do returns the result that is kept under key, or what run returns. That is kept in its turn unless it is an error: share says how
// many bytes it has, and false where it is for this caller alone. keySize counts as bytes of the result.
func (r *Results[K, R]) Do(ctx context.Context, key K, keySize int, run func() (R, error), share func(R) (size int, ok bool)) (R, error) {
	var none R
	for {
		r.mu.Lock()
		if result, ok := r.lookup(key, time.Now()); ok {
			r.mu.Unlock()
			return result, nil
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
		case !f.given:
			return run() // what failed once is tried by each for itself
		}
		// The first one's caller has gone: one of those who wait goes first now.
	}
}

// lead makes the call for which others wait.
func (r *Results[K, R]) lead(ctx context.Context, key K, keySize int, f *flight[R], run func() (R, error), share func(R) (int, bool)) (R, error) {
	defer r.land(key, keySize, f) // also when the method panics
	result, err := run()
	if err == nil {
		if f.size, f.shared = share(result); f.shared {
			f.result = r.clone(result)
		}
	}
	f.given = ctx.Err() != nil
	return result, err
}

// land keeps what a flight brought, and lets go who waits.
func (r *Results[K, R]) land(key K, keySize int, f *flight[R]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.flights, key)
	close(f.done)
	if !f.shared || f.size+keySize > r.maxBytes {
		return
	}
	r.byKey[key] = r.recent.PushFront(&entry[K, R]{key, f.result, time.Now().Add(r.ttl)})
	if r.recent.Len() > r.entries {
		r.remove(r.recent.Back())
	}
}

// lookup finds a result that is fresh. r.mu is held.
func (r *Results[K, R]) lookup(key K, now time.Time) (result R, ok bool) {
	at, ok := r.byKey[key]
	if !ok {
		return result, false
	}
	e := at.Value.(*entry[K, R])
	if !now.Before(e.expires) {
		r.remove(at)
		return result, false
	}
	r.recent.MoveToFront(at)
	return r.clone(e.result), true
}

func (r *Results[K, R]) remove(at *list.Element) {
	delete(r.byKey, at.Value.(*entry[K, R]).key)
	r.recent.Remove(at)
}

// Arguments are the arguments of a call without white space, as a part of a key.
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

// Scopes are what a caller may do, in any order, as a part of a key.
func Scopes(scopes []string) string {
	return strings.Join(slices.Sorted(slices.Values(scopes)), "\x00")
}
