package middleware

import (
	"context"
	"errors"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// codeToolTimeout is the code with which [ErrorCodes] reports a timeout of a tool.
const codeToolTimeout = -32000

// ErrorCodes reports failures of tools/call as JSON-RPC errors, for programs that call tools
// without a model:
//
//	-32601  unknown tool
//	-32602  invalid arguments
//	-32603  the tool returned an error, or a result with isError
//	-32000  "Tool execution timeout"
//
// The specification puts failures of a tool into its result, where the model sees them, and reports
// an unknown tool as -32602. The texts of errors follow the same rules as without ErrorCodes.
// Errors with a code of their own keep it.
func ErrorCodes() mcpkit.Middleware {
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			result, err := next(ctx, call)
			if call.Method() != protocol.MethodToolsCall {
				return result, err
			}
			if r, ok := result.(*protocol.CallToolResult); ok && err == nil && r.IsError {
				return nil, jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s", firstText(r))
			}
			if err != nil {
				return nil, withCode(call, err)
			}
			return result, nil
		}
	}
}

// withCode returns the error of a tool call with its code.
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
	if _, late := errors.AsType[*mcpkit.TimeoutError](err); late {
		return &toolTimeout{codedError{err, codeToolTimeout}}
	}
	return &codedError{err, jsonrpc.CodeInternalError}
}

func firstText(r *protocol.CallToolResult) string {
	for _, c := range r.Content {
		if text, ok := c.(*protocol.TextContent); ok {
			return text.Text
		}
	}
	return "the tool failed"
}

// A codedError is an error with a code.
type codedError struct {
	error
	code int
}

// Unwrap returns the error without the code.
func (e *codedError) Unwrap() error { return e.error }

// ErrorCode returns the code.
func (e *codedError) ErrorCode() int { return e.code }

// A toolTimeout is a timeout with the text that callers of these codes expect.
type toolTimeout struct{ codedError }

// UserMessage returns the fixed text.
func (e *toolTimeout) UserMessage() string { return "Tool execution timeout" }
