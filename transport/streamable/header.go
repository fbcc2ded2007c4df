package streamable

import (
	"net/http"
	"strings"

	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// The names of header fields as net/http keeps them in its map.
const (
	headerVersion     = "Mcp-Protocol-Version"
	headerSession     = "Mcp-Session-Id"
	headerLastEventID = "Last-Event-Id"
	mcpPrefix         = "Mcp-"
)

func field(h http.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// modernHeader reports whether the header fields make a request modern: its version is not legacy.
// The handler responds to an unknown version with those it supports, unless the request has a
// session ID, which modern requests do not.
func modernHeader(h http.Header) bool {
	v := protocol.Version(field(h, headerVersion))
	if v == "" || v.Legacy() {
		return false
	}
	return v.Known() || field(h, headerSession) == ""
}

// isModern reports whether a request is of 2026-07-28 or later, by its header or its body.
func isModern(h http.Header, req *jsonrpc.Request) bool {
	return modernHeader(h) || protocol.IsModern("", req)
}

// repeated returns the name of an Mcp-* field that appears twice, or "". A proxy may have looked at
// the other value.
func repeated(h http.Header) string {
	for name, values := range h {
		if len(values) > 1 && strings.HasPrefix(name, mcpPrefix) {
			return name
		}
	}
	return ""
}
