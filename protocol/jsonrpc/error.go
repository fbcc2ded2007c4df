package jsonrpc

import (
	"encoding/json"
	"fmt"
)

// Error codes of the JSON-RPC 2.0 specification, section 5.1.
const (
	CodeParseError     = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternalError  = -32603
)

// An Error is a protocol error: the error member of a response.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`       // one short sentence
	Data    json.RawMessage `json:"data,omitzero"` // nil when absent
}

// Errorf returns an error with a code and a formatted message.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error returns the message and the code.
func (e *Error) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }
