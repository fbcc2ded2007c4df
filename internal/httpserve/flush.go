package httpserve

import "net/http"

// Flusher returns a function that flushes w, or nil if w cannot flush. The innermost writer decides
// that: some that wrap another have a Flush method that panics if the one below has none
// (echo.Response does).
func Flusher(w http.ResponseWriter) func() error {
	inner := w
	for {
		wrapper, ok := inner.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		inner = wrapper.Unwrap()
	}
	switch inner.(type) {
	case http.Flusher, interface{ FlushError() error }:
		return http.NewResponseController(w).Flush
	}
	return nil
}
