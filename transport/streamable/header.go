package streamable

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/httpguard"
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

// isJSON reports whether the body of a request is declared to be JSON. Anything else could be sent by a form
// or a script of a foreign page without asking first.
func isJSON(h http.Header) bool {
	values := h["Content-Type"]
	if len(values) != 1 {
		return false
	}
	if values[0] == "application/json" {
		return true
	}
	mediaType, _, _ := strings.Cut(values[0], ";")
	return strings.EqualFold(strings.TrimSpace(mediaType), "application/json")
}

// accepts says which of the two replies a client takes. A client that says nothing takes both.
func accepts(h http.Header) (json, stream bool) {
	values := h["Accept"]
	if len(values) == 0 {
		return true, true
	}
	for _, value := range values {
		if value == "application/json, text/event-stream" {
			return true, true
		}
		for item := range strings.SplitSeq(value, ",") {
			mediaRange, params, _ := strings.Cut(item, ";")
			if refused(params) {
				continue
			}
			switch strings.ToLower(strings.TrimSpace(mediaRange)) {
			case "*/*":
				json, stream = true, true
			case "application/json", "application/*":
				json = true
			case "text/event-stream", "text/*":
				stream = true
			}
		}
	}
	return json, stream
}

// refused reports whether the parameters of a media range give it the weight zero (RFC 9110, section 12.4.2).
func refused(params string) bool {
	for p := range strings.SplitSeq(params, ";") {
		name, weight, _ := strings.Cut(p, "=")
		if strings.EqualFold(strings.TrimSpace(name), "q") {
			q, err := strconv.ParseFloat(strings.TrimSpace(weight), 64)
			return err == nil && q == 0
		}
	}
	return false
}

// quote quotes what a peer sent, cut to a length that is fit for messages.
func quote(s string) string { return httpguard.Quote(s) }
