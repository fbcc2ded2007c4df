package httpserve

import "net/http"

// Flusher returns what sends on the bytes written to w so far, and nil where they cannot be.
//
// Writers wrap each other, and some that have a Flush method panic where the one below has none
// (echo.Response does): the innermost decides. It is also the one that knows whether writing failed.
func Flusher(w http.ResponseWriter) func() error {
	inner := w
	for {
		wrapper, ok := inner.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		below := wrapper.Unwrap()
		if below == nil {
			return nil
		}
		inner = below
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
