// Package jsonrpc reads and writes JSON-RPC 2.0 messages as MCP uses them.
//
// A message is decoded once and strictly: exact member names, no duplicates, valid UTF-8, a limit
// on depth, no data after the value. An ID is sent back exactly as it was received. The package
// does not know MCP's methods.
package jsonrpc

import (
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// A Request is a request, or a notification when its ID is absent.
type Request struct {
	ID     ID     // absent for a notification
	Method string // "tools/call"
	// Params is the params object; nil if absent. It must not be changed.
	Params json.RawMessage
}

// IsNotification reports whether r is a notification, which gets no response.
func (r *Request) IsNotification() bool { return !r.ID.IsValid() }

// Param returns the member of the params object called name, or nil if it is absent. If the peer
// sent null, it returns the text null. The value is part of Params and must not be changed.
func (r *Request) Param(name string) json.RawMessage { return jsonx.Member(r.Params, name) }

// A Response is the response to a request: a result or an error.
type Response struct {
	ID ID // absent if the request's ID could not be read
	// Result is the result as JSON; nil when Error or Stream is set. It must not be changed.
	Result json.RawMessage
	Error  *Error
	// Stream writes the result if it is too large to hold in Result. It is called at most once, and
	// must return soon after the context of the request is done. If it returns an error, the
	// message stays incomplete; [Response.Broken] says what error the caller gets, if the transport
	// can still send one.
	Stream func(w io.Writer) error
	// MaxHeld limits the bytes of the result of Stream for a transport that sends only complete
	// messages, so that it has to hold the result in memory. A larger result becomes an error. Zero
	// means 16 MiB.
	MaxHeld int
	// HTTPStatus is the status of the HTTP response, if its headers were not sent before. Zero
	// means 200. HTTPStatus is not part of the message.
	HTTPStatus int
	// RetryAfter is how long the caller should wait before it retries. Over HTTP it is sent in the
	// header Retry-After, if the headers were not sent before. Zero means no header. RetryAfter is
	// not part of the message.
	RetryAfter time.Duration
}

// Broken returns the error that a transport sends instead of r if Stream returned err. If err is or
// wraps an [*Error], Broken returns that. The text of any other error may not be for the caller, so
// Broken returns "internal error".
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
