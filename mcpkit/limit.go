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

// grace is how long a method may take to return when the time is up.
const grace = 100 * time.Millisecond

// errMethodExited is the error of a method that called runtime.Goexit, as testing.T.FailNow does.
var errMethodExited = errors.New("the method ended its goroutine")

// limited runs h, within the time limit of the call if it has one: then h has a goroutine of its
// own. If h does not return in time, limited returns without it. Then h is overdue, and continues
// with an ended context.
func (c *Call) limited(ctx context.Context, h Handler) (Result, error) {
	l := &c.limit
	if err := c.overdue().refuse(c.server.config.maxOverdue); err != nil {
		return nil, err
	}
	if !l.isSet() {
		return c.inTime(h(ctx, c))
	}
	x := &execution{call: c, done: make(chan struct{})}
	if !x.begin() {
		return nil, l.late()
	}
	// Ends when the method returns.
	go x.run(ctx, h)
	select {
	case <-x.done:
	case <-l.graceOver:
		if x.leave() {
			return nil, l.late()
		}
		<-x.done
	}
	return c.inTime(x.result, x.err)
}

// inTime replaces the error of a method that the time limit ended by the timeout error.
func (c *Call) inTime(result Result, err error) (Result, error) {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		if late := c.limit.late(); late != nil {
			return nil, late
		}
	}
	return result, err
}

// An execution is a method that runs on a goroutine of its own.
type execution struct {
	call *Call
	done chan struct{} // closed when nothing is left of the method

	result Result // set, with err, before done is closed
	err    error

	returned bool // guarded by timeLimit.mu
	overdue  bool // the caller got a timeout error; guarded by timeLimit.mu
}

// begin counts the execution. It returns false if the time is up.
func (x *execution) begin() bool {
	l := &x.call.limit
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lapsed {
		return false
	}
	l.holds++
	l.running++
	return true
}

// run runs the method.
func (x *execution) run(ctx context.Context, h Handler) {
	x.err = errMethodExited
	defer x.end()
	defer recoverAs(&x.err)
	x.result, x.err = h(ctx, x.call)
}

// leave counts and logs a method that is overdue. It returns false if the method has returned.
func (x *execution) leave() bool {
	c, l := x.call, &x.call.limit
	l.mu.Lock()
	if x.returned {
		l.mu.Unlock()
		return false
	}
	x.overdue = true
	l.overdue++
	l.mu.Unlock()
	n := c.overdue().begin()
	c.server.overdue.Add(1)
	c.server.config.logger.WarnContext(l, "mcpkit: a method did not return in time; its caller got a timeout error",
		"ref", c.Ref(), "method", c.row.method, "name", c.Target(), "timeout", l.timeout.String(), "overdue", n)
	return true
}

// end is called when the method has returned.
func (x *execution) end() {
	l := &x.call.limit
	l.mu.Lock()
	x.returned = true
	l.running--
	overdue := x.overdue
	if overdue {
		l.overdue--
	}
	var tell []func()
	if l.running == 0 {
		tell, l.onReturn = l.onReturn, nil
	}
	l.mu.Unlock()
	if overdue {
		x.call.overdue().end()
		x.call.server.overdue.Add(-1)
	}
	for _, f := range tell {
		l.clean(f)
	}
	l.release() // first, so that the caller finds nothing of the method left
	close(x.done)
}

// A timeLimit is the context of a call, its time limit and its clean-ups. Each request has one.
//
// It ends with the request, when the time is up, or when everything is done: the last byte of the
// result was written, and all methods of the call have returned. Then the clean-ups run.
type timeLimit struct {
	context.Context // derives from parent
	cancel          context.CancelCauseFunc
	parent          context.Context // of the request
	call            *Call

	mu       sync.Mutex
	holds    int32    // the response and the methods that have not returned
	running  int32    // methods that have not returned
	overdue  int32    // how many of them are overdue
	paused   int32    // how many questions are open
	cleanups []func() // called at the end
	onReturn []func() // called when no method runs

	deadline  time.Time     // zero: none
	timeout   time.Duration // what set the deadline
	timer     *time.Timer   // set with deadline
	left      time.Duration // the time left while paused
	lapsed    bool          // the time is up, even if the request had ended before
	graceOver chan struct{} // set with deadline; closed when methods that have not returned are overdue
}

// begin prepares the limit before it is shared. The response holds it first.
func (l *timeLimit) begin(parent context.Context) {
	l.parent = parent
	l.Context, l.cancel = context.WithCancelCause(parent)
	l.holds = 1
}

// Deadline returns the earlier deadline of the request and of the call. The call has none while a
// question to the client is open.
func (l *timeLimit) Deadline() (time.Time, bool) {
	l.mu.Lock()
	own := l.deadline
	if l.paused > 0 {
		own = time.Time{}
	}
	l.mu.Unlock()
	if d, ok := l.parent.Deadline(); ok && (own.IsZero() || d.Before(own)) {
		return d, true
	}
	return own, !own.IsZero()
}

// Err returns [context.DeadlineExceeded] if the time is up. Contexts that derive from this one have
// the error [context.Canceled] instead, and the same cause: a [*TimeoutError].
func (l *timeLimit) Err() error {
	err := l.Context.Err()
	if err != nil {
		if _, late := context.Cause(l.Context).(*TimeoutError); late {
			return context.DeadlineExceeded
		}
	}
	return err
}

// Value returns the call, or a value of the request.
func (l *timeLimit) Value(key any) any {
	if key == (callKey{}) {
		return l.call
	}
	return l.Context.Value(key)
}

// set limits the rest of the call to d, unless its limit is earlier.
func (l *timeLimit) set(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d <= 0 || l.lapsed || l.holds == 0 {
		return
	}
	deadline := time.Now().Add(d)
	switch {
	case l.timer == nil:
		l.graceOver = make(chan struct{})
		l.timer = time.AfterFunc(d, l.expire)
	case l.paused > 0 && l.left <= d, l.paused == 0 && !deadline.Before(l.deadline):
		return
	default:
		l.timer.Reset(d)
	}
	l.deadline, l.timeout = deadline, d
	if l.paused > 0 {
		l.timer.Stop()
		l.left = d
	}
}

// isSet reports whether the call has a time limit.
func (l *timeLimit) isSet() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.timer != nil
}

// late returns the error of a call whose time is up, or nil.
func (l *timeLimit) late() *TimeoutError {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.lapsed {
		return nil
	}
	return &TimeoutError{After: l.timeout}
}

// ended returns why the call is over: its time is up, or the caller has left. It is nil before.
func (l *timeLimit) ended() error {
	if late := l.late(); late != nil {
		return late
	}
	return l.parent.Err()
}

// pause stops the time while a question to the client is open. Each pause is followed by a resume.
func (l *timeLimit) pause() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paused++; l.paused == 1 && l.timer != nil && !l.lapsed {
		l.timer.Stop()
		l.left = max(time.Until(l.deadline), 0)
	}
}

func (l *timeLimit) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paused--; l.paused == 0 && l.timer != nil && !l.lapsed {
		l.deadline = time.Now().Add(l.left)
		l.timer.Reset(l.left)
	}
}

// expire ends the context because the time is up; the second time it ends the wait for the methods.
// It does so for cancelled requests as well, since their methods may still run.
func (l *timeLimit) expire() {
	l.mu.Lock()
	if l.lapsed {
		select {
		case <-l.graceOver: // a timer that fires while a question pauses it fires once more
		default:
			close(l.graceOver)
		}
		l.mu.Unlock()
		return
	}
	left := time.Until(l.deadline)
	switch {
	case l.paused > 0 || l.holds == 0:
		l.mu.Unlock()
		return
	case left > 0: // the timer was reset meanwhile
		l.timer.Reset(left)
		l.mu.Unlock()
		return
	}
	l.lapsed = true
	l.timer.Reset(grace)
	l.mu.Unlock()
	l.cancel(&TimeoutError{After: l.timeout})
}

// onEnd adds a clean-up.
func (l *timeLimit) onEnd(clean func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cleanups = append(l.cleanups, clean)
}

// release drops a hold. The last hold runs the clean-ups, the last added first, and ends the
// context.
func (l *timeLimit) release() {
	l.mu.Lock()
	l.holds--
	if l.holds > 0 {
		l.mu.Unlock()
		return
	}
	cleanups, timer := l.cleanups, l.timer
	l.mu.Unlock()
	if timer != nil {
		timer.Stop()
	}
	for _, clean := range slices.Backward(cleanups) {
		l.clean(clean)
	}
	l.cancel(nil)
}

// clean runs a clean-up and recovers its panic.
func (l *timeLimit) clean(f func()) {
	defer func() {
		if v := recover(); v != nil {
			c := l.call
			c.server.config.logger.ErrorContext(l, "mcpkit: a clean-up panicked", "ref", c.Ref(), "method", c.req.Method, "name", c.name,
				"panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
	}()
	f()
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

// Overdue returns the number of methods that still run although their calls are over: see
// [ToolTimeout].
func (s *Server) Overdue() int { return int(s.overdue.Load()) }
