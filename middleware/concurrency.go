package middleware

import (
	"context"
	"fmt"
	"sync"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Concurrency runs at most limit calls of tools, prompts, resources and completions at a time, for
// all callers together. [By] gives each key a limit of its own. Further calls get a
// [*mcpkit.BusyError] at once.
//
// A call counts until its method has returned, even if the caller got a timeout before that, and
// not while a resource is still being sent from a reader. Concurrency panics if limit is less
// than 1.
func Concurrency(limit int, opts ...KeyOption) mcpkit.Middleware {
	if limit < 1 {
		panic(fmt.Sprintf("middleware: Concurrency(%d): the limit is less than 1", limit))
	}
	key := keyOf(opts, func(*mcpkit.Call) any { return nil })
	r := running{limit: limit, byKey: map[any]int{}}
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			if !runsUserCode(call) {
				return next(ctx, call)
			}
			k := key(call)
			if !r.begin(k) {
				return nil, &mcpkit.BusyError{Limit: limit}
			}
			defer call.OnReturn(func() { r.end(k) })
			return next(ctx, call)
		}
	}
}

// running counts the calls that are running, by key.
type running struct {
	limit int

	mu    sync.Mutex
	byKey map[any]int // guarded by mu; has only keys with calls
}

// begin counts a call, unless the limit of its key is reached.
func (r *running) begin(key any) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byKey[key] >= r.limit {
		return false
	}
	r.byKey[key]++
	return true
}

func (r *running) end(key any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byKey[key]--; r.byKey[key] == 0 {
		delete(r.byKey, key)
	}
}
