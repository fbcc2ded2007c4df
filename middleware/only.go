package middleware

import (
	"context"
	"fmt"
	"slices"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// When puts middleware around the calls for which cond is true; the first is the outermost. The others pass it by. Like Server.Use it
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

// ForTag puts middleware around the calls, completions and subscriptions of what has the word in its tags tag, also of what
// is registered later.
func ForTag(tag string, mw ...mcpkit.Middleware) mcpkit.Middleware {
	return When(func(call *mcpkit.Call) bool { return slices.Contains(call.Tags(), tag) }, mw...)
}

// ForTool puts middleware around the calls of one tool.
func ForTool(name string, mw ...mcpkit.Middleware) mcpkit.Middleware {
	return When(func(call *mcpkit.Call) bool {
		return call.Method() == protocol.MethodToolsCall && call.Target() == name
	}, mw...)
}

// ForMethod puts middleware around the calls of one method of the protocol, such as protocol.MethodToolsCall.
func ForMethod(method string, mw ...mcpkit.Middleware) mcpkit.Middleware {
	return When(func(call *mcpkit.Call) bool { return call.Method() == method }, mw...)
}
