package middleware

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/memo"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A CacheOption configures [Cache].
type CacheOption func(*resultCache)

// CacheEntries sets how many results the cache keeps. It drops the least recently used one first. 0
// means 1,000.
func CacheEntries(n int) CacheOption { return func(c *resultCache) { c.entries = n } }

// CacheBytes sets the largest size of a cached result, its arguments included. Larger results are
// not cached. 0 means 64 KiB.
func CacheBytes(n int) CacheOption { return func(c *resultCache) { c.maxBytes = n } }

// CacheVary adds to the key of a result what the function returns, for example a header.
func CacheVary(f func(*mcpkit.Call) string) CacheOption { return func(c *resultCache) { c.vary = f } }

// CacheShared shares results between all callers, authenticated or not. The tools must not depend
// on the caller.
func CacheShared() CacheOption { return func(c *resultCache) { c.shared = true } }

// Cache keeps the results of tools with the hint readonly for ttl, for each caller. A ttl of 0
// caches nothing. Identical calls that come while the first one runs wait for its result.
//
// The key of a result is the tool, the arguments, the principal and its scopes, so a caller never
// gets a result that was made for another caller or with other scopes. Results of unauthenticated
// callers are not cached, unless [CacheShared] is given. Errors are not cached, nor are results
// that depend on answers of the client. The results of a tool end with its registration. Cache
// panics on negative values.
func Cache(ttl time.Duration, opts ...CacheOption) mcpkit.Middleware {
	c := &resultCache{}
	for _, o := range opts {
		o(c)
	}
	if ttl < 0 || c.entries < 0 || c.maxBytes < 0 {
		panic(fmt.Sprintf("middleware: Cache(%s) with %d entries of %d bytes: a value is negative", ttl, c.entries, c.maxBytes))
	}
	c.kept = memo.New[cacheKey](ttl, c.entries, c.maxBytes, cloneKept)
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			if ttl == 0 || !cacheable(call) || !c.shared && call.Principal() == nil {
				return next(ctx, call)
			}
			key := c.key(call)
			run := func() (mcpkit.Result, error) { return next(ctx, call) }
			share := func(r mcpkit.Result) (int, bool) {
				t, ok := r.(*protocol.CallToolResult)
				if !ok || t.IsError || call.Asked() {
					return 0, false
				}
				return mcpkit.SizeOf(t)
			}
			return c.kept.Do(ctx, key, len(key.arguments), run, share)
		}
	}
}

func cloneKept(r mcpkit.Result) mcpkit.Result {
	own := *r.(*protocol.CallToolResult)
	own.Content = slices.Clone(own.Content)
	return &own
}

func cacheable(call *mcpkit.Call) bool {
	t := call.Tool()
	if call.Method() != protocol.MethodToolsCall || t == nil || t.Annotations == nil ||
		t.Annotations.ReadOnlyHint == nil || !*t.Annotations.ReadOnlyHint {
		return false
	}
	params := call.Params()
	return jsonx.Member(params, "requestState") == nil && jsonx.Member(params, "inputResponses") == nil
}

// A resultCache has the options and the results of one [Cache].
type resultCache struct {
	entries, maxBytes int
	vary              func(*mcpkit.Call) string
	shared            bool
	kept              *memo.Results[cacheKey, mcpkit.Result]
}

// A cacheKey is what a result depends on.
type cacheKey struct {
	tool      *protocol.Tool // its registration, not its name
	principal string         // and scopes: "" if callers share results
	scopes    string
	arguments string
	vary      string
}

func (c *resultCache) key(call *mcpkit.Call) cacheKey {
	k := cacheKey{tool: call.Tool(), arguments: memo.Arguments(call.Arguments())}
	if !c.shared {
		p := call.Principal()
		k.principal, k.scopes = p.Key(), memo.Scopes(p.Scopes)
	}
	if c.vary != nil {
		k.vary = c.vary(call)
	}
	return k
}
