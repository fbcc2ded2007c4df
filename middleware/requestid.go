package middleware

import "github.com/mcpkit/mcpkit-go/mcpkit"

// RequestID returns the name of a call in logs: the X-Request-Id of the HTTP request where a proxy or a framework gave one,
// else the call's own reference, which is also what callers are told of internal errors.
func RequestID(call *mcpkit.Call) string {
	if id := call.Header("X-Request-Id"); id != "" && len(id) <= 128 {
		return id
	}
	return call.Ref()
}
