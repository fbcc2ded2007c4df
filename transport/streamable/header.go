package streamable

import (
	"net/http"
	"strings"

	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// Names of header fields in canonical form.
const (
	headerLastEventID = "Last-Event-Id"
	headerVersion     = "Mcp-Protocol-Version"
)

// versionOf returns the protocol version that the header fields of a request name; "" for none.
func versionOf(h http.Header) protocol.Version {
	return protocol.Version(h.Get(headerVersion))
}

// modernHeader reports whether the header fields make a request modern: its version is not legacy.
// The handler responds to an unknown version with those it supports, unless the request has a
// session ID, which modern requests do not.
func modernHeader(h http.Header) bool {
	v := versionOf(h)
	return v != "" && !v.Legacy() && (v.Known() || h.Get(protocol.HeaderSessionID) == "")
}

// isModern reports whether a request is of 2026-07-28 or later, by its header or its body.
func isModern(h http.Header, req *jsonrpc.Request) bool {
	return modernHeader(h) || protocol.IsModern("", req.Param("_meta"))
}

// repeated returns the name of an Mcp-* field that appears twice, or "". A proxy may have looked at
// the other value.
func repeated(h http.Header) string {
	for name, values := range h {
		if len(values) > 1 && strings.HasPrefix(name, "Mcp-") {
			return name
		}
	}
	return ""
}
