package httpserve

import (
	"net/http"
	"regexp"
	"strings"
)

// IsJSON reports whether Content-Type declares a JSON body. Web pages can send most other types to
// another site without a preflight.
func IsJSON(h http.Header) bool {
	values := h["Content-Type"]
	return len(values) == 1 && mediaType(values[0]) == "application/json"
}

// mediaType returns a media type without its parameters, in lower case.
func mediaType(s string) string {
	s, _, _ = strings.Cut(s, ";")
	return strings.ToLower(strings.TrimSpace(s))
}

// excluded matches a media range with a weight of 0 (RFC 9110, section 12.4.2).
var excluded = regexp.MustCompile(`;\s*[qQ]=0(\.0*)?\s*(;|$)`)

// Accepts reports which media types the client accepts. A request without Accept accepts both.
func Accepts(h http.Header) (json, stream bool) {
	values := h["Accept"]
	if len(values) == 0 {
		return true, true
	}
	for item := range strings.SplitSeq(strings.Join(values, ","), ",") {
		if excluded.MatchString(item) {
			continue
		}
		switch mediaType(item) {
		case "*/*":
			json, stream = true, true
		case "application/json", "application/*":
			json = true
		case "text/event-stream", "text/*":
			stream = true
		}
	}
	return json, stream
}
