package httpserve

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// IsJSON reports whether Content-Type declares a JSON body. Web pages can send most other types to
// another site without a preflight.
func IsJSON(h http.Header) bool {
	values := h["Content-Type"]
	if len(values) != 1 {
		return false
	}
	mediaType, _, _ := mime.ParseMediaType(values[0]) // parameters do not matter
	return mediaType == "application/json"
}

// Accepts reports which media types the client accepts. A request without Accept accepts both.
func Accepts(h http.Header) (json, stream bool) {
	values := h["Accept"]
	if len(values) == 0 {
		return true, true
	}
	for item := range strings.SplitSeq(strings.Join(values, ","), ",") {
		mediaRange, params, _ := mime.ParseMediaType(item)
		if q, err := strconv.ParseFloat(params["q"], 64); err == nil && q == 0 {
			continue // excluded (RFC 9110, section 12.4.2)
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
