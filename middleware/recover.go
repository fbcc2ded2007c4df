package middleware

import (
	"context"
	"runtime/debug"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Recover turns a panic of the middleware inside it into a [mcpkit.PanicError], and tells report of it and of the panics of
// methods, which the server recovers from itself. Nil reports nothing.
func Recover(report func(ctx context.Context, call *mcpkit.Call, p *mcpkit.PanicError)) mcpkit.Middleware {
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (result mcpkit.Result, err error) {
			defer func() {
				if v := recover(); v != nil {
					result, err = nil, &mcpkit.PanicError{Value: v, Stack: debug.Stack()}
				}
				if p, ok := err.(*mcpkit.PanicError); ok && report != nil {
					report(ctx, call, p)
				}
			}()
			return next(ctx, call)
		}
	}
}
