package middleware

import (
	"context"
	"errors"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// An Outcome is one word for how a call ended. It has few values, so it can be a label of a metric.
type Outcome string

// The outcomes of calls.
const (
	OK            Outcome = "ok"
	InputRequired Outcome = "input_required" // the client is asked a question (2026-07-28)
	ToolError     Outcome = "tool_error"     // the method returned a result with isError
	Failed        Outcome = "error"          // the method or middleware returned an error
	ProtocolError Outcome = "protocol_error" // the name is unknown or the request is malformed
	Denied        Outcome = "denied"         // by Scopes or Authorize
	Limited       Outcome = "limited"        // by RateLimit, Concurrency or MaxRunning
	TimedOut      Outcome = "timeout"
	Cancelled     Outcome = "cancelled" // by the caller
	Panicked      Outcome = "panic"
)

// OutcomeOf returns the outcome of a call from what the next handler returned.
func OutcomeOf(result mcpkit.Result, err error) Outcome {
	if err == nil {
		switch r := result.(type) {
		case *protocol.CallToolResult:
			if r != nil && r.IsError {
				return ToolError
			}
		case *protocol.InputRequiredResult:
			return InputRequired
		}
		return OK
	}
	if _, ok := errors.AsType[*DeniedError](err); ok {
		return Denied
	}
	if _, ok := errors.AsType[*mcpkit.PanicError](err); ok {
		return Panicked
	}
	_, tooOften := errors.AsType[*mcpkit.RateLimitError](err)
	if _, busy := errors.AsType[*mcpkit.BusyError](err); busy || tooOften {
		return Limited
	}
	_, late := errors.AsType[*mcpkit.TimeoutError](err)
	switch {
	case errors.Is(err, mcpkit.ErrAsked): // by inner middleware
		return InputRequired
	case late:
		return TimedOut
	case errors.Is(err, context.Canceled):
		return Cancelled
	}
	if _, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return ProtocolError
	}
	return Failed
}

// runsUserCode reports whether the call runs a method of the program: a tool, a prompt, a resource
// or a completion.
func runsUserCode(call *mcpkit.Call) bool {
	switch call.Method() {
	case protocol.MethodToolsCall, protocol.MethodPromptsGet, protocol.MethodResourcesRead, protocol.MethodCompletionComplete:
		return true
	}
	return false
}
