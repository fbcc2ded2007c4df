package httpserve

import "net/http"

// Flusher returns a function that flushes w, or nil if w cannot flush.
//
// Writers wrap each other, and some have a Flush method that panics if the writer below has none
// (echo.Response does). So the innermost writer decides, which also knows whether a write failed.
func Flusher(w http.ResponseWriter) func() error {
	inner := innermost(w)
	if inner == nil {
		return nil
	}
	last := flushMethod(inner)
	if last == nil {
		return nil
	}
	first := flushMethod(w)
	if inner == w || first == nil {
		return http.NewResponseController(w).Flush
	}
	return func() error {
		if err := first(); err != nil {
			return err
		}
		return last()
	}
}

func flushMethod(w http.ResponseWriter) func() error {
	switch f := w.(type) {
	case interface{ FlushError() error }:
		return f.FlushError
	case http.Flusher:
		return func() error { f.Flush(); return nil }
	}
	return nil
}

// innermost returns the writer below all that wrap it; nil if one of them wraps none.
func innermost(w http.ResponseWriter) http.ResponseWriter {
	for {
		wrapper, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		if w = wrapper.Unwrap(); w == nil {
			return nil
		}
	}
}
