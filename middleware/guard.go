package middleware

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// GuardArguments calls f with the arguments of every tool call and prompt, before they are
// validated. f returns the arguments, other arguments in their place, which are then validated, or
// an error, which ends the call like an error of the method. args is {} if the client sent none; do
// not change it. [When] limits the guard to a part of the server.
func GuardArguments(f func(ctx context.Context, call *mcpkit.Call, args json.RawMessage) (json.RawMessage, error)) mcpkit.Middleware {
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			if m := call.Method(); m != protocol.MethodToolsCall && m != protocol.MethodPromptsGet || call.Target() == "" {
				return next(ctx, call)
			}
			args := call.Arguments()
			if args == nil {
				args = json.RawMessage("{}")
			}
			guarded, err := f(ctx, call, args)
			if err != nil {
				return nil, err
			}
			if len(guarded) != len(args) || &guarded[0] != &args[0] {
				if err := call.SetArguments(guarded); err != nil {
					return nil, fmt.Errorf("middleware: arguments of a guard: %w", err)
				}
			}
			return next(ctx, call)
		}
	}
}

// GuardResult calls f with every result. f returns the result, another one in its place, or an
// error. Do not change a result: it may be cached or shared. See [mcpkit.Result] for its types.
func GuardResult(f func(ctx context.Context, call *mcpkit.Call, result mcpkit.Result) (mcpkit.Result, error)) mcpkit.Middleware {
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			result, err := next(ctx, call)
			if err != nil {
				return nil, err
			}
			return f(ctx, call, result)
		}
	}
}
