package middleware

import (
	"context"
	"errors"

	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// CodeToolTimeout is the code that [ErrorCodes] gives to tools that take too long.
const CodeToolTimeout = -32000

// ErrorCodes answers failures of tools/call with JSON-RPC errors, for callers that go by their codes:
//
//	-32601  no such tool
//	-32602  the arguments do not fit
//	-32603  the tool failed, or its result says so
//	-32000  "Tool execution timeout"
//
// The specification wants the failures of a tool in its result, where the model sees them, and an unknown tool as -32602: so
// this is for programs that call tools without a model. What the text of an error shows follows the same rules as without
// it. Errors that have a code of their own keep it.
func ErrorCodes() mcpkit.Middleware {
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			result, err := next(ctx, call)
			if call.Method() != protocol.MethodToolsCall {
				return result, err
			}
			if r, ok := result.(*mcpkit.ToolResult); ok && err == nil && r.IsError {
				return nil, jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s", firstText(r))
			}
			if err != nil {
				return nil, withCode(call, err)
			}
			return result, nil
		}
	}
}

// withCode gives an error of a tool call its code.
func withCode(call *mcpkit.Call, err error) error {
	if rpc, ok := errors.AsType[*jsonrpc.Error](err); ok {
		if rpc.Code == jsonrpc.CodeInvalidParams && call.Tool() == nil {
			return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: rpc.Message, Data: rpc.Data}
		}
		return err
	}
	if _, ok := errors.AsType[mcpkit.CodedError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*reflectx.ArgumentError](err); ok {
		return &codedError{err, jsonrpc.CodeInvalidParams}
	}
	if errors.Is(err, mcpkit.ErrTimeout) {
		return &toolTimeout{codedError{err, CodeToolTimeout}}
	}
	return &codedError{err, jsonrpc.CodeInternalError}
}

func firstText(r *mcpkit.ToolResult) string {
	for _, c := range r.Content {
		if text, ok := c.(*protocol.TextContent); ok {
			return text.Text
		}
	}
	return "the tool failed"
}

// codedError is an error that has a code besides.
type codedError struct {
	error
	code int
}

// Unwrap returns the error without the code.
func (e *codedError) Unwrap() error { return e.error }

// ErrorCode is the code.
func (e *codedError) ErrorCode() int { return e.code }

// toolTimeout says so in the words that callers of these codes know.
type toolTimeout struct{ codedError }

// UserMessage is always the same.
func (e *toolTimeout) UserMessage() string { return "Tool execution timeout" }
