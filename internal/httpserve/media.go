package httpserve

import (
	"net/http"
	"strings"
)

// IsJSON reports whether Content-Type declares a JSON body. Web pages can send most other types to
// another site without a preflight.
func IsJSON(h http.Header) bool {
	values := h["Content-Type"]
	if len(values) != 1 {
		return false
	}
	mediaType, _ := cutParams(values[0])
	return mediaType == "application/json"
}

// cutParams returns a media type without its parameters, in lower case, and the parameters.
func cutParams(s string) (mediaType, params string) {
	mediaType, params, _ = strings.Cut(s, ";")
	return strings.ToLower(strings.TrimSpace(mediaType)), params
}

// Accepts reports which media types the client accepts. A request without Accept accepts both.
func Accepts(h http.Header) (json, stream bool) {
	values := h["Accept"]
	if len(values) == 0 {
		return true, true
	}
	for item := range strings.SplitSeq(strings.Join(values, ","), ",") {
		mediaRange, params := cutParams(item)
		if excluded(params) {
			continue
		}
		switch mediaRange {
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

// excluded reports whether the parameters of a media range exclude it (RFC 9110, section 12.4.2).
func excluded(params string) bool {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if strings.EqualFold(name, "q") {
			return strings.Trim(value, "0.") == ""
		}
	}
	return false
}
