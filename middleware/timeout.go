package middleware

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Timeout bounds every call in time, whatever its method, but for subscriptions/listen, which lasts as long as the client
// wants. When d is over the context of the call ends with a [*mcpkit.TimeoutError] for its cause, and the caller gets that error whether
// the method returns or not: see mcpkit.ToolTimeout. A timeout tag of a method can only be shorter. The time does not pass while a
// question to the client is open. 0 bounds nothing. It panics when d is negative.
func Timeout(d time.Duration) mcpkit.Middleware {
	if d < 0 {
		panic(fmt.Sprintf("middleware: Timeout(%s): the time is negative", d))
	}
	return func(next mcpkit.Handler) mcpkit.Handler {
		if d == 0 {
			return next
		}
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			if call.Method() == protocol.MethodSubscriptionsListen {
				return next(ctx, call)
			}
			call.SetTimeout(d)
			result, err := next(ctx, call)
			if err != nil && errors.Is(err, context.DeadlineExceeded) {
				// A middleware further in that waits says only that its context ended.
				if late, ok := errors.AsType[*mcpkit.TimeoutError](context.Cause(ctx)); ok {
					return nil, late
				}
			}
			return result, err
		}
	}
}
