package middleware

import (
	"context"
	"fmt"
	"slices"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// When puts middleware around the calls for which cond is true; the first is the outermost. The others pass it by. For calls that
// a name tells apart there is mcpkit.Server.UseFor, which refuses to start when a name is misspelt. Like Server.Use it
// panics when one is nil.
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
