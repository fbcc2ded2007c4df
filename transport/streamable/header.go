package streamable

import (
	"net/http"
	"strings"

	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
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

// modernHeader reports whether the header fields alone make a request modern: its version is none of the legacy
// ones. An unknown version is left to the handler, which answers with those it supports, unless
// a session, which modern requests do not have, says where the client comes from.
func modernHeader(h http.Header) bool {
	v := protocol.Version(field(h, headerVersion))
	if v == "" || v.Legacy() {
		return false
	}
	return v.Known() || field(h, headerSession) == ""
}

// isModern reports whether a request belongs to 2026-07-28 and later: by its header or by its own word.
func isModern(h http.Header, req *jsonrpc.Request) bool {
	return modernHeader(h) || protocol.IsModern("", req)
}

// repeated returns the name of an Mcp-* field that came in two lines, and "" where there is none.
// Whoever stands between may have looked at the other line.
func repeated(h http.Header) string {
	for name, values := range h {
		if len(values) > 1 && strings.HasPrefix(name, mcpPrefix) {
			return name
		}
	}
	return ""
}
