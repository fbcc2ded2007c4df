package middleware

import (
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// RequestID returns the ID of a call in logs: the X-Request-Id of the HTTP request if there is one,
// or else [mcpkit.Call.Ref], which callers also get with internal errors.
func RequestID(call *mcpkit.Call) string {
	if id := call.Header("X-Request-Id"); id != "" && len(id) <= 128 {
		return id
	}
	return call.Ref()
}

// TraceID returns the W3C trace ID that the client sent in _meta or in the HTTP header traceparent.
// It returns "" if there is none or it is malformed.
func TraceID(call *mcpkit.Call) string {
	parent := jsonx.String(call.Meta(protocol.MetaTraceParent))
	if parent == "" {
		parent = call.Header("Traceparent")
	}
	// Version, trace id, parent id, flags:
	// "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".
	if len(parent) < 55 || parent[2] != '-' || parent[35] != '-' {
		return ""
	}
	id := parent[3:35]
	if strings.Trim(id, "0123456789abcdef") != "" || strings.Trim(id, "0") == "" {
		return ""
	}
	return id
}
