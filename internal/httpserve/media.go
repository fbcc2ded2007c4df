package httpserve

import (
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
	mediaType, _, _ := strings.Cut(values[0], ";")
	return strings.EqualFold(strings.TrimSpace(mediaType), "application/json")
}

// Accepts reports which media types the client accepts. A request without Accept accepts both.
func Accepts(h http.Header) (json, stream bool) {
	values := h["Accept"]
	if len(values) == 0 {
		return true, true
	}
	for _, value := range values {
		for item := range strings.SplitSeq(value, ",") {
			mediaRange, params, _ := strings.Cut(item, ";")
			if hasZeroWeight(params) {
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

// hasZeroWeight reports whether the parameters of a media range exclude it (RFC 9110, section
// 12.4.2).
func hasZeroWeight(params string) bool {
	for p := range strings.SplitSeq(params, ";") {
		name, weight, _ := strings.Cut(p, "=")
		if strings.EqualFold(strings.TrimSpace(name), "q") {
			q, err := strconv.ParseFloat(strings.TrimSpace(weight), 64)
			return err == nil && q == 0
		}
	}
	return false
}
