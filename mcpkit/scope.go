package mcpkit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/transport"
)

// A scope is the context of a call, its time limit and its clean-ups. Each request has one.
//
// It ends with the request, when the time is up, or when everything is done: the last byte of the
// result was written, and all methods of the call have returned. Then the clean-ups run.
type scope struct {
	parent context.Context // of the request
	call   *Call

	state   atomic.Int32    // how it ended; changed with mu held
	expired context.Context // set before state becomes scopeLate

	mu      sync.Mutex
	done    chan struct{}           // made on first use; closed at the end
	unwatch func() bool             // stops watching parent; set with done
	after   map[*scopeFunc]struct{} // called at the end

	changed   sync.Cond // tells attend that an execution has returned, or is overdue
	graceOver bool      // methods that have not returned are overdue

	holds    int // the response and the executions that have not returned
	cleanups []func()
	running  []*execution // executions that have not returned
	first    execution    // most calls have one
	places   [1]*execution
	onReturn []func() // called when no execution runs

	deadline time.Time     // zero: none
	timeout  time.Duration // what set the deadline
	timer    *time.Timer   // set with deadline
	lapsed   bool          // the time is up, even if the request had ended before
	paused   int           // how many questions are open
	left     time.Duration // the time left while paused
}

// How a scope ended. While it lasts, and when the request has ended, its parent says that.
const (
	scopeLasts  int32 = iota
	scopeParent       // with the request
	scopeLate         // its time was over
	scopeOver         // everything is done
)

type scopeFunc struct{ f func() }

// begin prepares the scope before it is shared. The response holds it first.
func (s *scope) begin(parent context.Context, call *Call) {
	s.parent, s.call, s.holds = parent, call, 1
	s.changed.L = &s.mu
}

// Deadline returns the earlier deadline of the request and of the call. The call has none while a
// question to the client is open.
func (s *scope) Deadline() (time.Time, bool) {
	s.mu.Lock()
	own := s.deadline
	if s.paused > 0 {
		own = time.Time{}
	}
	s.mu.Unlock()
	if d, ok := s.parent.Deadline(); ok && (own.IsZero() || d.Before(own)) {
		return d, true
	}
	return own, !own.IsZero()
}

// Err returns how the scope ended.
func (s *scope) Err() error {
	switch s.state.Load() {
	case scopeLate:
		return s.expired.Err()
	case scopeOver:
		return context.Canceled
	}
	return s.parent.Err()
}

// Value returns the call, or a value of the request. After a timeout, package context finds the
// cause by it.
func (s *scope) Value(key any) any {
	if key == (callKey{}) {
		return s.call
	}
	if s.state.Load() == scopeLate {
		return s.expired.Value(key)
	}
	return s.parent.Value(key)
}

// Done is made on first use: most calls end before anybody waits for that.
func (s *scope) Done() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done == nil {
		s.done = make(chan struct{})
		if s.state.Load() != scopeLasts {
			close(s.done)
		} else if s.parent.Done() != nil {
			s.unwatch = context.AfterFunc(s.parent, func() { s.end(scopeParent) })
		}
	}
	return s.done
}

// AfterFunc calls f on its own goroutine when the scope ends. Package context uses it for derived
// contexts.
func (s *scope) AfterFunc(f func()) (stop func() bool) {
	s.Done() // to watch the request
	own := &scopeFunc{f}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Load() != scopeLasts {
		go f() // ends when f returns
		return func() bool { return false }
	}
	if s.after == nil {
		s.after = map[*scopeFunc]struct{}{}
	}
	s.after[own] = struct{}{}
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		_, waits := s.after[own]
		delete(s.after, own)
		return waits
	}
}

// end ends the scope, once.
func (s *scope) end(state int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked(state)
}

// endLocked is like end. The caller holds mu.
func (s *scope) endLocked(state int32) {
	if s.state.Load() != scopeLasts {
		return
	}
	s.state.Store(state)
	if s.done != nil {
		close(s.done)
	}
	if s.unwatch != nil {
		s.unwatch()
	}
	for own := range s.after {
		go own.f() // ends when it returns
	}
	s.after = nil
}

// limit limits the rest of the call to d, unless its limit is earlier.
func (s *scope) limit(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d <= 0 || s.lapsed || s.state.Load() == scopeOver {
		return
	}
	deadline := time.Now().Add(d)
	switch {
	case s.timer == nil:
		s.timer = time.AfterFunc(d, s.expire)
	case s.paused > 0 && s.left <= d, s.paused == 0 && !deadline.Before(s.deadline):
		return
	default:
		s.timer.Reset(d)
	}
	s.deadline, s.timeout = deadline, d
	if s.paused > 0 {
		s.timer.Stop()
		s.left = d
	}
}

// limited reports whether the call has a time limit.
func (s *scope) limited() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.deadline.IsZero()
}

// late returns the error of a call whose time is up, or nil.
func (s *scope) late() *TimeoutError {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lapsed {
		return nil
	}
	return &TimeoutError{After: s.timeout}
}

// pause stops the time while a question to the client is open. Each pause is followed by a resume.
func (s *scope) pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused++; s.paused == 1 && s.timer != nil && !s.lapsed {
		s.timer.Stop()
		s.left = max(time.Until(s.deadline), 0)
	}
}

func (s *scope) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused--; s.paused == 0 && s.timer != nil && !s.lapsed {
		s.deadline = time.Now().Add(s.left)
		s.timer.Reset(s.left)
	}
}

// expire ends the scope because the time is up; the second time it ends the wait for its methods.
// It does so for cancelled requests as well, since their methods may still run.
func (s *scope) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lapsed {
		s.graceOver = true
		s.changed.Broadcast()
		return
	}
	if s.paused > 0 || s.state.Load() == scopeOver {
		return
	}
	if left := time.Until(s.deadline); left > 0 { // the timer was reset meanwhile
		s.timer.Reset(left)
		return
	}
	s.lapsed = true
	s.timer.Reset(grace)
	if s.state.Load() == scopeLasts {
		// This context supplies the error and the cause.
		expired, cancel := context.WithDeadlineCause(s.parent, time.Unix(0, 0), &TimeoutError{After: s.timeout})
		cancel()
		s.expired = expired
		s.endLocked(scopeLate)
	}
}

// onEnd adds a clean-up.
func (s *scope) onEnd(clean func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleanups = append(s.cleanups, clean)
}

// release drops a hold. The last hold runs the clean-ups, the last added first, and ends the scope.
func (s *scope) release() {
	s.mu.Lock()
	s.holds--
	if s.holds > 0 {
		s.mu.Unlock()
		return
	}
	cleanups, timer := s.cleanups, s.timer
	s.cleanups = nil
	s.mu.Unlock()
	if timer != nil {
		timer.Stop()
	}
	for _, clean := range slices.Backward(cleanups) {
		s.clean(clean)
	}
	s.end(scopeOver)
}

// clean runs a clean-up and recovers its panic.
func (s *scope) clean(f func()) {
	defer func() {
		if v := recover(); v != nil {
			c := s.call
			c.server.config.logger.ErrorContext(s, "mcpkit: a clean-up panicked", "ref", c.Ref(), "method", c.req.Method, "name", c.name,
				"panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
	}()
	f()
}

// An execution is a method on its own goroutine, so that the caller gets a response in time.
type execution struct {
	scope   *scope
	call    *Call // in the server whose method it is
	ctx     context.Context
	handler Handler

	result Result // set, with err, before over
	err    error

	over    bool // the method has returned; guarded by scope.mu
	overdue bool // guarded by scope.mu: the caller has got a timeout error
}

// grace is how long a method may take to return when the time is up.
const grace = 100 * time.Millisecond

// errMethodExited is the error of a method that called runtime.Goexit, as testing.T.FailNow does.
var errMethodExited = errors.New("the method ended its goroutine")

// attend runs h, within the time limit of the call if it has one. If h does not return in time,
// attend returns without it. Then h is overdue, and continues with an ended context.
func (c *Call) attend(ctx context.Context, h Handler) (Result, error) {
	s := &c.scope
	if err := c.overdue().refuse(c.server.config.maxOverdue); err != nil {
		return nil, err
	}
	if !s.limited() {
		return c.inTime(h(ctx, c))
	}
	x := s.execute(c, ctx, h)
	if x == nil {
		return nil, s.late()
	}
	// The goroutine is done with x when the method returns.
	if r, ok := c.peer.(transport.Runner); ok {
		r.Run(x.run)
	} else {
		go x.start()
	}
	if x.wait() {
		return c.inTime(x.result, x.err)
	}
	x.leave()
	return nil, s.late()
}

// execute adds an execution; nil if the time is up.
func (s *scope) execute(c *Call, ctx context.Context, h Handler) *execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lapsed {
		return nil
	}
	x := &s.first
	if x.scope != nil { // a middleware runs the method again
		x = new(execution)
	}
	x.scope, x.call, x.ctx, x.handler = s, c, ctx, h
	s.holds++
	if s.running == nil {
		s.running = s.places[:0]
	}
	s.running = append(s.running, x)
	return x
}

// inTime replaces the error of a method that the time limit ended by the timeout error.
func (c *Call) inTime(result Result, err error) (Result, error) {
	if err != nil && errors.Is(err, context.DeadlineExceeded) {
		if late := c.scope.late(); late != nil {
			return nil, late
		}
	}
	return result, err
}

// start is run for a new goroutine.
func (x *execution) start() {
	growStack()
	x.run()
}

// growStack makes room on the stack of a new goroutine, as much as most methods need. The runtime
// would double the stack again and again, and copy what is on it each time, which takes longer than
// a short method does.
//
//go:noinline
func growStack() {
	var room [6 << 10]byte
	runtime.KeepAlive(&room)
}

// run runs the method.
func (x *execution) run() {
	x.err = errMethodExited
	defer x.returned()
	defer recoverAs(&x.err)
	x.result, x.err = x.handler(x.ctx, x.call)
}

// wait waits until the method has returned, or is overdue.
func (x *execution) wait() (returned bool) {
	s := x.scope
	s.mu.Lock()
	defer s.mu.Unlock()
	for !x.over && !x.overdue {
		// An execution that is not in running is about to be over.
		if x.overdue = s.graceOver && slices.Contains(s.running, x); !x.overdue {
			s.changed.Wait()
		}
	}
	return x.over
}

// leave counts and logs a method that is overdue.
func (x *execution) leave() {
	s := x.scope
	c := x.call
	n := c.overdue().begin()
	c.server.overdue.Add(1)
	c.server.config.logger.WarnContext(s, "mcpkit: a method did not return in time; its caller got a timeout error",
		"ref", c.Ref(), "method", c.row.method, "name", c.Target(), "timeout", s.timeout.String(), "overdue", n)
}

// returned is called when the method has returned.
func (x *execution) returned() {
	s := x.scope
	s.mu.Lock()
	s.running = slices.DeleteFunc(s.running, func(other *execution) bool { return other == x })
	overdue := x.overdue
	var tell []func()
	if len(s.running) == 0 {
		tell, s.onReturn = s.onReturn, nil
	}
	if !overdue && len(tell) == 0 && s.holds > 1 { // nearly always there is nothing more to do
		s.holds--
		x.over = true
		s.changed.Broadcast()
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	if overdue {
		x.call.overdue().end()
		x.call.server.overdue.Add(-1)
	}
	for _, f := range tell {
		s.clean(f)
	}
	s.release() // first, so that the caller finds nothing of the method left
	s.mu.Lock()
	x.over = true
	s.changed.Broadcast()
	s.mu.Unlock()
}

// An overdueCount is the number of overdue methods of a tool, prompt, resource or method.
type overdueCount struct{ n atomic.Int64 }

func (o *overdueCount) begin() int64 { return o.n.Add(1) }
func (o *overdueCount) end()         { o.n.Add(-1) }

// refuse returns an error if limit methods are overdue.
func (o *overdueCount) refuse(limit int) error {
	if n := int(o.n.Load()); limit > 0 && n >= limit {
		return &OverdueError{Overdue: n}
	}
	return nil
}

// An OverdueError means that a tool is not called because too many of its earlier calls are
// overdue: see [MaxOverdue].
type OverdueError struct {
	// Overdue is the number of overdue calls.
	Overdue int
}

// Error tells the caller to try again later.
func (e *OverdueError) Error() string {
	return fmt.Sprintf("%d earlier calls of this are still running after their time was over; try again later", e.Overdue)
}

// UserMessage returns the same text.
func (e *OverdueError) UserMessage() string { return e.Error() }

// RetryAfter is ten seconds, since nobody knows when a method returns.
func (e *OverdueError) RetryAfter() time.Duration { return 10 * time.Second }

// A QuestionTimeoutError means that a question to the client was not answered in time: see
// [QuestionTimeout]. The caller sees it.
type QuestionTimeoutError struct{ After time.Duration }

// Error returns the text with the time limit.
func (e *QuestionTimeoutError) Error() string {
	return "the question was not answered within " + e.After.String()
}

// UserMessage returns the same text.
func (e *QuestionTimeoutError) UserMessage() string { return e.Error() }

// Is reports whether target is context.DeadlineExceeded.
func (e *QuestionTimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// Overdue is the number of methods, and of readers that they returned, that still run although
// their calls are over: see [ToolTimeout].
func (s *Server) Overdue() int { return int(s.overdue.Load()) }
