package protocol

import (
	"errors"
	"fmt"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// Error codes of MCP, in addition to those of JSON-RPC.
const (
	CodeResourceNotFound           = -32002 // legacy; modern servers send invalid params
	CodeHeaderMismatch             = -32020 // modern: a header is missing or contradicts the body
	CodeMissingClientCapability    = -32021 // modern: the request needs a capability that the client did not declare
	CodeUnsupportedProtocolVersion = -32022 // modern: the server does not speak the version of the request
	CodeURLElicitationRequired     = -32042 // 2025-11-25 only
	CodeUserRejected               = -1     // legacy: the user refused a server request (client/sampling)
)

// HeaderMismatch returns the error for a header that is missing or contradicts the body.
func HeaderMismatch(format string, args ...any) *jsonrpc.Error {
	return jsonrpc.Errorf(CodeHeaderMismatch, format, args...)
}

// MissingClientCapabilityData is the data of a [CodeMissingClientCapability] error.
type MissingClientCapabilityData struct {
	RequiredCapabilities ClientCapabilities `json:"requiredCapabilities"`
}

// MissingClientCapability returns the error that tells a client which capabilities it would have to
// declare.
func MissingClientCapability(required ClientCapabilities, format string, args ...any) *jsonrpc.Error {
	return withData(CodeMissingClientCapability, MissingClientCapabilityData{required}, format, args...)
}

// UnsupportedProtocolVersionData is the data of a [CodeUnsupportedProtocolVersion] error.
type UnsupportedProtocolVersionData struct {
	Supported []Version `json:"supported"`
	Requested Version   `json:"requested"`
}

// UnsupportedProtocolVersion returns the error that lists the supported versions.
func UnsupportedProtocolVersion(requested Version, supported []Version) *jsonrpc.Error {
	return withData(CodeUnsupportedProtocolVersion, UnsupportedProtocolVersionData{supported, requested},
		"unsupported protocol version %q", requested)
}

// ResourceNotFoundData is the data of the error for a resource that does not exist.
type ResourceNotFoundData struct {
	URI string `json:"uri"`
}

// ResourceNotFound returns the error for a resource that does not exist: invalid params for a
// modern peer, [CodeResourceNotFound] for a legacy one.
func ResourceNotFound(v Version, uri string) *jsonrpc.Error {
	code := CodeResourceNotFound
	if v.Modern() {
		code = jsonrpc.CodeInvalidParams
	}
	return withData(code, ResourceNotFoundData{uri}, "resource %q not found", uri)
}

// IsResourceNotFound reports whether err is or wraps a [jsonrpc.Error] that means that a resource
// does not exist, in any protocol version. An error -32602 without a URI in its data does not count,
// since something else may be wrong with the params.
func IsResourceNotFound(err error) bool {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && e != nil && (e.Code == CodeResourceNotFound ||
		e.Code == jsonrpc.CodeInvalidParams && jsonx.Member(e.Data, "uri") != nil)
}

// URLElicitationRequiredData is the data of a [CodeURLElicitationRequired] error.
type URLElicitationRequiredData struct {
	Elicitations []ElicitParams `json:"elicitations"` // in URL mode
}

func withData(code int, data any, format string, args ...any) *jsonrpc.Error {
	e := &jsonrpc.Error{Code: code, Message: fmt.Sprintf(format, args...)}
	raw, err := jsonx.Marshal(data)
	if err != nil {
		// Only invalid raw JSON in the caller's capabilities or schemas leads here.
		return jsonrpc.Errorf(jsonrpc.CodeInternalError, "data of error %d: %v", code, err)
	}
	e.Data = raw
	return e
}
