package client

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A timeoutError says that the server took too long.
type timeoutError struct {
	method, name string
	after        time.Duration
}

func (e *timeoutError) Error() string {
	return fmt.Sprintf("%s: no answer within %s", called(e.method, e.name), e.after)
}

func (e *timeoutError) Unwrap() error { return context.DeadlineExceeded }
func (e *timeoutError) Timeout() bool { return true }

// title names a request in errors.
func title(method, name string) string { return "client: " + called(method, name) }

func called(method, name string) string {
	if name == "" {
		return method
	}
	return fmt.Sprintf("%s %q", method, name)
}

// extensions is how many times its timeout a call with progress may last.
//
//limit:client times its timeout that a call with progress may last | the call fails: `no answer within `
const extensions = 10

// A deadline ends a context when its time is over. Its time can begin anew, and stand still.
type deadline struct {
	cancel context.CancelCauseFunc
	after  time.Duration // 0 for no limit

	mu     sync.Mutex
	timer  *time.Timer   // guarded by mu
	until  time.Time     // when the timer fires; guarded by mu
	last   time.Time     // until when it can be put off; guarded by mu
	held   int           // who holds it; guarded by mu
	left   time.Duration // while it is held; guarded by mu
	closed bool          // guarded by mu
}

// withDeadline returns a context that ends after that time, because of cause. Zero is no limit.
func withDeadline(ctx context.Context, after time.Duration, cause error) (context.Context, *deadline) {
	d := new(deadline)
	return d.start(ctx, after, cause), d
}

// start begins the time of d, and returns the context that it ends.
func (d *deadline) start(ctx context.Context, after time.Duration, cause error) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	d.cancel, d.after = cancel, after
	if after > 0 {
		now := time.Now()
		d.mu.Lock()
		d.until, d.last = now.Add(after), now.Add(extensions*after)
		d.timer = time.AfterFunc(after, func() { cancel(cause) })
		d.mu.Unlock()
	}
	return ctx
}

// extend begins the time anew.
func (d *deadline) extend() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer == nil || d.closed {
		return
	}
	until := time.Now().Add(d.after)
	if until.After(d.last) {
		until = d.last
	}
	d.until = until
	if d.held == 0 {
		d.timer.Reset(time.Until(until))
	} else {
		d.left = time.Until(until)
	}
}

// hold makes the time stand still until release.
func (d *deadline) hold() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer == nil || d.closed {
		return
	}
	if d.held++; d.held == 1 {
		d.timer.Stop()
		d.left = time.Until(d.until)
	}
}

func (d *deadline) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer == nil || d.closed || d.held == 0 {
		return
	}
	if d.held--; d.held == 0 {
		now := time.Now()
		d.last = d.last.Add(now.Add(d.left).Sub(d.until))
		d.until = now.Add(d.left)
		d.timer.Reset(max(d.left, 0))
	}
}

// stop releases the context.
func (d *deadline) stop() {
	d.mu.Lock()
	d.closed = true
	if d.timer != nil {
		d.timer.Stop()
	}
	d.mu.Unlock()
	d.cancel(nil)
}
