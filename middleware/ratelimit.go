package middleware

import (
	"context"
	"fmt"
	"path"
	"runtime"

	"github.com/mcpkit/mcpkit-go/internal/limits"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// RateLimit lets each caller begin perSecond calls of tools, prompts, resources and completions per
// second, and up to burst calls at once. Calls over the limit get a [mcpkit.RateLimitError] with a
// retry time. [By] sets the key; the default is [CallerOf].
//
// Rounds of a call that continue after a question (2026-07-28) have a limit of their own, which is
// [mcpkit.MaxRounds] times as high. The server remembers 10,000 keys. It forgets the least recently
// used one first, which then has its full burst again. RateLimit panics on negative values, and if
// both are 0.
//
// If the server is a replica ([mcpkit.Fleet]), the limit counts the calls of all replicas, and each
// call that is let through costs two operations of the engine. While the engine is not available,
// each replica counts by itself. Keys consist of plain values, without pointers. The replicas know a
// limit by the line of code that calls RateLimit, and by its numbers: limits that are made in a loop
// need different keys, such as [CallerAndTargetOf], or they count together.
func RateLimit(perSecond float64, burst int, opts ...KeyOption) mcpkit.Middleware {
	if !(perSecond >= 0) || burst < 0 || perSecond == 0 && burst == 0 {
		panic(fmt.Sprintf("middleware: RateLimit(%v, %d) allows no calls; write for example RateLimit(10, 20)", perSecond, burst))
	}
	return rateLimit(keyOf(opts, By(CallerOf)), callerLine(), perSecond, burst)
}

// callerLine returns the line that calls the function that calls it, with neither the folder nor
// what else differs between builds.
func callerLine() string {
	pc, file, line, _ := runtime.Caller(2)
	name := ""
	if f := runtime.FuncForPC(pc); f != nil {
		name = f.Name()
	}
	return fmt.Sprintf("%s %s:%d", name, path.Base(file), line)
}

func rateLimit(key KeyOption, name string, perSecond float64, burst int) mcpkit.Middleware {
	calls := limits.NewRounds[any](perSecond, burst, mcpkit.MaxRounds)
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			if runsUserCode(call) && call.Run() == nil { // the request of a run was counted
				if wait := calls.Take(ctx, call.Fleet(), "middleware "+name, key(call), call.Round()); wait > 0 {
					return nil, &mcpkit.RateLimitError{After: wait}
				}
			}
			return next(ctx, call)
		}
	}
}
