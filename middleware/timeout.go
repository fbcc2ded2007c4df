package middleware

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Timeout limits the time of every call of every method, except requests that the client ends, such as
// subscriptions/listen, and runs outside of a request ([mcpkit.Call.Run]), such as those of tasks.
// After d, the context of the call ends with a [*mcpkit.TimeoutError] as its cause, and the caller
// gets that error even if the method does not return; see [mcpkit.ToolTimeout]. The timeout tag of a
// method can only shorten the time. The time stops while a question to the client is open. 0 means
// no limit. Timeout panics if d is negative.
func Timeout(d time.Duration) mcpkit.Middleware {
	if d < 0 {
		panic(fmt.Sprintf("middleware: Timeout(%s): the time is negative", d))
	}
	return func(next mcpkit.Handler) mcpkit.Handler {
		if d == 0 {
			return next
		}
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			if protocol.StaysOpen(call.Method()) || call.Run() != nil {
				return next(ctx, call)
			}
			call.SetTimeout(d)
			result, err := next(ctx, call)
			if err != nil && errors.Is(err, context.DeadlineExceeded) {
				// Inner middleware that waits returns only the error of the context.
				if late, ok := errors.AsType[*mcpkit.TimeoutError](context.Cause(ctx)); ok {
					return nil, late
				}
			}
			return result, err
		}
	}
}
