package middleware

import (
	"context"
	"errors"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Timeout bounds every call in time, whatever its method, but for subscriptions/listen, which lasts as long as the client
// wants. When d is over the context of the call ends with the cause [mcpkit.ErrTimeout], and the caller gets a
// [mcpkit.TimeoutError] as soon as the method returns. A timeout tag of a method can only be shorter.
func Timeout(d time.Duration) mcpkit.Middleware {
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (any, error) {
			if d <= 0 || call.Method() == protocol.MethodSubscriptionsListen {
				return next(ctx, call)
			}
			ctx, cancel := context.WithTimeoutCause(ctx, d, mcpkit.ErrTimeout)
			defer cancel()
			result, err := next(ctx, call)
			if errors.Is(err, context.DeadlineExceeded) && context.Cause(ctx) == mcpkit.ErrTimeout {
				if _, told := errors.AsType[*mcpkit.TimeoutError](err); !told {
					err = &mcpkit.TimeoutError{After: d}
				}
			}
			return result, err
		}
	}
}
