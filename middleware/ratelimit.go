package middleware

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/limits"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// RateLimit lets each caller begin perSecond calls of tools, prompts, resources and completions a second, and burst at once.
// A caller is a principal, or a session where nobody is authenticated, or everybody together where there is neither.
// Who is over the limit gets a [RateLimitError]. It panics on negative values, and when both are 0.
func RateLimit(perSecond float64, burst int) mcpkit.Middleware {
	return RateLimitBy(perSecond, burst, CallerOf)
}

// RateLimitBy is [RateLimit] with a limit for each key: [CallerOf], [CallerAndTargetOf], [TargetOf] or a function of the
// program's own. Up to 10,000 keys are remembered; whose calls are longest ago is forgotten first, and so has a full burst
// again.
func RateLimitBy[K comparable](perSecond float64, burst int, key func(*mcpkit.Call) K) mcpkit.Middleware {
	if !(perSecond >= 0) || burst < 0 || perSecond == 0 && burst == 0 {
		panic(fmt.Sprintf("middleware: RateLimit(%v, %d): no caller could ever call anything; write for example RateLimit(10, 20)", perSecond, burst))
	}
	begun := limits.NewTable[K](perSecond, burst)
	continued := limits.NewTable[K](perSecond*mcpkit.MaxRounds, burst*mcpkit.MaxRounds)
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			if works(call) {
				table := begun
				if call.Round() > 0 {
					table = continued
				}
				if wait := table.Take(key(call), time.Now()); wait > 0 {
					return nil, &RateLimitError{After: wait}
				}
			}
			return next(ctx, call)
		}
	}
}

// A RateLimitError says that a caller made too many calls, and when to try again.
type RateLimitError = mcpkit.RateLimitError

// Forever is how long to wait where waiting does not help.
const Forever = limits.Forever
