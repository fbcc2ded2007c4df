package middleware

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Recover turns panics of inner middleware into a [mcpkit.PanicError]. It calls report for these
// and for panics of methods, from which the server itself recovers. A nil report is not called.
func Recover(report func(ctx context.Context, call *mcpkit.Call, p *mcpkit.PanicError)) mcpkit.Middleware {
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (result mcpkit.Result, err error) {
			defer func() {
				if v := recover(); v != nil {
					result, err = nil, &mcpkit.PanicError{Value: v, Stack: debug.Stack()}
				}
				if p, ok := errors.AsType[*mcpkit.PanicError](err); ok && report != nil {
					report(ctx, call, p)
				}
			}()
			return next(ctx, call)
		}
	}
}
