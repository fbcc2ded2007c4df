package middleware

import (
	"context"
	"fmt"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/limits"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// RateLimit lets each caller begin perSecond calls of tools, prompts, resources and completions, and
// requests about events, per second, and up to burst at once. Those over the limit get a
// [mcpkit.RateLimitError] with a retry time. [By] sets the key; the default is [CallerOf].
//
// Of the rounds of a call that continue after a question (2026-07-28), only those that the client
// repeats count. The server remembers 10,000 keys. It forgets the least recently used one first, which
// then has its full burst again. RateLimit panics unless perSecond is above 0 and burst at least 1.
//
// In a fleet ([mcpkit.Fleet]), the limit counts the calls of one replica: divide it by the number of
// replicas.
func RateLimit(perSecond float64, burst int, opts ...KeyOption) mcpkit.Middleware {
	if !(perSecond > 0) || burst < 1 {
		panic(fmt.Sprintf("middleware: RateLimit(%v, %d) allows no calls; write for example RateLimit(10, 20)", perSecond, burst))
	}
	key := keyOf(opts, By(CallerOf))
	calls := limits.NewRounds[any](perSecond, burst)
	var warn sync.Once
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			_, _, event := call.Event()
			if !runsUserCode(call) && !event || call.Run() != nil { // the request of a run was counted
				return next(ctx, call)
			}
			if f := call.Fleet(); f != nil {
				warn.Do(func() { f.Logger().Warn(limits.PerReplica) })
			}
			if wait := calls.Take(key(call), call.Ref(), call.Round()); wait > 0 {
				return nil, &mcpkit.RateLimitError{After: wait}
			}
			return next(ctx, call)
		}
	}
}
