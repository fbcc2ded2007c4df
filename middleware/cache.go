package middleware

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/memo"
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
// Without a principal it belongs to the session, and where there is none to everybody. Errors and
// what came of asking the client are never kept, nor is anything of a tool that was removed or registered anew.
func Cache(ttl time.Duration, o CacheOptions) mcpkit.Middleware {
	if ttl < 0 || o.Entries < 0 || o.MaxBytes < 0 {
		panic(fmt.Sprintf("middleware: Cache(%s, CacheOptions{Entries: %d, MaxBytes: %d}): a value is negative", ttl, o.Entries, o.MaxBytes))
	}
	c := &resultCache{options: o, kept: memo.New[cacheKey](ttl, o.Entries, o.MaxBytes, cloneKept)}
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			if ttl == 0 || !cacheable(call) {
				return next(ctx, call)
			}
			key := c.key(call)
			run := func() (mcpkit.Result, error) { return next(ctx, call) }
			share := func(r mcpkit.Result) (int, bool) {
				t, ok := r.(*mcpkit.ToolResult)
				if !ok || t.IsError || call.Asked() {
					return 0, false
				}
				return t.Size()
			}
			return c.kept.Do(ctx, key, len(key.arguments), run, share)
		}
	}
}

func cloneKept(r mcpkit.Result) mcpkit.Result { return r.(*mcpkit.ToolResult).Clone() }

func cacheable(call *mcpkit.Call) bool {
	t := call.Tool()
	if call.Method() != protocol.MethodToolsCall || t == nil || t.Annotations == nil || !isTrue(t.Annotations.ReadOnlyHint) {
		return false
	}
	params := call.Params()
	return jsonx.Member(params, "requestState") == nil && jsonx.Member(params, "inputResponses") == nil
}

// resultCache is what one [Cache] keeps.
type resultCache struct {
	options CacheOptions
	kept    *memo.Results[cacheKey, mcpkit.Result]
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
	k := cacheKey{tool: call.Tool(), arguments: memo.Arguments(call.Arguments())}
	if !c.options.Shared {
		k.caller = CallerOf(call)
		if p := call.Principal(); p != nil {
			k.scopes = memo.Scopes(p.Scopes)
		}
	}
	if c.options.Vary != nil {
		k.vary = c.options.Vary(call)
	}
	return k
}
