package httpserve

import (
	"context"
	"sync"
	"time"
)

// CancelGrace is how long calls that were cancelled when the context of [Lifecycle.Shutdown] ended
// may take to respond, and again how long tasks may take to end after Cut. So Shutdown takes at
// most twice this time longer than its context.
const CancelGrace = time.Second

// A Task is a call, stream or connection in flight. Its methods may be called concurrently and more
// than once, in this order, and must not block.
type Task interface {
	// Drain is called when the shutdown begins. It asks the task to finish. A task that ends soon
	// anyway ignores it.
	Drain()

	// Cancel is called when the time to finish is over. The task may still respond with an error.
	Cancel()

	// Cut ends the task without a response.
	Cut()
}

// A Lifecycle tracks the tasks of an HTTP handler. Once the handler shuts down, it refuses new
// tasks and ends those in flight. Create one with [NewLifecycle]. It is safe for concurrent use.
type Lifecycle struct {
	draining chan struct{} // closed when the shutdown begins
	drained  chan struct{} // closed when the shutdown has begun and no task is in flight

	mu    sync.Mutex
	tasks map[Task]struct{} // guarded by mu
}

// NewLifecycle returns a Lifecycle without tasks.
func NewLifecycle() *Lifecycle {
	return &Lifecycle{draining: make(chan struct{}), drained: make(chan struct{}), tasks: make(map[Task]struct{})}
}

// Begin adds t to the tasks in flight until [Lifecycle.End]. It returns false if the handler is
// shutting down.
func (l *Lifecycle) Begin(t Task) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isDraining() {
		return false
	}
	l.tasks[t] = struct{}{}
	return true
}

// Hold is like Begin, but also works during the shutdown, for a task that carries the response of
// another task.
func (l *Lifecycle) Hold(t Task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tasks[t] = struct{}{}
}

// End removes t.
func (l *Lifecycle) End(t Task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.tasks, t)
	l.closeDrained()
}

// closeDrained closes drained if the shutdown has begun and no task is in flight. The caller holds
// mu.
func (l *Lifecycle) closeDrained() {
	if l.isDraining() && len(l.tasks) == 0 {
		closeOnce(l.drained)
	}
}

// Draining returns a channel that is closed when the shutdown begins.
func (l *Lifecycle) Draining() <-chan struct{} { return l.draining }

func (l *Lifecycle) isDraining() bool {
	select {
	case <-l.draining:
		return true
	default:
		return false
	}
}

// drain refuses further tasks and drains those in flight.
func (l *Lifecycle) drain() {
	l.mu.Lock()
	first := !l.isDraining()
	closeOnce(l.draining)
	l.closeDrained()
	l.mu.Unlock()
	if first {
		l.Each(Task.Drain)
	}
}

// Each calls do for every task in flight, without holding mu.
func (l *Lifecycle) Each(do func(Task)) {
	l.mu.Lock()
	all := make([]Task, 0, len(l.tasks))
	for t := range l.tasks {
		all = append(all, t)
	}
	l.mu.Unlock()
	for _, t := range all {
		do(t)
	}
}

// Shutdown refuses further tasks and lets those in flight finish until ctx ends. Then it cancels
// them, gives them [CancelGrace] to respond, cuts the rest, and returns the cause of ctx.
func (l *Lifecycle) Shutdown(ctx context.Context) error {
	l.drain()
	select {
	case <-l.drained:
		return nil
	case <-ctx.Done():
	}
	l.Each(Task.Cancel)
	grace := time.NewTimer(CancelGrace)
	defer grace.Stop()
	select {
	case <-l.drained:
	case <-grace.C:
		l.Each(Task.Cut)
		// Tasks end at once, except methods that ignore their context.
		grace.Reset(CancelGrace)
		select {
		case <-l.drained:
		case <-grace.C:
		}
	}
	return context.Cause(ctx)
}

// Close refuses further tasks, and cancels and cuts those in flight without waiting. It may be
// called more than once.
func (l *Lifecycle) Close() {
	l.drain()
	l.Each(Task.Cancel)
	l.Each(Task.Cut)
}

// closeOnce closes c unless it is closed already. The caller holds the lock that guards c.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}
