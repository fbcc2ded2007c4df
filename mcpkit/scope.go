package mcpkit

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A scope is what a call has for as long as it lasts: its context, its time, and its clean-ups.
// There is one for each request.
//
// It is the context of the call. It ends with the request, when the time of the call is over, or
// when everything is done: the last byte of the result was written, and every method of the call
// has returned. The clean-ups run then.
type scope struct {
	parent context.Context // of the request
	call   *Call

	state   atomic.Int32    // how it ended; changed with mu held
	expired context.Context // set before state becomes scopeLate

	mu      sync.Mutex
	done    chan struct{}           // made when somebody first waits; closed at the end
	unwatch func() bool             // stops watching parent; set with done
	after   map[*scopeFunc]struct{} // called at the end

	changed   sync.Cond // tells who attends an execution that it has returned, or need not be waited for any more
	graceOver bool      // methods that have not returned are not waited for any more

	holds    int // the response, and the executions that have not returned
	cleanups []func()
	running  []*execution // that have not returned
	first    execution    // most calls have one
	places   [1]*execution
	onReturn []func() // called when none is running

	deadline time.Time     // zero: there is none
	timeout  time.Duration // what deadline was set by
	timer    *time.Timer   // set with deadline
	lapsed   bool          // the time is over, also where the request had ended before
	paused   int           // how many questions are open
	left     time.Duration // while paused: how much time is left
}

// How a scope ended. While it lasts, and when the request ended, it says what its parent says.
const (
	scopeLasts  int32 = iota
	scopeParent       // with the request
	scopeLate         // its time was over
	scopeOver         // everything is done
)

type scopeFunc struct{ f func() }

// begin readies the scope, before it is shared. The response is the first to hold it.
func (s *scope) begin(parent context.Context, call *Call) {
	s.parent, s.call, s.holds = parent, call, 1
	s.changed.L = &s.mu
}

// Deadline is the earlier one of the request's and the call's own, which does not count while a
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

// Err says how the scope ended.
func (s *scope) Err() error {
	switch s.state.Load() {
	case scopeLate:
		return s.expired.Err()
	case scopeOver:
		return context.Canceled
	}
	return s.parent.Err()
}

// Value is the call, or the request's. When the time was over, package context finds the cause by
// it.
func (s *scope) Value(key any) any {
	if key == (callKey{}) {
		return s.call
	}
	if s.state.Load() == scopeLate {
		return s.expired.Value(key)
	}
	return s.parent.Value(key)
}

// Done is made when it is first asked for: most calls are over before anybody waits for their end.
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

// AfterFunc calls f in a goroutine of its own when the scope ends. Package context uses it for
// contexts that derive from this one.
func (s *scope) AfterFunc(f func()) (stop func() bool) {
	s.Done() // so that the request is watched
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

// endLocked is end for who holds mu.
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

// limit lets the time of the call be over after d, unless it is over sooner.
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

// late is the error of a call whose time was over; nil for others.
func (s *scope) late() *TimeoutError {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lapsed {
		return nil
	}
	return &TimeoutError{After: s.timeout}
}

// pause stops the time of the call while a question to the client is open. Each pause is followed
// by a resume.
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

// expire ends the scope since its time is over, and the second time the wait for its methods. A
// request that the client has cancelled is no exception: its method may go on.
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
	if left := time.Until(s.deadline); left > 0 { // the timer was set anew meanwhile
		s.timer.Reset(left)
		return
	}
	s.lapsed = true
	s.timer.Reset(grace)
	if s.state.Load() == scopeLasts {
		// A context of package context whose deadline has passed says how this one ended, and why.
		expired, cancel := context.WithDeadlineCause(s.parent, time.Unix(0, 0), &TimeoutError{After: s.timeout})
		cancel()
		s.expired = expired
		s.endLocked(scopeLate)
	}
}

// onEnd lets clean run when everything is done.
func (s *scope) onEnd(clean func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleanups = append(s.cleanups, clean)
}

// release lets go of the scope. The last one to do so runs the clean-ups, the latest first, and
// ends the scope.
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

// clean runs a clean-up. A panic of one must not keep others from running.
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

// An execution is a method that runs on a goroutine of its own, so that its caller is answered in
// time whatever it does.
type execution struct {
	scope   *scope
	call    *Call // in the server whose method it is
	ctx     context.Context
	handler Handler

	result Result // set, with err, before over
	err    error

	over    bool // the method has returned; guarded by scope.mu
	overdue bool // guarded by scope.mu: its caller was answered in its place
}

// grace is how long a method may take to return when its time is over. One that minds its context
// returns at once.
const grace = 100 * time.Millisecond

// errMethodExited is what a method is answered with that called runtime.Goexit, as
// testing.T.FailNow does.
var errMethodExited = errors.New("the method ended its goroutine")

// attend runs h for a call that may have a time limit. When the time is over and h does not return,
// attend does: h is overdue, and goes on with a context that has ended until it returns.
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
	// Ends when the method returns.
	go x.run()
	if x.wait() {
		return c.inTime(x.result, x.err)
	}
	x.leave()
	return nil, s.late()
}

// execute enters an execution; nil when the time is over already.
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

// inTime lets the error of a method that was ended by its time speak of that.
func (c *Call) inTime(result Result, err error) (Result, error) {
	if err != nil && errors.Is(err, context.DeadlineExceeded) {
		if late := c.scope.late(); late != nil {
			return nil, late
		}
	}
	return result, err
}

// run runs the method.
func (x *execution) run() {
	x.err = errMethodExited
	defer x.returned()
	defer recoverAs(&x.err)
	x.result, x.err = x.handler(x.ctx, x.call)
}

// wait waits until the method has returned. It reports false when the method is overdue.
func (x *execution) wait() (returned bool) {
	s := x.scope
	s.mu.Lock()
	defer s.mu.Unlock()
	for !x.over && !x.overdue {
		// One that is not among those that run is about to be over.
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
	c.server.config.logger.WarnContext(s, "mcpkit: a method does not return though its time is over; its caller was answered in its place",
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
	if !overdue && len(tell) == 0 && s.holds > 1 { // as nearly always: there is nothing more to do
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
	s.release() // before the caller goes on, so that it finds nothing of the method left
	s.mu.Lock()
	x.over = true
	s.changed.Broadcast()
	s.mu.Unlock()
}

// An overdueCount is how many methods of a tool, or of anything else that is called, do not return
// though their time is over.
type overdueCount struct{ n atomic.Int64 }

func (o *overdueCount) begin() int64 { return o.n.Add(1) }
func (o *overdueCount) end()         { o.n.Add(-1) }

// refuse is an error when as many are overdue as may be.
func (o *overdueCount) refuse(limit int) error {
	if n := int(o.n.Load()); limit > 0 && n >= limit {
		return &OverdueError{Overdue: n}
	}
	return nil
}

// An OverdueError says that a tool is not called since so many earlier calls of it do not return,
// though their time is over: see [MaxOverdue].
type OverdueError struct {
	// Overdue is how many there are.
	Overdue int
}

// Error tells the caller to try again later.
func (e *OverdueError) Error() string {
	return fmt.Sprintf("%d earlier calls of this are still running after their time was over; try again later", e.Overdue)
}

// UserMessage is the same text: it is meant for the caller.
func (e *OverdueError) UserMessage() string { return e.Error() }

// RetryAfter is ten seconds: nobody knows when one of them returns.
func (e *OverdueError) RetryAfter() time.Duration { return 10 * time.Second }

// A QuestionTimeoutError says that a question to the client was not answered in time: see
// [QuestionTimeout]. It is shown to the caller.
type QuestionTimeoutError struct{ After time.Duration }

// Error says after how long.
func (e *QuestionTimeoutError) Error() string {
	return "the question was not answered within " + e.After.String()
}

// UserMessage is the same text: it is meant for the caller.
func (e *QuestionTimeoutError) UserMessage() string { return e.Error() }

// Is reports whether target is context.DeadlineExceeded.
func (e *QuestionTimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// Overdue is the number of methods, and of readers that they returned, that still run although
// their calls are over: see [ToolTimeout].
func (s *Server) Overdue() int { return int(s.overdue.Load()) }
