package mcpkit

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/lazyctx"
)

// A scope is the context of a call, its time limit and its clean-ups. Each request has one.
//
// It ends with the request, when the time is up, or when everything is done: the last byte of the
// result was written, and all methods of the call have returned. Then the clean-ups run.
type scope struct {
	lazyctx.Context       // the parent is that of the request
	call            *Call // the call of the server that the client sent the request to

	mu sync.Mutex

	changed *sync.Cond // tells wait that an execution has returned, or is overdue; nil until one waits

	holds   int32     // the response and the executions that have not returned
	running int32     // executions that have not returned
	overdue int32     // how many of them are overdue
	paused  int32     // how many questions are open
	first   execution // most calls have one
	rare    *rare     // nil for most calls; see seldom

	deadline time.Time     // zero: none
	timeout  time.Duration // what set the deadline
	timer    *time.Timer   // set with deadline
	left     time.Duration // the time left while paused

	lapsed    bool // the time is up, even if the request had ended before
	graceOver bool // methods that have not returned are overdue
	over      bool // everything is done
}

// rare is the part of a scope that few calls need. It is guarded by scope.mu.
type rare struct {
	cleanups []func()      // called at the end
	onReturn []func()      // called when no execution runs
	early    chan struct{} // closed when the timeout error of the first execution was sent while it runs
}

// seldom returns s.rare, which it makes on first use. The caller holds mu.
func (s *scope) seldom() *rare {
	if s.rare == nil {
		s.rare = new(rare)
	}
	return s.rare
}

// begin prepares the scope before it is shared. The response holds it first.
func (s *scope) begin(parent context.Context) {
	s.Context.Begin(parent)
	s.holds = 1
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
	if d, ok := s.Parent().Deadline(); ok && (own.IsZero() || d.Before(own)) {
		return d, true
	}
	return own, !own.IsZero()
}

// Value returns the call, or a value of the request.
func (s *scope) Value(key any) any {
	if key == (callKey{}) {
		return s.call
	}
	return s.Context.Value(key)
}

// limit limits the rest of the call to d, unless its limit is earlier.
func (s *scope) limit(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d <= 0 || s.lapsed || s.over {
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
		if x := &s.first; x.here && !x.overdue && x.isOverdue() {
			sent := make(chan struct{})
			s.seldom().early = sent
			go x.respondEarly(sent) // ends when the response is queued
		}
		s.signal()
		return
	}
	if s.paused > 0 || s.over {
		return
	}
	if left := time.Until(s.deadline); left > 0 { // the timer was reset meanwhile
		s.timer.Reset(left)
		return
	}
	s.lapsed = true
	s.timer.Reset(grace)
	// This context supplies the error and the cause.
	expired, cancel := context.WithDeadlineCause(s.Parent(), time.Unix(0, 0), &TimeoutError{After: s.timeout})
	cancel()
	s.EndAs(expired)
}

// onEnd adds a clean-up.
func (s *scope) onEnd(clean func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.seldom()
	r.cleanups = append(r.cleanups, clean)
}

// release drops a hold. The last hold runs the clean-ups, the last added first, and ends the scope.
func (s *scope) release() {
	s.mu.Lock()
	s.holds--
	if s.holds > 0 {
		s.mu.Unlock()
		return
	}
	var cleanups []func()
	if s.rare != nil {
		cleanups = s.rare.cleanups
	}
	s.over = true
	timer := s.timer
	s.mu.Unlock()
	if timer != nil {
		timer.Stop()
	}
	for _, clean := range slices.Backward(cleanups) {
		s.clean(clean)
	}
	s.End()
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

// signal wakes the goroutines in wait. The caller holds mu.
func (s *scope) signal() {
	if s.changed != nil {
		s.changed.Broadcast()
	}
}

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
