package mcpkit

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"runtime"
	"slices"
	"strings"
)

// An Observer sees what happens inside calls. It is for tools that show developers how a server
// works; [Middleware] is enough for logs and metrics. Each function may be nil. They are called on
// the goroutines of calls, also concurrently, and the call waits for them.
type Observer struct {
	// Call is called when a call begins, before its middleware. The returned end, which may be nil,
	// gets what the outermost handler returned. Calls without a valid envelope, and calls of methods
	// that the server does not offer, are not seen. A run of a task is a call: see [Call.Run].
	Call func(ctx context.Context, call *Call) (end func(result Result, err error))

	// Span is called when the handler of a middleware begins, and when a method of a service begins.
	// name is the function that returned the middleware, such as "middleware.Logging", or the method
	// with its place in the source. The returned end, which may be nil, gets the error of the
	// handler. The span of a method that is overdue ends after its call.
	Span func(call *Call, name string) (end func(err error))

	// Once is called when [Once] has a value. kept reports whether it is from an earlier round or
	// run, so that its function did not run.
	Once func(call *Call, key string, kept bool)

	// Log is called with each record of [Call.Logger], of all levels.
	Log func(call *Call, r slog.Record)

	// Progress is called with each report of [Call.Progress], also of those that the client did not
	// ask for.
	Progress func(call *Call, done, total float64, message string)
}

// Observe calls the functions of o for calls that begin from now on, until stop is called. Calls in
// flight are not seen.
func (s *Server) Observe(o Observer) (stop func()) {
	added := &o
	s.setObservers(func(all []*Observer) []*Observer { return append(slices.Clip(all), added) })
	return func() {
		s.setObservers(func(all []*Observer) []*Observer {
			return slices.DeleteFunc(slices.Clone(all), func(o *Observer) bool { return o == added })
		})
	}
}

func (s *Server) setObservers(change func([]*Observer) []*Observer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*Observer
	if old := s.observers.Load(); old != nil {
		all = *old
	}
	if all = change(all); len(all) == 0 {
		s.observers.Store(nil)
		return
	}
	s.observers.Store(&all)
}

// errPanicked is the error that an observer gets of a handler that panicked.
var errPanicked = errors.New("the handler panicked")

// observing returns the observers of the call.
func (c *Call) observing() []*Observer {
	if c.observers == nil {
		return nil
	}
	return *c.observers
}

// observed runs the chain for a call that has observers.
func (s *Server) observed(call *Call) (result Result, err error) {
	var ends []func(Result, error)
	for _, o := range call.observing() {
		if o.Call == nil {
			continue
		}
		if end := o.Call(call.ctx, call); end != nil {
			ends = append(ends, end)
		}
	}
	defer func() {
		for _, end := range slices.Backward(ends) {
			end(result, err)
		}
	}()
	return s.chained(call)
}

// spanned returns h, which tells observers when it begins and ends.
func spanned(name string, h Handler) Handler {
	return func(ctx context.Context, call *Call) (Result, error) {
		if call.observers == nil {
			return h(ctx, call)
		}
		return call.span(ctx, name, h)
	}
}

// span runs h and tells the observers when it begins and ends.
func (c *Call) span(ctx context.Context, name string, h Handler) (result Result, err error) {
	var ends []func(error)
	for _, o := range c.observing() {
		if o.Span == nil {
			continue
		}
		if end := o.Span(c, name); end != nil {
			ends = append(ends, end)
		}
	}
	err = errPanicked
	defer func() {
		for _, end := range slices.Backward(ends) {
			end(err)
		}
	}()
	result, err = h(ctx, c)
	return result, err
}

// observeOnce tells the observers of a value of Once.
func (c *Call) observeOnce(key string, kept bool) {
	for _, o := range c.observing() {
		if o.Once != nil {
			o.Once(c, key, kept)
		}
	}
}

// observeLog tells the observers of a record.
func (c *Call) observeLog(r slog.Record) {
	for _, o := range c.observing() {
		if o.Log != nil {
			o.Log(c, r)
		}
	}
}

// observeProgress tells the observers of a report.
func (c *Call) observeProgress(done, total float64, message string) {
	for _, o := range c.observing() {
		if o.Progress != nil {
			o.Progress(c, done, total, message)
		}
	}
}

// middlewareName returns the function that made m: "middleware.Logging" for
// "example.com/middleware.Logging.func1".
func middlewareName(m Middleware) string {
	f := runtime.FuncForPC(reflect.ValueOf(m).Pointer())
	if f == nil {
		return "middleware"
	}
	name := f.Name()
	name = name[strings.LastIndex(name, "/")+1:]
	for {
		outer, last, ok := cutLast(name, ".")
		if !ok || strings.Trim(strings.TrimPrefix(last, "func"), "0123456789") != "" {
			return strings.TrimSuffix(name, "-fm")
		}
		name = outer
	}
}

// cutLast is strings.Cut at the last sep.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
