package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// A UserMessenger is an error with a text for the caller: a model or a person. The text of other
// errors only goes to the log.
type UserMessenger interface {
	error
	UserMessage() string
}

// userError is what Errorf returns.
type userError struct{ err error }

func (e *userError) Error() string       { return e.err.Error() }
func (e *userError) UserMessage() string { return e.err.Error() }
func (e *userError) Unwrap() error       { return errors.Unwrap(e.err) }

// Errorf returns an error whose text is meant for the caller. It formats like fmt.Errorf, %w
// included: the text of a wrapped error is shown.
func Errorf(format string, args ...any) error {
	return &userError{fmt.Errorf(format, args...)}
}

// ErrNotFound means that nothing has this URI. A resource method returns it, or an error that wraps
// it or fs.ErrNotExist.
var ErrNotFound = errors.New("not found")

// A CodedError becomes a protocol error with its own code, even in tools. Its text is shown by the
// rules for all errors.
type CodedError interface {
	error
	ErrorCode() int
}

// A DetailedError has details for programs: an object that becomes the data of a protocol error, or
// [MetaErrorDetails] in the _meta of a tool error.
type DetailedError interface {
	error
	ErrorDetails() map[string]any
}

// A RetryableError is temporary: the call may succeed after that time. Over Streamable HTTP a reply
// of a single message gets the header Retry-After. Zero and negative times have no effect.
type RetryableError interface {
	error
	RetryAfter() time.Duration
}

// retryAfter returns the time of a [RetryableError]; 0 for other errors.
func retryAfter(err error) time.Duration {
	if retryable, ok := errors.AsType[RetryableError](err); ok {
		return max(retryable.RetryAfter(), 0)
	}
	return 0
}

// MetaErrorDetails is the key of the details of a [DetailedError] in the _meta of a tool error.
const MetaErrorDetails = "io.github.mcpkit/error"

// detailsOf returns the encoded details of an error, or nil.
func detailsOf(err error) json.RawMessage {
	detailed, ok := errors.AsType[DetailedError](err)
	if !ok {
		return nil
	}
	details, encodeErr := jsonx.Marshal(detailed.ErrorDetails())
	if encodeErr != nil {
		return nil // the text remains
	}
	return details
}

// fail turns the error of a call into a response: in tools a result with isError, so that the model
// can try again, and otherwise a protocol error.
func (call *Call) fail(err error) (Result, *jsonrpc.Error) {
	if rpc, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return nil, call.protocolError(rpc)
	}
	coded, isCoded := errors.AsType[CodedError](err)
	if needed := neededScopes(err); needed != nil && !isCoded {
		return nil, insufficientScope(needed)
	}
	text, code := call.tell(err)
	details := detailsOf(err)
	if isCoded {
		return nil, &jsonrpc.Error{Code: coded.ErrorCode(), Message: text, Data: details}
	}
	if call.row.method == protocol.MethodToolsCall {
		result := &protocol.CallToolResult{
			Content: []protocol.Content{&protocol.TextContent{Text: text}},
			IsError: true,
		}
		if details != nil {
			result.Meta = protocol.Meta{MetaErrorDetails: details}
		}
		return result, nil
	}
	rpc := &jsonrpc.Error{Code: code, Message: text, Data: details}
	if call.row.method == protocol.MethodResourcesRead && isNotFound(err) {
		return nil, protocol.ResourceNotFound(call.version, call.name)
	}
	return nil, rpc
}

// protocolError makes a protocol error of user code safe to send: nil is an internal error, and
// data that is not valid JSON is left out.
func (call *Call) protocolError(err *jsonrpc.Error) *jsonrpc.Error {
	switch {
	case err == nil:
		call.server.config.logger.ErrorContext(call.limit, "mcpkit: the error of a call is a nil *jsonrpc.Error; return nil instead",
			"ref", call.Ref(), "method", call.row.method, "name", call.name)
		return call.internalError()
	case len(err.Data) > 0 && !jsonx.Valid(err.Data):
		call.server.config.logger.ErrorContext(call.limit, "mcpkit: the data of an error is not valid JSON and is left out",
			"ref", call.Ref(), "method", call.row.method, "name", call.name)
		return &jsonrpc.Error{Code: err.Code, Message: err.Message}
	}
	return err
}

// tell returns the text of err for the caller and a suitable code. An error that the caller may not
// see is logged under a reference, which the caller gets.
func (call *Call) tell(err error) (text string, code int) {
	if arg, ok := errors.AsType[*reflectx.ArgumentError](err); ok {
		return arg.Error(), jsonrpc.CodeInvalidParams
	}
	if user, ok := errors.AsType[UserMessenger](err); ok {
		return user.UserMessage(), jsonrpc.CodeInternalError
	}
	if isNotFound(err) && call.row.method == protocol.MethodResourcesRead {
		return "not found", jsonrpc.CodeInvalidParams
	}
	_, panicked := errors.AsType[*PanicError](err)
	switch exposed := call.server.config.exposeErrors; {
	case exposed && !panicked: // the stack of a panic is for the log
		return err.Error(), jsonrpc.CodeInternalError
	case exposed:
		call.logError("mcpkit: a call panicked", err)
		return err.Error(), jsonrpc.CodeInternalError
	case errors.Is(err, context.Canceled) && call.limit.Err() != nil:
		return "the call was cancelled", jsonrpc.CodeInternalError // the caller cancelled it, so nothing is logged
	}
	call.logError("mcpkit: a call failed with an error that the caller does not see", err)
	return "internal error (ref " + call.Ref() + ")", jsonrpc.CodeInternalError
}

// logError logs an error of the call under its reference.
func (call *Call) logError(message string, err error) {
	attrs := []any{"ref", call.Ref(), "method", call.row.method, "name", call.name, "error", err.Error()}
	if p, ok := errors.AsType[*PanicError](err); ok {
		attrs = append(attrs, slog.String("stack", string(p.Stack)))
	}
	call.server.config.logger.ErrorContext(call.limit, message, attrs...)
}

// panicked logs the panic of a method of a result or an error, and returns the error for the caller.
func (call *Call) panicked(v any) *jsonrpc.Error {
	call.server.config.logger.ErrorContext(call.limit, "mcpkit: a result or an error panicked",
		"ref", call.Ref(), "method", call.req.Method, "name", call.name, "panic", v, "stack", string(debug.Stack()))
	return call.internalError()
}

// internalError returns an error whose cause is in the log.
func (call *Call) internalError() *jsonrpc.Error {
	return jsonrpc.Errorf(jsonrpc.CodeInternalError, "internal error (ref %s)", call.Ref())
}

func isNotFound(err error) bool {
	return errors.Is(err, ErrNotFound) || errors.Is(err, fs.ErrNotExist)
}

// invalidParams returns a protocol error about the params of a request.
func invalidParams(format string, args ...any) *jsonrpc.Error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, format, args...)
}

// decodeParams decodes the params of req; absent ones are {}.
func decodeParams[P any](_ context.Context, req *jsonrpc.Request, v *P) error {
	raw := req.Params
	if raw == nil {
		raw = []byte("{}")
	}
	if err := jsonx.Unmarshal(raw, v); err != nil {
		return invalidParams("the params of %s do not fit: %s", req.Method, jsonx.Describe(err))
	}
	return nil
}
