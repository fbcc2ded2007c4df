// Package memo keeps the results of tools for a while: what the middleware and the tags of methods share.
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
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Results keeps results under keys, each for TTL, and knows which are being made: calls of one key that come meanwhile wait
// for the first. It is safe for concurrent use. Make one with [New].
type Results[K comparable] struct {
	ttl      time.Duration
	entries  int
	maxBytes int

	mu      sync.Mutex
	recent  *list.List // of *entry[K], the latest used in front
	byKey   map[K]*list.Element
	flights map[K]*flight
}

// What is kept by default.
const (
	Entries  = 1000
	MaxBytes = 64 << 10
)

// New keeps up to so many results, none of more than maxBytes of content; the one that was not used for longest goes first.
// Zero means [Entries] and [MaxBytes].
func New[K comparable](ttl time.Duration, entries, maxBytes int) *Results[K] {
	if entries <= 0 {
		entries = Entries
	}
	if maxBytes <= 0 {
		maxBytes = MaxBytes
	}
	return &Results[K]{ttl: ttl, entries: entries, maxBytes: maxBytes, recent: list.New(), byKey: map[K]*list.Element{}, flights: map[K]*flight{}}
}

type entry[K comparable] struct {
	key     K
	result  *protocol.CallToolResult
	expires time.Time
}

// A flight is a call whose result others wait for.
type flight struct {
	done   chan struct{}
	result *protocol.CallToolResult // set before done is closed; nil when there is none to share
	given  bool                     // set likewise: the call was given up by its caller
}

// Do returns the result that is kept under key, or what run returns. That is kept in its turn unless it is an error or of
// another type than *protocol.CallToolResult, or mine says that it is for this caller alone. keySize counts as bytes of
// the result.
func (r *Results[K]) Do(ctx context.Context, key K, keySize int, run func() (any, error), mine func() bool) (any, error) {
	for {
		r.mu.Lock()
		if result := r.lookup(key, time.Now()); result != nil {
			r.mu.Unlock()
			return result, nil
		}
		f := r.flights[key]
		if f == nil {
			f = &flight{done: make(chan struct{})}
			r.flights[key] = f
			r.mu.Unlock()
			return r.lead(ctx, key, keySize, f, run, mine)
		}
		r.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		switch {
		case f.result != nil:
			return clone(f.result), nil
		case !f.given:
			return run() // what failed once is tried by each for itself
		}
		// The first one's caller has gone: one of those who wait goes first now.
	}
}

// lead makes the call for which others wait.
func (r *Results[K]) lead(ctx context.Context, key K, keySize int, f *flight, run func() (any, error), mine func() bool) (any, error) {
	defer r.land(key, keySize, f) // also when the method panics
	result, err := run()
	if made, ok := result.(*protocol.CallToolResult); ok && err == nil && !made.IsError && !mine() {
		f.result = clone(made)
	}
	f.given = ctx.Err() != nil
	return result, err
}

// land keeps what a flight brought, and lets go who waits.
func (r *Results[K]) land(key K, keySize int, f *flight) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.flights, key)
	close(f.done)
	if f.result == nil || Size(f.result)+keySize > r.maxBytes {
		return
	}
	r.byKey[key] = r.recent.PushFront(&entry[K]{key, f.result, time.Now().Add(r.ttl)})
	if r.recent.Len() > r.entries {
		r.remove(r.recent.Back())
	}
}

// lookup finds a result that is fresh. r.mu is held.
func (r *Results[K]) lookup(key K, now time.Time) *protocol.CallToolResult {
	at, ok := r.byKey[key]
	if !ok {
		return nil
	}
	e := at.Value.(*entry[K])
	if !now.Before(e.expires) {
		r.remove(at)
		return nil
	}
	r.recent.MoveToFront(at)
	return clone(e.result)
}

func (r *Results[K]) remove(at *list.Element) {
	delete(r.byKey, at.Value.(*entry[K]).key)
	r.recent.Remove(at)
}

// clone makes a result that its owner may add to. What the contents point to is shared, and must not be changed.
func clone(r *protocol.CallToolResult) *protocol.CallToolResult {
	own := *r
	own.Content = slices.Clone(r.Content)
	return &own
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

// Size is how many bytes of content a result has, before it is encoded: texts, data and structured content.
func Size(r *protocol.CallToolResult) int {
	n := len(r.StructuredContent)
	for _, c := range r.Content {
		n += ContentSize(c)
	}
	return n
}

// ContentSize is how many bytes of text or data c has.
func ContentSize(c protocol.Content) int {
	switch c := c.(type) {
	case *protocol.TextContent:
		return len(c.Text)
	case *protocol.ImageContent:
		return len(c.Data)
	case *protocol.AudioContent:
		return len(c.Data)
	case *protocol.EmbeddedResource:
		return ContentsSize(&c.Resource)
	case *protocol.ResourceLink:
		return len(c.URI)
	case *protocol.UnknownContent:
		return len(c.Raw)
	}
	return 0
}

// ContentsSize is how many bytes of text or data c has.
func ContentsSize(c *protocol.ResourceContents) int {
	n := len(c.Blob)
	if c.Text != nil {
		n += len(*c.Text)
	}
	return n
}
