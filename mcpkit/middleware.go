package mcpkit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"time"
)

// A Handler answers one call: a request of any method of any protocol version. Errors become tool errors or protocol errors
// after the whole chain.
type Handler func(ctx context.Context, call *Call) (Result, error)

// A Middleware wraps a Handler.
type Middleware func(next Handler) Handler

// Use puts middleware around every method, also of what is registered later. The first is the outermost; what an earlier
// Use gave stays outside of what a later one gives. Requests that are being handled keep the chain they began with.
//
// A middleware that is nil, and perhaps was to be a guard, is a mistake of the program that must not pass: Use panics, and puts
// nothing on.
func (s *Server) Use(mw ...Middleware) {
	if err := checkMiddleware("Use", mw); err != nil {
		panic(err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	use := append(slices.Clip(s.use), mw...)
	chain := chainOf(use)
	s.use = use
	s.hasMiddleware.Store(len(s.use) > 0)
	s.chain.Store(&chain)
}

func checkMiddleware(where string, mw []Middleware) error {
	for i, m := range mw {
		if m == nil {
			return fmt.Errorf("mcpkit: %s: middleware %d of %d is nil", where, i+1, len(mw))
		}
	}
	return nil
}

// chainOf puts middleware around the methods.
func chainOf(use []Middleware) Handler {
	h := Handler(dispatch)
	for i := len(use) - 1; i >= 0; i-- {
		if h = use[i](h); h == nil {
			h = refuseAll(fmt.Errorf("mcpkit: middleware %d of %d returned no handler", i+1, len(use)))
		}
	}
	return h
}

func refuseAll(err error) Handler {
	return func(context.Context, *Call) (Result, error) { return nil, err }
}

// dispatch is the innermost handler: the method itself. A panic ends here as an error, so that every middleware sees it.
func dispatch(ctx context.Context, call *Call) (result Result, err error) {
	defer recoverAs(&err)
	if call.refusal != nil {
		return nil, call.refusal
	}
	if call.row.overdue != nil {
		return call.attend(ctx, call.row.handle)
	}
	return call.row.handle(ctx, call)
}

// A PanicError is what a panic of a method or a middleware becomes.
type PanicError struct {
	Value any
	Stack []byte
}

// Error returns the panic's value; the stack is for the log.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

func recoverAs(err *error) {
	if v := recover(); v != nil {
		*err = &PanicError{Value: v, Stack: debug.Stack()}
	}
}

// ErrTimeout is what a [TimeoutError] is, the cause with which a method's context ends when its time is over.
var ErrTimeout = errors.New("mcpkit: the call took too long")

// A TimeoutError says that a call was given up because it took too long. It is shown to the caller.
type TimeoutError struct{ After time.Duration }

// Error says after how long.
func (e *TimeoutError) Error() string { return "timed out after " + e.After.String() }

// UserMessage is the same text: it is meant for the caller.
func (e *TimeoutError) UserMessage() string { return e.Error() }

// Is reports whether target is context.DeadlineExceeded or ErrTimeout.
func (e *TimeoutError) Is(target error) bool {
	return target == context.DeadlineExceeded || target == ErrTimeout
}

// refDigits are those of base 32 (RFC 4648).
const refDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"

// newRef returns a short random name for one call, to find it in the log. It is no secret.
func newRef() string {
	var ref [10]byte
	bits := rand.Uint64()
	for i := range ref {
		ref[i] = refDigits[bits%32]
		bits /= 32
	}
	return string(ref[:])
}
