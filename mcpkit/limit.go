package mcpkit

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/limits"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/result"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/timelimit"
	"github.com/mcpkit/mcpkit-go/reflectx"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A method is the method of an entry.
type method struct {
	fn      *reflectx.Func
	outputs *result.Outputs
	decode  func(ctx context.Context, call *Call) (args reflect.Value, err error)
	result  func(ctx context.Context, call *Call, values []reflect.Value) (Result, error)
}

// answer calls the method with the arguments of the call. The time limit is for code of the program:
// the method, what is injected into it, and what is read of its results.
func (m *method) answer(ctx context.Context, call *Call) (Result, error) {
	args, err := m.decode(ctx, call)
	if err != nil {
		return nil, err
	}
	return timelimit.Run(call.limit, func() (Result, error) {
		values, err := m.fn.Call(ctx, args)
		if err != nil {
			return nil, err
		}
		return m.result(ctx, call, values)
	})
}

// limited runs h within the time limit of the call.
func limited(h Handler) Handler {
	return func(ctx context.Context, call *Call) (Result, error) {
		return timelimit.Run(call.limit, func() (Result, error) { return h(ctx, call) })
	}
}

// A limitedCall is a call for its time limit.
type limitedCall struct{ *Call }

// Late returns the error of a call whose time is up.
func (c limitedCall) Late(after time.Duration) error { return &TimeoutError{After: after} }

// Begin counts the call as one that runs until [Call.leave], unless too many do, and reserves as much
// memory as the last results took. Runs of tasks have limits of their own.
func (c limitedCall) Begin() error {
	if c.load != nil || c.run != nil || c.row.open {
		return nil
	}
	l, limit := c.row.load, c.server.config.maxRunning
	if c.entry != nil {
		l = c.entry.limits.load
	}
	if n := int(l.running.Add(1)); limit > 0 && n > limit {
		l.running.Add(-1)
		return &BusyError{Limit: limit}
	}
	c.load = l
	return c.reserve(int(l.memory.Load()))
}

// leave undoes Begin.
func (c *Call) leave() { c.load.running.Add(-1) }

// Failed returns the error of a method that panicked.
func (c limitedCall) Failed(v any) error { return panicError(v) }

// Overdue counts and logs a method that did not return in time.
func (c limitedCall) Overdue(after time.Duration) {
	n := c.server.overdue.Add(1)
	c.log(slog.LevelWarn, "mcpkit: a method did not return in time; its caller got a timeout error",
		"timeout", after.String(), "overdue", n)
}

// Returned counts an overdue method that has returned.
func (c limitedCall) Returned() { c.server.overdue.Add(-1) }

// Panicked logs the panic of a clean-up.
func (c limitedCall) Panicked(v any) {
	c.logError("mcpkit: a clean-up panicked", panicError(v))
}

// A load is what the calls of a tool, prompt, resource or method take.
type load struct {
	running atomic.Int64
	memory  atomic.Int64 // bytes of the last results with their encodings
}

// beginQuestion stops the time of the call until endQuestion. The call does not count as running
// meanwhile.
func (c *Call) beginQuestion() {
	if c.limit.Pause() && c.load != nil {
		c.load.running.Add(-1)
	}
}

func (c *Call) endQuestion() {
	if c.limit.Resume() && c.load != nil {
		c.load.running.Add(1)
	}
}

// reserve reserves n bytes for the result, in place of those reserved before, if the transport limits
// them.
func (c *Call) reserve(n int) error {
	if r, ok := c.peer.(transport.Reserver); ok {
		return r.Reserve(int64(n))
	}
	return nil
}

// reserveFor reserves memory for a result and its encoding.
func (c *Call) reserveFor(r Result) error {
	n, _ := SizeOf(r)
	if c.load != nil {
		c.load.memory.Store(max(int64(2*n), c.load.memory.Load()*7/8))
	}
	return c.reserve(2 * n)
}

// A BusyError means that as many calls are running as a limit allows, for example [MaxRunning].
type BusyError struct{ Limit int }

// Error asks the caller to try again.
func (e *BusyError) Error() string {
	return fmt.Sprintf("too many calls at a time (%d); try again when others are done", e.Limit)
}

// UserMessage returns the same text.
func (e *BusyError) UserMessage() string { return e.Error() }

// ErrorDetails returns {"limit": n}, for programs.
func (e *BusyError) ErrorDetails() map[string]any { return map[string]any{"limit": e.Limit} }

// RetryAfter returns one second. When another call will end is not known.
func (e *BusyError) RetryAfter() time.Duration { return time.Second }

// Overdue returns the number of methods that still run although their calls are over: see
// [ToolTimeout].
func (s *Server) Overdue() int { return int(s.overdue.Load()) }

// A RateLimitError means that a caller made too many calls. Its text has a retry time for models;
// programs find {"retryAfterMs": n} in the data of the protocol error, or in the _meta of the tool
// error as [MetaErrorDetails].
//
// The HTTP status is not 429: clients would take it for a failure of the connection and drop the
// message. The header Retry-After is set for proxies and programs.
type RateLimitError struct {
	After time.Duration // how long to wait
}

// Error returns the text with the time to wait.
func (e *RateLimitError) Error() string {
	return fmt.Sprintf("too many calls; try again in %s", e.rounded())
}

// UserMessage returns the same text.
func (e *RateLimitError) UserMessage() string { return e.Error() }

// RetryAfter returns After.
func (e *RateLimitError) RetryAfter() time.Duration { return e.After }

// ErrorDetails returns {"retryAfterMs": n}.
func (e *RateLimitError) ErrorDetails() map[string]any {
	return map[string]any{"retryAfterMs": e.rounded().Milliseconds()}
}

// rounded returns After rounded up to milliseconds.
func (e *RateLimitError) rounded() time.Duration {
	return (e.After + time.Millisecond - 1).Truncate(time.Millisecond)
}

// caller identifies a caller: by principal, or by address if callers are unauthenticated. Without
// both, all callers are one.
type caller struct{ principal, address string }

func callerOf(call *Call) caller {
	if p := call.Principal(); p != nil {
		return caller{principal: p.Key()}
	}
	return caller{address: call.Address()}
}

// limitRate limits how many calls of the entry each caller may begin.
func (e *entry) limitRate() {
	if e.Rate.Burst == 0 {
		return
	}
	e.limits.calls = new(limits.NewRounds[caller](e.Rate.PerSecond, e.Rate.Burst))
	h := e.run
	e.run = func(ctx context.Context, call *Call) (Result, error) {
		if call.run == nil { // Detach has counted the call of a run
			if err := e.count(call); err != nil {
				return nil, err
			}
		}
		return h(ctx, call)
	}
}

// count counts the call in the limit of its caller, if the entry has one.
func (e *entry) count(call *Call) error {
	if e.limits.calls == nil {
		return nil
	}
	if s := call.server; s.fleet != nil {
		s.warned.ofRates.Do(func() { s.fleet.Logger().Warn(limits.PerReplica) })
	}
	if wait := e.limits.calls.Take(callerOf(call), call.Ref(), call.Round()); wait > 0 {
		return &RateLimitError{After: wait}
	}
	return nil
}
