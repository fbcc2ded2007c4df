package middleware

import (
	"context"
	"errors"

	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// An Outcome says in one word how a call ended. There are few, so that it may be a label of a metric.
type Outcome string

// The outcomes of calls.
const (
	OK            Outcome = "ok"
	InputRequired Outcome = "input_required" // the client is asked, and comes back with the answer (2026-07-28)
	Unanswered    Outcome = "unanswered"     // the client was asked something, and did not come back (2026-07-28)
	ToolError     Outcome = "tool_error"     // the method returned a result that says it failed
	Failed        Outcome = "error"          // the method, or a middleware, returned an error
	Refused       Outcome = "protocol_error" // there is no such thing, or the request is malformed
	Denied        Outcome = "denied"         // by Scopes or Authorize
	Limited       Outcome = "limited"        // by RateLimit or Concurrency
	TimedOut      Outcome = "timeout"
	Cancelled     Outcome = "cancelled" // by the caller
	Panicked      Outcome = "panic"
)

// OutcomeOf says how a call ended, of what the next handler returned.
func OutcomeOf(result mcpkit.Result, err error) Outcome {
	if err == nil {
		switch r := result.(type) {
		case *mcpkit.ToolResult:
			if r.IsError {
				return ToolError
			}
		case *mcpkit.InputRequiredResult:
			return InputRequired
		}
		return OK
	}
	if own, ok := errors.AsType[interface {
		error
		outcome() Outcome
	}](err); ok {
		return own.outcome()
	}
	if _, ok := errors.AsType[*mcpkit.PanicError](err); ok {
		return Panicked
	}
	if _, ok := errors.AsType[*mcpkit.RateLimitError](err); ok {
		return Limited
	}
	switch {
	case errors.Is(err, mcpkit.ErrTimeout):
		return TimedOut
	case errors.Is(err, context.Canceled):
		return Cancelled
	}
	if _, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return Refused
	}
	return Failed
}

// works reports whether the call runs a program's own code: a tool, a prompt, a resource or a completion. The others answer
// from tables, or last as long as the client likes.
func runsUserCode(call *mcpkit.Call) bool {
	switch call.Method() {
	case protocol.MethodToolsCall, protocol.MethodPromptsGet, protocol.MethodResourcesRead, protocol.MethodCompletionComplete:
		return true
	}
	return false
}
