package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// A UserMessenger is an error that has something to say to the caller: a model or the person behind it.
// The text of any other error goes to the log only.
type UserMessenger interface {
	error
	UserMessage() string
}

// userError is what Errorf returns.
type userError struct{ err error }

func (e *userError) Error() string       { return e.err.Error() }
func (e *userError) UserMessage() string { return e.err.Error() }
func (e *userError) Unwrap() error       { return errors.Unwrap(e.err) }

// Errorf returns an error whose text is meant for the caller. %w works as in fmt.Errorf; what it wraps is shown as part
// of the text.
func Errorf(format string, args ...any) error {
	return &userError{fmt.Errorf(format, args...)}
}

// ErrNotFound says that there is no such thing: a resource method returns it, or an error that wraps it or
// fs.ErrNotExist, for a URI of which there is nothing.
var ErrNotFound = errors.New("not found")

// A CodedError is an error that is answered as a protocol error with a code of its own, also where a tool error would be
// the rule. Its text is shown by the same rules as that of any other error.
type CodedError interface {
	error
	ErrorCode() int
}

// A DetailedError is an error with details for programs: an object, which becomes the data of a protocol error, or stands
// in the _meta of a tool error as [MetaErrorDetails].
type DetailedError interface {
	error
	ErrorDetails() map[string]any
}

// A RetryableError is an error that passes: a call that comes after that time may fare better. Over Streamable HTTP a reply of a
// single message has the header Retry-After then, beside whatever the error itself says; zero and less say nothing.
type RetryableError interface {
	error
	RetryAfter() time.Duration
}

// retryAfter is the time of a [RetryableError]; 0 for others.
func retryAfter(err error) time.Duration {
	if retryable, ok := errors.AsType[RetryableError](err); ok {
		return max(retryable.RetryAfter(), 0)
	}
	return 0
}

// MetaErrorDetails is the key in the _meta of a tool error for the details of a [DetailedError].
const MetaErrorDetails = "io.github.mcpkit/error"

// detailsOf encodes the details of an error; nil when it has none.
func detailsOf(err error) json.RawMessage {
	detailed, ok := errors.AsType[DetailedError](err)
	if !ok {
		return nil
	}
	details, encodeErr := jsonx.Marshal(detailed.ErrorDetails())
	if encodeErr != nil {
		return nil // the text says it, too
	}
	return details
}

// fail turns the error of a call into what the peer sees: for tools a result with isError, so that the model can try
// again; a protocol error for everything else.
func (s *Server) fail(ctx context.Context, call *Call, err error) (Result, *jsonrpc.Error) {
	if rpc, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return nil, s.protocolError(ctx, call, rpc)
	}
	call.needs = neededScopes(err)
	coded, isCoded := errors.AsType[CodedError](err)
	if call.needs != nil && !isCoded {
		return nil, insufficientScope(call.needs)
	}
	text, code := s.tell(ctx, call, err)
	details := detailsOf(err)
	if isCoded {
		return nil, &jsonrpc.Error{Code: coded.ErrorCode(), Message: text, Data: details}
	}
	if call.row.method == protocol.MethodToolsCall {
		result := &ToolResult{
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

// protocolError is what the peer sees of a protocol error that user code returned: nil in an error is a failure all the
// same, and data that is no JSON would make the whole answer unreadable.
func (s *Server) protocolError(ctx context.Context, call *Call, err *jsonrpc.Error) *jsonrpc.Error {
	switch {
	case err == nil:
		s.config.logger.ErrorContext(ctx, "mcpkit: the error of a call is a nil *jsonrpc.Error; return nil itself where there is none",
			"ref", call.Ref(), "method", call.row.method, "name", call.name)
		return jsonrpc.Errorf(jsonrpc.CodeInternalError, "internal error (ref %s)", call.Ref())
	case len(err.Data) > 0 && !jsonx.Valid(err.Data):
		s.config.logger.ErrorContext(ctx, "mcpkit: the data of an error is no valid JSON and is left out",
			"ref", call.Ref(), "method", call.row.method, "name", call.name)
		return &jsonrpc.Error{Code: err.Code, Message: err.Message}
	}
	return err
}

// tell returns what err says to the caller, and the code that suits it where a code is needed.
// What the caller is not shown goes to the log under a reference that the caller is given.
func (s *Server) tell(ctx context.Context, call *Call, err error) (text string, code int) {
	if arg, ok := errors.AsType[*reflectx.ArgumentError](err); ok {
		return arg.Error(), jsonrpc.CodeInvalidParams
	}
	if user, ok := errors.AsType[UserMessenger](err); ok {
		return user.UserMessage(), jsonrpc.CodeInternalError
	}
	if isNotFound(err) && call.row.method == protocol.MethodResourcesRead {
		return "not found", jsonrpc.CodeInvalidParams
	}
	if s.config.exposeErrors {
		return err.Error(), jsonrpc.CodeInternalError
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return "the call was cancelled", jsonrpc.CodeInternalError // by the caller, who may hang up; the log need not hear of it
	}
	ref := call.Ref()
	attrs := []any{"ref", ref, "method", call.row.method, "name", call.name, "error", err.Error()}
	if p, ok := errors.AsType[*PanicError](err); ok {
		attrs = append(attrs, slog.String("stack", string(p.Stack)))
	}
	s.config.logger.ErrorContext(ctx, "mcpkit: a call ended with an error that the caller is not shown", attrs...)
	return "internal error (ref " + ref + ")", jsonrpc.CodeInternalError
}

func isNotFound(err error) bool {
	return errors.Is(err, ErrNotFound) || errors.Is(err, fs.ErrNotExist)
}

// invalidParams is a protocol error about the params of a request.
func invalidParams(format string, args ...any) *jsonrpc.Error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, format, args...)
}

// decodeParams decodes the params of req, where absent is {}.
func decodeParams[P any](_ context.Context, req *jsonrpc.Request, v *P) error {
	raw := req.Params
	if raw == nil {
		raw = []byte("{}")
	}
	if err := jsonx.Unmarshal(raw, v); err != nil {
		return invalidParams("the params of %s do not fit: %s", req.Method, describeJSON(err))
	}
	return nil
}

func describeJSON(err error) string {
	if p := jsonx.ErrorPointer(err); p != "" {
		return "wrong type or value at " + p
	}
	return "wrong type or value"
}
