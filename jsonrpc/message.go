// Package jsonrpc reads and writes JSON-RPC 2.0 messages as MCP uses them.
//
// A message is decoded once and strictly: exact member names, no duplicates, valid UTF-8, a bounded
// depth, nothing after the value. IDs are kept as the bytes that came and are echoed as they are.
// The package knows nothing of MCP's methods.
package jsonrpc

import (
	"encoding/json"
	"errors"
	"io"
	"time"
)

// A Request is a request, or a notification when its ID is absent.
type Request struct {
	ID     ID     // absent for a notification
	Method string // "tools/call"
	// Params is the params object as it came; nil when absent. It stays valid as long as anybody
	// holds it and must not be changed.
	Params json.RawMessage

	params members // the top-level members of Params, found while decoding
}

// IsNotification reports whether nobody waits for an answer.
func (r *Request) IsNotification() bool { return !r.ID.IsValid() }

// A Response is the answer to a request: a result or an error.
type Response struct {
	ID ID // absent when the request's could not be read
	// Result is the result as JSON; nil when Error or Stream is set.
	Result json.RawMessage
	Error  *Error
	// Stream writes the result instead of Result, for one too large to hold. It is called at most
	// once, and comes back soon after the context of the request ended. An error ends the message
	// where it is, unfinished; what the caller may still be told of it, where there is a way, says
	// [Response.Broken].
	Stream func(w io.Writer) error
	// HTTPStatus is the status with which a binding over HTTP answers, when nothing was sent
	// before. Zero means 200. It is not part of the message.
	HTTPStatus int
	// RetryAfter is how long the caller should wait before it tries again. A binding over HTTP says
	// so in the header Retry-After, when nothing was sent before. Zero means nothing. It is not
	// part of the message.
	RetryAfter time.Duration
}

// Broken is the error that a binding answers in the place of r when its Stream came back with err:
// err itself where it is or wraps an [*Error], which is for the caller. Any other's text is not,
// and becomes "internal error".
func (*Response) Broken(err error) *Error {
	if rpc, ok := errors.AsType[*Error](err); ok && rpc != nil {
		return rpc
	}
	return Errorf(CodeInternalError, "internal error")
}

// A Message is one decoded message: exactly one field is set.
type Message struct {
	Request  *Request
	Response *Response
}
