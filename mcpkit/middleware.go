package mcpkit

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
)

// A Handler answers one call of any method and version. Its errors become tool errors or protocol
// errors after all middleware has run. Handlers are for [Middleware]; methods may return any Go value.
type Handler func(ctx context.Context, call *Call) (Result, error)

// A Middleware wraps a Handler.
type Middleware func(next Handler) Handler

// Use puts middleware around all methods, including those registered later, and around the middleware
// that is there. The first of mw is the outermost. Running requests keep their chain.
//
// Use panics if a middleware is nil, since it might have been a guard.
func (s *Server) Use(mw ...Middleware) {
	refuseNil("Use", mw)
	s.chain.mu.Lock()
	defer s.chain.mu.Unlock()
	s.chain.set(wrap(s.chain.get(), mw))
}

// A chain is the middleware of a server around its innermost handler.
type chain struct {
	mu      sync.Mutex // serialises changes
	handler atomic.Pointer[Handler]
}

func (c *chain) set(h Handler) { c.handler.Store(&h) }

// get returns the chain. Calls that have begun keep theirs.
func (c *chain) get() Handler { return *c.handler.Load() }

func refuseNil(where string, mw []Middleware) {
	if slices.ContainsFunc(mw, func(m Middleware) bool { return m == nil }) {
		panic("mcpkit: " + where + ": a middleware is nil; leave it out")
	}
}

// wrap puts middleware around h. Middleware that returns no handler might have been a guard: calls of
// the handler then panic, so none gets through.
func wrap(h Handler, use []Middleware) Handler {
	for _, m := range slices.Backward(use) {
		h = traced(middlewareName(m), m(h))
	}
	return h
}

// withinKey is the key of the handler that a context brings to the inside of middleware: that of a
// *Server, or of Around of an *entry.
type withinKey struct{ of any }

// broughtTo returns the handler that runs the one that the context brings.
func broughtTo(of any) Handler {
	return func(ctx context.Context, call *Call) (Result, error) {
		h, ok := ctx.Value(withinKey{of}).(Handler)
		if !ok {
			return nil, errors.New("mcpkit: middleware passed on a context that does not derive from its own")
		}
		return h(ctx, call)
	}
}

// wrapAround gives the entry the middleware of Around.
func (e *entry) wrapAround(mw []Middleware) {
	if e.around = nil; len(mw) > 0 {
		e.around = wrap(broughtTo(e), mw)
	}
}

// inAround returns h inside the middleware of Around.
func (e *entry) inAround(h Handler) Handler {
	if e.around == nil {
		return h
	}
	return func(ctx context.Context, call *Call) (Result, error) {
		return e.around(context.WithValue(ctx, withinKey{e.plain}, h), call)
	}
}

// dispatch is the innermost handler: the method itself, or what a call of a server that s is mounted
// in does here. It turns a panic into an error, so that all middleware sees it.
func (s *Server) dispatch(ctx context.Context, call *Call) (result Result, err error) {
	defer recoverAs(&err)
	if call.server != s {
		return broughtTo(s)(ctx, call)
	}
	if call.refusal != nil {
		return nil, call.refusal
	}
	if call.row.handle == nil {
		return call.entry.answer(ctx, call)
	}
	return call.row.handle(ctx, call)
}

// A PanicError is the error of a method or a middleware that panicked.
type PanicError struct {
	Value any
	Stack []byte // of debug.Stack
}

// Error returns the panic's value. The stack is for the log.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

func panicError(v any) error { return &PanicError{Value: v, Stack: debug.Stack()} }

func recoverAs(err *error) {
	if v := recover(); v != nil {
		*err = panicError(v)
	}
}
