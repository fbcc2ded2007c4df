package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/result"
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

// Errorf returns an error whose text is meant for the caller. It formats like fmt.Errorf, %w
// included: the text of a wrapped error is shown.
func Errorf(format string, args ...any) error { return result.Errorf(format, args...) }

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
	switch {
	case isCoded:
		code = coded.ErrorCode()
	case call.row.method == protocol.MethodToolsCall:
		result := &protocol.CallToolResult{
			Content: []protocol.Content{&protocol.TextContent{Text: text}},
			IsError: true,
		}
		if details != nil {
			result.Meta = protocol.Meta{MetaErrorDetails: details}
		}
		return result, nil
	case call.row.method == protocol.MethodResourcesRead && isNotFound(err):
		return nil, protocol.ResourceNotFound(call.version, call.name)
	}
	return nil, &jsonrpc.Error{Code: code, Message: text, Data: details}
}

// protocolError makes a protocol error of user code safe to send: data that is not valid JSON is left
// out.
func (call *Call) protocolError(err *jsonrpc.Error) *jsonrpc.Error {
	if len(err.Data) > 0 && !jsonx.Valid(err.Data) {
		call.log(slog.LevelError, "mcpkit: the data of an error is not valid JSON and is left out")
		return &jsonrpc.Error{Code: err.Code, Message: err.Message}
	}
	return err
}

// tell returns the text of err for the caller and a suitable code. An error that the caller may not
// see is logged under a reference, which the caller gets.
func (call *Call) tell(err error) (text string, code int) {
	text, code = call.shown(err)
	if _, panicked := errors.AsType[*PanicError](err); text == "" || panicked { // its stack is for the log
		call.logError("mcpkit: a call failed with an error that the caller does not see", err)
	}
	if text == "" {
		text = call.internalError().Message
	}
	return text, code
}

// shown is like tell, but the text is "" if the caller may not see the error.
func (call *Call) shown(err error) (text string, code int) {
	if arg, ok := errors.AsType[*reflectx.ArgumentError](err); ok {
		return arg.Error(), jsonrpc.CodeInvalidParams
	}
	user, isUser := errors.AsType[UserMessenger](err)
	switch {
	case isUser:
		return user.UserMessage(), jsonrpc.CodeInternalError
	case isNotFound(err) && call.row.method == protocol.MethodResourcesRead:
		return "not found", jsonrpc.CodeInvalidParams
	case call.server.config.exposeErrors:
		return err.Error(), jsonrpc.CodeInternalError
	case call.cancelled(err):
		return "the call was cancelled", jsonrpc.CodeInternalError
	}
	return "", jsonrpc.CodeInternalError
}

// cancelled reports whether the caller has cancelled the call, so that there is nothing to log.
func (call *Call) cancelled(err error) bool {
	return errors.Is(err, context.Canceled) && call.limit.Err() != nil
}

// log logs what happened to the call, with its reference.
func (call *Call) log(level slog.Level, message string, attrs ...any) {
	attrs = append([]any{"ref", call.Ref(), "method", call.req.Method, "name", call.name}, attrs...)
	call.server.config.logger.Log(&call.limit, level, message, attrs...)
}

// logError logs an error of the call, or of a panic. Where that happened is part of the message, since
// handlers such as the default one of slog write that as it is, and quote line breaks in attributes.
func (call *Call) logError(message string, err error) {
	if p, ok := errors.AsType[*PanicError](err); ok {
		message += "\n" + aroundMethod().ReplaceAllString(string(p.Stack), "")
	}
	call.log(slog.LevelError, message, "error", err.Error())
}

// aroundMethod matches what is of no interest in the stack of a panic: what runs after it, and what has
// called the method. It is compiled at the first panic, not when programs start.
var aroundMethod = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)^.*?\npanic\([^\n]*\n[^\n]*\n(runtime\.[^\n]*\n[^\n]*\n)*|` +
		`(reflect\.[^\n]*\n[^\n]*\n)*github\.com/mcpkit/mcpkit-go/(reflectx|mcpkit\.traced)\..*$`)
})

// panicked logs the panic of a method of a result or an error, and returns the error for the caller.
func (call *Call) panicked(v any) *jsonrpc.Error {
	call.logError("mcpkit: a result or an error panicked", panicError(v))
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

// orEmpty returns the object, or {} if it is absent.
func orEmpty(object json.RawMessage) json.RawMessage {
	if object == nil {
		return json.RawMessage("{}")
	}
	return object
}

// decodeParams decodes the params of req; absent ones are {}.
func decodeParams(req *jsonrpc.Request, v any) error {
	if err := jsonx.Unmarshal(orEmpty(req.Params), v); err != nil {
		return invalidParams("the params of %s do not fit: %s", req.Method, jsonx.Describe(err))
	}
	return nil
}
