package mcpkit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/limits"
	"github.com/mcpkit/mcpkit-go/transport"
)

// grace is how long a method may take to return when the time is up.
const grace = 100 * time.Millisecond

// errExited is the error of a method that called runtime.Goexit, as testing.T.FailNow does.
var errExited = errors.New("the method ended its goroutine")

// A timeLimit is the context of a call, its time limit and its clean-ups. Each call has one. It is safe
// for concurrent use.
//
// It ends with the request, when the time is up, or when everything is done: the last byte of the
// result was written, and all methods of the call have returned. Then the clean-ups run.
type timeLimit struct {
	context.Context // derives from request
	cancel          context.CancelCauseFunc
	request         context.Context
	call            *Call

	mu       sync.Mutex
	answered bool     // the last byte of the result was written
	running  int      // methods that have not returned
	paused   int      // how many questions are open
	cleanups []func() // called at the end
	returns  []func() // called when no method runs

	deadline  time.Time     // zero: none
	pausedAt  time.Time     // when the first of the open questions began
	timeout   time.Duration // what set the deadline
	timer     *time.Timer   // set with deadline
	late      error         // set when the time is up, even if the request had ended before
	graceOver chan struct{} // set with deadline; closed when methods that have not returned are overdue
}

// Deadline returns the earlier deadline of the request and of the call. The call has none while it
// is paused.
func (l *timeLimit) Deadline() (time.Time, bool) {
	l.mu.Lock()
	own := l.deadline
	if l.paused > 0 {
		own = time.Time{}
	}
	l.mu.Unlock()
	if d, ok := l.request.Deadline(); ok && (own.IsZero() || d.Before(own)) {
		return d, true
	}
	return own, !own.IsZero()
}

// callKey is the key of the call in its context.
type callKey struct{}

// Value returns the call to [CallFrom], or a value of the request.
func (l *timeLimit) Value(key any) any {
	if key == (callKey{}) {
		return l.call
	}
	return l.Context.Value(key)
}

// Err returns [context.DeadlineExceeded] if the time is up. Contexts that derive from this one have
// the error [context.Canceled] instead, and the same cause.
func (l *timeLimit) Err() error {
	err := l.Context.Err()
	if err != nil && context.Cause(l.Context) == l.tooLate() {
		return context.DeadlineExceeded
	}
	return err
}

// set limits the rest of the call to d, unless its limit is earlier.
func (l *timeLimit) set(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.paused > 0 {
		now = l.pausedAt
	}
	deadline := now.Add(d)
	if d <= 0 || l.late != nil || l.over() || l.timer != nil && !deadline.Before(l.deadline) {
		return
	}
	l.deadline, l.timeout = deadline, d
	if l.timer != nil {
		l.timer.Reset(d)
		return
	}
	l.graceOver = make(chan struct{})
	l.timer = time.AfterFunc(d, l.expire)
}

// pause stops the time while a question to the client is open. The call does not count as running
// meanwhile. Each pause is followed by a resume.
func (l *timeLimit) pause() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paused++; l.paused == 1 {
		l.pausedAt = time.Now()
		l.call.load.count(-1)
	}
}

// resume continues the time when no other question is open.
func (l *timeLimit) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paused--; l.paused > 0 {
		return
	}
	l.call.load.count(1)
	if l.timer != nil && l.late == nil {
		l.deadline = l.deadline.Add(time.Since(l.pausedAt))
		l.timer.Reset(time.Until(l.deadline))
	}
}

// expire ends the context because the time is up, and after a while the wait for the methods. It does
// so for cancelled requests as well, since their methods may still run.
func (l *timeLimit) expire() {
	l.mu.Lock()
	if l.paused > 0 || l.late != nil || l.over() {
		l.mu.Unlock()
		return
	}
	if left := time.Until(l.deadline); left > 0 { // the timer was reset meanwhile
		l.timer.Reset(left)
		l.mu.Unlock()
		return
	}
	l.late = &TimeoutError{After: l.timeout}
	l.timer = time.AfterFunc(grace, func() { close(l.graceOver) })
	l.mu.Unlock()
	l.cancel(l.late)
}

// tooLate returns the error of a call whose time is up, or nil.
func (l *timeLimit) tooLate() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.late
}

// ended returns why the call is over: its time is up, or the caller has left. It is nil before.
func (l *timeLimit) ended() error {
	if late := l.tooLate(); late != nil {
		return late
	}
	return l.request.Err()
}

// do runs a method, within the limit if it has one: then the method has a goroutine of its own. If it
// does not return in time, do returns without it. Then the method is overdue, and continues with an
// ended context.
func (l *timeLimit) do(method func() (Result, error)) (Result, error) {
	if err := l.call.enter(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	limited, late := l.timer != nil, l.late
	if late == nil {
		l.running++
	}
	l.mu.Unlock()
	if late != nil {
		return nil, late
	}
	x := &execution{limit: l, done: make(chan struct{}), err: errExited}
	if !limited {
		x.run(method)
		return x.result, l.inTime(x.err)
	}
	// Ends when the method returns.
	go x.run(method)
	select {
	case <-x.done:
	case <-l.graceOver:
		if x.leave() {
			return nil, l.tooLate()
		}
		<-x.done
	}
	return x.result, l.inTime(x.err)
}

// inTime replaces the error of a method that the time limit ended by the error of the limit.
func (l *timeLimit) inTime(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		if late := l.tooLate(); late != nil {
			return late
		}
	}
	return err
}

// An execution is one run of a method.
type execution struct {
	limit    *timeLimit
	done     chan struct{} // closed when nothing is left of the method
	returned bool          // guarded by limit.mu
	overdue  bool          // its caller was told that it is late; guarded by limit.mu

	result Result // read after done is closed
	err    error
}

// run runs the method, and turns its panic into an error.
func (x *execution) run(method func() (Result, error)) {
	defer x.end()
	x.result, x.err = method()
}

// leave notes that the method is overdue, and logs it. It returns false if the method has returned.
func (x *execution) leave() bool {
	l := x.limit
	l.mu.Lock()
	x.overdue = !x.returned
	var n int64 // of all calls
	if x.overdue {
		n = l.call.server.overdue.Add(1)
	}
	l.mu.Unlock()
	if x.overdue {
		l.call.log(slog.LevelWarn, "mcpkit: a method did not return in time; its caller got a timeout error",
			"timeout", l.timeout.String(), "overdue", n)
	}
	return x.overdue
}

// end is called when the method has returned or panicked.
func (x *execution) end() {
	l := x.limit
	if v := recover(); v != nil {
		x.err = panicError(v)
	}
	l.mu.Lock()
	x.returned = true
	l.running--
	if x.overdue {
		l.call.server.overdue.Add(-1)
	}
	l.mu.Unlock()
	l.settle() // first, so that the caller finds nothing of the method left
	close(x.done)
}

// isOverdue reports whether a method still runs although its caller was told that it is late.
func (l *timeLimit) isOverdue() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.late != nil && l.running > 0
}

// onReturn calls f when no method runs.
func (l *timeLimit) onReturn(f func()) {
	l.mu.Lock()
	waits := l.running > 0
	if waits {
		l.returns = append(l.returns, f)
	}
	l.mu.Unlock()
	if !waits {
		f()
	}
}

// onEnd adds a clean-up. The last added runs first.
func (l *timeLimit) onEnd(clean func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cleanups = append(l.cleanups, clean)
}

// finish says that the last byte of the result was written. The call ends when its methods have
// returned.
func (l *timeLimit) finish() {
	l.mu.Lock()
	l.answered = true
	l.mu.Unlock()
	l.settle()
}

// over reports whether nothing is left of the call. The caller holds mu.
func (l *timeLimit) over() bool { return l.answered && l.running == 0 }

// settle calls what waits until no method runs. If nothing is left of the call, it runs the clean-ups
// and ends the context.
func (l *timeLimit) settle() {
	l.mu.Lock()
	var due []func()
	if l.running == 0 {
		due, l.returns = l.returns, nil
	}
	over := l.over()
	if over {
		slices.Reverse(l.cleanups)
		due, l.cleanups = append(due, l.cleanups...), nil
		if l.timer != nil {
			l.timer.Stop()
		}
	}
	l.mu.Unlock()
	for _, f := range due {
		l.clean(f)
	}
	if over {
		l.cancel(nil)
	}
}

// clean calls a clean-up and notes its panic.
func (l *timeLimit) clean(f func()) {
	defer func() {
		if v := recover(); v != nil {
			l.call.logError("mcpkit: a clean-up panicked", panicError(v))
		}
	}()
	f()
}

// A load is what the calls of a tool, prompt, resource or method take.
type load struct {
	running atomic.Int64
	memory  atomic.Int64 // bytes of the last results with their encodings
}

// count changes the number of running calls; nil counts nothing.
func (l *load) count(n int64) {
	if l != nil {
		l.running.Add(n)
	}
}

// enter counts the call as one that runs until [Call.leave], unless too many do, and reserves as much
// memory as the last results took. Runs of tasks have limits of their own.
func (c *Call) enter() error {
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

// leave undoes enter.
func (c *Call) leave() { c.load.count(-1) }

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

// A TimeoutError means that the time limit of a call was reached. It is the cause of the method's
// context, and the caller sees it.
type TimeoutError struct{ After time.Duration }

// Error returns the text with the time limit.
func (e *TimeoutError) Error() string { return "timed out after " + e.After.String() }

// UserMessage returns the same text.
func (e *TimeoutError) UserMessage() string { return e.Error() }

// Unwrap returns [context.DeadlineExceeded].
func (e *TimeoutError) Unwrap() error { return context.DeadlineExceeded }

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
