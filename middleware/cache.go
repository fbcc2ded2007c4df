package middleware

import (
	"container/list"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// CacheOptions bound a [Cache]. The zero value keeps 1,000 results of up to 64 KiB, for each principal its own.
type CacheOptions struct {
	// Entries is how many results are kept; the one that was not used for longest goes first. Zero means 1,000.
	Entries int

	// MaxBytes is how large a result may be to be kept; see [SizeOf]. Zero means 64 KiB.
	MaxBytes int

	// Vary returns what results depend on beside the principal, its scopes, the tool and the arguments: for example
	// a header. Nil means nothing.
	Vary func(*mcpkit.Call) string

	// Shared gives the result of one principal to all others. The tools must not look at who is asking.
	Shared bool
}

// Cache keeps the results of tools whose hints say that they only read, for ttl. That a tool is idempotent is not enough: leaving
// such a call out would leave a change out. Calls that are the same and come while the first runs wait for its result.
//
// What is kept belongs to a principal with its scopes: who may do less never gets what was made for who may do more.
// Without a principal it belongs to the session, and where there is none to everybody. Errors, questions to the client and
// retries of calls that ask are never kept, nor is anything of a tool that was removed or registered anew.
func Cache(ttl time.Duration, o CacheOptions) mcpkit.Middleware {
	if o.Entries <= 0 {
		o.Entries = 1000
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 64 << 10
	}
	c := &resultCache{ttl: ttl, options: o, recent: list.New(), byKey: map[cacheKey]*list.Element{}, flights: map[cacheKey]*flight{}}
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (any, error) {
			if ttl <= 0 || !cacheable(call) {
				return next(ctx, call)
			}
			return c.do(ctx, call, next)
		}
	}
}

func cacheable(call *mcpkit.Call) bool {
	t := call.Tool()
	if call.Method() != protocol.MethodToolsCall || t == nil || t.Annotations == nil || !isTrue(t.Annotations.ReadOnlyHint) {
		return false
	}
	params := call.Params()
	return jsonx.Member(params, "requestState") == nil && jsonx.Member(params, "inputResponses") == nil
}

// A cacheKey says what a result depends on.
type cacheKey struct {
	tool      *protocol.Tool // a tool that is registered anew is another one
	caller    Caller
	scopes    string
	arguments string
	vary      string
}

func (c *resultCache) key(call *mcpkit.Call) cacheKey {
	k := cacheKey{tool: call.Tool(), arguments: "{}"}
	if raw := call.Arguments(); raw != nil {
		compact, err := jsonx.Compact(slices.Clone(raw))
		if err != nil {
			compact = raw
		}
		k.arguments = string(compact)
	}
	if !c.options.Shared {
		k.caller = CallerOf(call)
		if p := call.Principal(); p != nil {
			scopes := slices.Sorted(slices.Values(p.Scopes))
			k.scopes = strings.Join(scopes, "\x00")
		}
	}
	if c.options.Vary != nil {
		k.vary = c.options.Vary(call)
	}
	return k
}

// resultCache keeps results, and knows which are being made.
type resultCache struct {
	ttl     time.Duration
	options CacheOptions

	mu      sync.Mutex
	recent  *list.List // of *cacheEntry, the latest used in front
	byKey   map[cacheKey]*list.Element
	flights map[cacheKey]*flight
}

type cacheEntry struct {
	key     cacheKey
	result  *protocol.CallToolResult
	expires time.Time
}

// A flight is a call whose result others wait for.
type flight struct {
	done   chan struct{}
	result *protocol.CallToolResult // set before done is closed; nil when there is none to share
	given  bool                     // set likewise: the call was given up by its caller
}

func (c *resultCache) do(ctx context.Context, call *mcpkit.Call, next mcpkit.Handler) (any, error) {
	key := c.key(call)
	for {
		c.mu.Lock()
		if r := c.lookup(key, time.Now()); r != nil {
			c.mu.Unlock()
			return r, nil
		}
		f := c.flights[key]
		if f == nil {
			f = &flight{done: make(chan struct{})}
			c.flights[key] = f
			c.mu.Unlock()
			return c.lead(ctx, call, next, key, f)
		}
		c.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		switch {
		case f.result != nil:
			return cloneResult(f.result), nil
		case !f.given:
			return next(ctx, call) // what failed once is tried by each for itself
		}
		// The first one's caller has gone: one of those who wait goes first now.
	}
}

// lead makes the call for which others wait.
func (c *resultCache) lead(ctx context.Context, call *mcpkit.Call, next mcpkit.Handler, key cacheKey, f *flight) (any, error) {
	defer c.land(key, f) // also when the method panics
	result, err := next(ctx, call)
	if r, ok := result.(*protocol.CallToolResult); ok && err == nil && !r.IsError {
		f.result = cloneResult(r)
	}
	f.given = ctx.Err() != nil
	return result, err
}

// land keeps what a flight brought, and lets go who waits.
func (c *resultCache) land(key cacheKey, f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.flights, key)
	close(f.done)
	if f.result == nil {
		return
	}
	if size, _ := SizeOf(f.result); size+len(key.arguments) > c.options.MaxBytes {
		return
	}
	c.byKey[key] = c.recent.PushFront(&cacheEntry{key, f.result, time.Now().Add(c.ttl)})
	if c.recent.Len() > c.options.Entries {
		c.remove(c.recent.Back())
	}
}

// lookup finds a result that is fresh. c.mu is held.
func (c *resultCache) lookup(key cacheKey, now time.Time) *protocol.CallToolResult {
	e, ok := c.byKey[key]
	if !ok {
		return nil
	}
	entry := e.Value.(*cacheEntry)
	if !now.Before(entry.expires) {
		c.remove(e)
		return nil
	}
	c.recent.MoveToFront(e)
	return cloneResult(entry.result)
}

func (c *resultCache) remove(e *list.Element) {
	delete(c.byKey, e.Value.(*cacheEntry).key)
	c.recent.Remove(e)
}

// cloneResult makes a result that its owner may add to. What the contents point to is shared, and must not be changed.
func cloneResult(r *protocol.CallToolResult) *protocol.CallToolResult {
	clone := *r
	clone.Content = slices.Clone(r.Content)
	return &clone
}
