package middleware

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/limits"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Timeout bounds every call in time, whatever its method, but for subscriptions/listen, which lasts as long as the client
// wants. When d is over the context of the call ends with a [mcpkit.TimeoutError] for its cause, and the caller gets it as soon as the method returns an error that says its context ended: a method that does not look at
// its context is not stopped, and what it returns in the end counts. A timeout tag of a method can only be shorter.
// 0 bounds nothing. It panics when d is negative.
func Timeout(d time.Duration) mcpkit.Middleware {
	if d < 0 {
		panic(fmt.Sprintf("middleware: Timeout(%s): the time is negative", d))
	}
	return func(next mcpkit.Handler) mcpkit.Handler {
		if d == 0 {
			return next
		}
		over := &mcpkit.TimeoutError{After: d} // a cause of its own, not to be mistaken for that of a limit further in
		return func(ctx context.Context, call *mcpkit.Call) (result mcpkit.Result, err error) {
			if call.Method() == protocol.MethodSubscriptionsListen {
				return next(ctx, call)
			}
			limit := new(limits.Deadline)
			limit.Begin(ctx, d, over)
			defer func() {
				if !isRead(call, result) { // else it is read under this context, which ends with the request
					limit.End()
				}
			}()
			result, err = next(limit, call)
			if err != nil && errors.Is(err, context.DeadlineExceeded) && context.Cause(limit) == error(over) {
				if _, told := errors.AsType[*mcpkit.TimeoutError](err); !told {
					err = over
				}
			}
			return result, err
		}
	}
}

// isRead reports whether the result is the contents of a resource that are read while they are sent.
func isRead(call *mcpkit.Call, result mcpkit.Result) bool {
	if result == nil || call.Method() != protocol.MethodResourcesRead {
		return false
	}
	_, known := SizeOf(result)
	return !known
}
