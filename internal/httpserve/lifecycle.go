package httpserve

import (
	"context"
	"sync"
	"time"
)

// CancelGrace is how long calls that were cancelled when the context of [Lifecycle.Shutdown] ended
// may take to respond, and again how long tasks may take to end after Cutting. So Shutdown takes at
// most twice this time longer than its context.
const CancelGrace = time.Second

// A Lifecycle counts the tasks of an HTTP handler: calls, streams and connections in flight. Once
// the handler shuts down, it refuses new tasks, and its contexts end those in flight. Create one
// with [NewLifecycle]. It is safe for concurrent use.
type Lifecycle struct {
	// Draining ends when the shutdown begins. A task that would not end by itself finishes then.
	Draining context.Context
	// Cancelling ends when the time to finish is over. Tasks may still respond with an error.
	Cancelling context.Context
	// Cutting ends when tasks have to end without a response.
	Cutting context.Context

	idle context.Context // ends when the shutdown has begun and no task is in flight

	drain, cancel, cut, rest context.CancelFunc // end these contexts

	mu    sync.Mutex
	tasks int // guarded by mu
}

// NewLifecycle returns a Lifecycle without tasks.
func NewLifecycle() *Lifecycle {
	l := &Lifecycle{}
	l.Draining, l.drain = context.WithCancel(context.Background())
	l.Cancelling, l.cancel = context.WithCancel(context.Background())
	l.Cutting, l.cut = context.WithCancel(context.Background())
	l.idle, l.rest = context.WithCancel(context.Background())
	return l
}

// Begin counts a task until [Lifecycle.End]. It returns false if the handler is shutting down.
func (l *Lifecycle) Begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Draining.Err() != nil {
		return false
	}
	l.tasks++
	return true
}

// Hold is like Begin, but also works during the shutdown, for a task that carries the response of
// another task.
func (l *Lifecycle) Hold() { l.add(1) }

// End undoes Begin or Hold.
func (l *Lifecycle) End() { l.add(-1) }

func (l *Lifecycle) add(tasks int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tasks += tasks
	if l.tasks == 0 && l.Draining.Err() != nil {
		l.rest()
	}
}

// Shutdown refuses further tasks and lets those in flight finish until ctx ends. Then it cancels
// them, gives them [CancelGrace] to respond, cuts the rest, and returns the cause of ctx.
func (l *Lifecycle) Shutdown(ctx context.Context) error {
	l.drain()
	l.add(0)
	select {
	case <-l.idle.Done():
		return nil
	case <-ctx.Done():
	}
	l.cancel()
	if !l.wait() {
		l.cut()
		l.wait() // tasks end at once, except methods that ignore their context
	}
	return context.Cause(ctx)
}

// wait waits for the tasks in flight, at most for CancelGrace. It reports whether they have ended.
func (l *Lifecycle) wait() bool {
	select {
	case <-l.idle.Done():
		return true
	case <-time.After(CancelGrace):
		return false
	}
}

// Close refuses further tasks, and cancels and cuts those in flight without waiting. It may be
// called more than once.
func (l *Lifecycle) Close() {
	l.drain()
	l.cancel()
	l.cut()
}
