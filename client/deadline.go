package client

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A timeoutError reports that the server did not respond in time.
type timeoutError struct {
	method, name string
	after        time.Duration
}

func (e *timeoutError) Error() string {
	return fmt.Sprintf("%s: no response within %s", called(e.method, e.name), e.after)
}

func (e *timeoutError) Unwrap() error { return context.DeadlineExceeded }
func (e *timeoutError) Timeout() bool { return true }

// title returns the beginning of errors about a request.
func title(method, name string) string { return "client: " + called(method, name) }

func called(method, name string) string {
	if name == "" {
		return method
	}
	return fmt.Sprintf("%s %q", method, name)
}

// extensions is how many times its timeout a call with progress may last.
const extensions = 10

// A deadline cancels a context after a time, which can be restarted and paused.
type deadline struct {
	cancel context.CancelCauseFunc
	after  time.Duration // 0 for no limit

	mu     sync.Mutex
	timer  *time.Timer   // guarded by mu
	until  time.Time     // when the timer fires; guarded by mu
	last   time.Time     // the latest until; guarded by mu
	held   int           // number of calls of hold; guarded by mu
	left   time.Duration // time left, while held; guarded by mu
	closed bool          // guarded by mu
}

// withDeadline returns a context that is canceled with cause after that time. Zero means no limit.
func withDeadline(ctx context.Context, after time.Duration, cause error) (context.Context, *deadline) {
	ctx, cancel := context.WithCancelCause(ctx)
	d := &deadline{cancel: cancel, after: after}
	if after > 0 {
		now := time.Now()
		d.until, d.last = now.Add(after), now.Add(extensions*after)
		d.timer = time.AfterFunc(after, func() { cancel(cause) })
	}
	return ctx, d
}

// extend restarts the time.
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

// hold pauses the time until release.
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
