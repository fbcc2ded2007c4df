package middleware

import (
	"context"
	"fmt"
	"slices"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// When applies middleware to the calls for which cond returns true. The first is the outermost. When
// panics if a middleware is nil.
func When(cond func(*mcpkit.Call) bool, mw ...mcpkit.Middleware) mcpkit.Middleware {
	for i, m := range mw {
		if m == nil {
			panic(fmt.Sprintf("middleware: When: middleware %d of %d is nil", i+1, len(mw)))
		}
	}
	return func(next mcpkit.Handler) mcpkit.Handler {
		inner := next
		for _, m := range slices.Backward(mw) {
			inner = m(inner)
		}
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			if cond(call) {
				return inner(ctx, call)
			}
			return next(ctx, call)
		}
	}
}
