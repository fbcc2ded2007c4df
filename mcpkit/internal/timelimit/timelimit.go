// Package timelimit bounds how long the methods of a call may take, and runs its clean-ups when
// nothing of it is left.
package timelimit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// grace is how long a method may take to return when the time is up.
const grace = 100 * time.Millisecond

// errExited is the error of a method that called runtime.Goexit, as testing.T.FailNow does.
var errExited = errors.New("the method ended its goroutine")

// An Owner is the call that a limit is for.
type Owner interface {
	// Late returns the error of a call whose time is up. It is an error that matches
	// [context.DeadlineExceeded].
	Late(after time.Duration) error
	// Begin returns an error if the next method must not run.
	Begin() error
	// Failed returns the error of a method that panicked.
	Failed(v any) error
	// Overdue notes a method that has not returned in time, and Returned that it has returned since.
	Overdue(after time.Duration)
	Returned()
	// Panicked notes the panic of a clean-up.
	Panicked(v any)
}

// A Limit is the context of a call, its time limit and its clean-ups. Each request has one. It is
// safe for concurrent use. Make one with [New].
//
// It ends with the request, when the time is up, or when everything is done: the last byte of the
// result was written, and all methods of the call have returned. Then the clean-ups run.
type Limit struct {
	context.Context // derives from request
	cancel          context.CancelCauseFunc
	request         context.Context
	owner           Owner

	mu       sync.Mutex
	answered bool     // the last byte of the result was written
	running  int      // methods that have not returned
	overdue  int      // how many of them are overdue
	paused   int      // how many questions are open
	cleanups []func() // called at the end
	onReturn []func() // called when no method runs

	deadline  time.Time     // zero: none
	pausedAt  time.Time     // when the first of the open questions began
	timeout   time.Duration // what set the deadline
	timer     *time.Timer   // set with deadline
	late      error         // set when the time is up, even if the request had ended before
	graceOver chan struct{} // set with deadline; closed when methods that have not returned are overdue
}

// New returns a limit for a request with the context, without a deadline of its own.
func New(request context.Context, owner Owner) *Limit {
	l := &Limit{request: request, owner: owner}
	l.Context, l.cancel = context.WithCancelCause(request)
	return l
}

// Request returns the context of the request.
func (l *Limit) Request() context.Context { return l.request }

// Deadline returns the earlier deadline of the request and of the call. The call has none while it
// is paused.
func (l *Limit) Deadline() (time.Time, bool) {
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

// ownerKey is the key of the owner in the context.
type ownerKey struct{}

// Value returns the owner to [OwnerOf], or a value of the request.
func (l *Limit) Value(key any) any {
	if key == (ownerKey{}) {
		return l.owner
	}
	return l.Context.Value(key)
}

// OwnerOf returns the owner of the limit that ctx derives from, or nil.
func OwnerOf(ctx context.Context) Owner {
	owner, _ := ctx.Value(ownerKey{}).(Owner)
	return owner
}

// Err returns [context.DeadlineExceeded] if the time is up. Contexts that derive from this one have
// the error [context.Canceled] instead, and the same cause: that of [Owner.Late].
func (l *Limit) Err() error {
	err := l.Context.Err()
	if err != nil && context.Cause(l.Context) == l.Late() {
		return context.DeadlineExceeded
	}
	return err
}

// Set limits the rest of the call to d, unless its limit is earlier.
func (l *Limit) Set(d time.Duration) {
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

// Pause stops the time while a question to the client is open. Each Pause is followed by a Resume. It
// reports whether no other question is open.
func (l *Limit) Pause() (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused++
	if first = l.paused == 1; first {
		l.pausedAt = time.Now()
	}
	return first
}

// Resume continues the time when no other question is open, and reports that.
func (l *Limit) Resume() (last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused--
	if last = l.paused == 0; last && l.timer != nil && l.late == nil {
		l.deadline = l.deadline.Add(time.Since(l.pausedAt))
		l.timer.Reset(time.Until(l.deadline))
	}
	return last
}

// expire ends the context because the time is up, and after a while the wait for the methods. It does
// so for cancelled requests as well, since their methods may still run.
func (l *Limit) expire() {
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
	l.late = l.owner.Late(l.timeout)
	l.timer = time.AfterFunc(grace, func() { close(l.graceOver) })
	l.mu.Unlock()
	l.cancel(l.late)
}

// Late returns the error of a call whose time is up, or nil.
func (l *Limit) Late() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.late
}

// Ended returns why the call is over: its time is up, or the caller has left. It is nil before.
func (l *Limit) Ended() error {
	if late := l.Late(); late != nil {
		return late
	}
	return l.request.Err()
}

// Run runs a method, within the limit if it has one: then the method has a goroutine of its own. If
// it does not return in time, Run returns without it. Then the method is overdue, and continues with
// an ended context.
func Run[R any](l *Limit, method func() (R, error)) (R, error) {
	var none R
	limited, err := l.begin()
	if err != nil {
		return none, err
	}
	x := &execution[R]{limit: l, done: make(chan struct{}), err: errExited}
	run := func() {
		defer x.end()
		x.result, x.err = method()
	}
	if !limited {
		run()
		return x.result, l.inTime(x.err)
	}
	// Ends when the method returns.
	go run()
	select {
	case <-x.done:
	case <-l.graceOver:
		if x.leave() {
			return none, l.Late()
		}
		<-x.done
	}
	return x.result, l.inTime(x.err)
}

// begin counts a method. It returns an error if the method must not run, or if the time is up.
func (l *Limit) begin() (limited bool, err error) {
	if err := l.owner.Begin(); err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.late == nil {
		l.running++
	}
	return l.timer != nil, l.late
}

// inTime replaces the error of a method that the time limit ended by the error of the limit.
func (l *Limit) inTime(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		if late := l.Late(); late != nil {
			return late
		}
	}
	return err
}

// An execution is one run of a method.
type execution[R any] struct {
	limit    *Limit
	done     chan struct{} // closed when nothing is left of the method
	returned bool          // guarded by limit.mu
	overdue  bool          // its caller was told that it is late; guarded by limit.mu

	result R // read after done is closed
	err    error
}

// leave notes that the method is overdue. It returns false if the method has returned.
func (x *execution[R]) leave() bool {
	l := x.limit
	l.mu.Lock()
	overdue := !x.returned
	if x.overdue = overdue; overdue {
		l.overdue++
	}
	l.mu.Unlock()
	if overdue {
		l.owner.Overdue(l.timeout)
	}
	return overdue
}

// end is called when the method has returned or panicked.
func (x *execution[R]) end() {
	l := x.limit
	if v := recover(); v != nil {
		x.err = l.owner.Failed(v)
	}
	l.mu.Lock()
	x.returned = true
	l.running--
	overdue := x.overdue
	if overdue {
		l.overdue--
	}
	l.mu.Unlock()
	if overdue {
		l.owner.Returned()
	}
	l.settle() // first, so that the caller finds nothing of the method left
	close(x.done)
}

// Overdue reports whether a method still runs although its caller was told that it is late.
func (l *Limit) Overdue() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.overdue > 0
}

// OnReturn calls f when no method runs.
func (l *Limit) OnReturn(f func()) {
	l.mu.Lock()
	waits := l.running > 0
	if waits {
		l.onReturn = append(l.onReturn, f)
	}
	l.mu.Unlock()
	if !waits {
		f()
	}
}

// OnEnd adds a clean-up. The last added runs first.
func (l *Limit) OnEnd(clean func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cleanups = append(l.cleanups, clean)
}

// Answered says that the last byte of the result was written. The call ends when its methods have
// returned.
func (l *Limit) Answered() {
	l.mu.Lock()
	l.answered = true
	l.mu.Unlock()
	l.settle()
}

// over reports whether nothing is left of the call. The caller holds mu.
func (l *Limit) over() bool { return l.answered && l.running == 0 }

// settle calls what waits until no method runs. If nothing is left of the call, it runs the clean-ups
// and ends the context.
func (l *Limit) settle() {
	l.mu.Lock()
	var due []func()
	if l.running == 0 {
		due, l.onReturn = l.onReturn, nil
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
		l.Clean(f)
	}
	if over {
		l.cancel(nil)
	}
}

// Clean calls a clean-up and notes its panic.
func (l *Limit) Clean(f func()) {
	defer func() {
		if v := recover(); v != nil {
			l.owner.Panicked(v)
		}
	}()
	f()
}
