package httpserve

import (
	"context"
	"sync"
	"time"
)

// CancelGrace is how long calls that were cancelled at the end of the context of [Lifecycle.Shutdown] have to be answered, and what was
// cut then to end: Shutdown takes at most twice that longer than its context.
const CancelGrace = time.Second

// A Task is something that a handler has in flight: a call, a stream or a connection. Its methods may be called
// concurrently and more than once, must not wait, and come in this order.
type Task interface {
	// Drain is called when the handler begins to shut down. It asks the task to end in its own time. A task that ends
	// soon anyway ignores it.
	Drain()

	// Cancel is called when that time is over. The task may still answer that it was cancelled.
	Cancel()

	// Cut ends the task without an answer.
	Cut()
}

// A Lifecycle is the life of an HTTP handler: it counts the tasks in flight, refuses more once the handler shuts down, and
// ends those that there are. Make one with [NewLifecycle]. It is safe for concurrent use.
type Lifecycle struct {
	draining chan struct{} // closed when the handler begins to shut down
	drained  chan struct{} // closed when it did and no task is in flight

	mu    sync.Mutex
	tasks map[Task]struct{} // guarded by mu
}

// NewLifecycle returns a Lifecycle without tasks.
func NewLifecycle() *Lifecycle {
	return &Lifecycle{draining: make(chan struct{}), drained: make(chan struct{}), tasks: make(map[Task]struct{})}
}

// Begin counts t as in flight until [Lifecycle.End]. It reports false when the handler is shutting down.
func (l *Lifecycle) Begin(t Task) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isDraining() {
		return false
	}
	l.tasks[t] = struct{}{}
	return true
}

// Hold is Begin for a task that carries the response of another one: it may begin while the handler shuts down.
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
	l.settle()
}

// settle closes drained when it is time. The caller holds mu.
func (l *Lifecycle) settle() {
	if l.isDraining() && len(l.tasks) == 0 {
		closeOnce(l.drained)
	}
}

// Draining is closed when the handler begins to shut down.
func (l *Lifecycle) Draining() <-chan struct{} { return l.draining }

// isDraining reports whether the handler shuts down.
func (l *Lifecycle) isDraining() bool {
	select {
	case <-l.draining:
		return true
	default:
		return false
	}
}

// drain refuses further tasks, and asks those in flight to end.
func (l *Lifecycle) drain() {
	l.mu.Lock()
	first := !l.isDraining()
	closeOnce(l.draining)
	l.settle()
	l.mu.Unlock()
	if first {
		l.each(Task.Drain)
	}
}

// each calls do for every task in flight, without the lock.
func (l *Lifecycle) each(do func(Task)) {
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

// Shutdown refuses further tasks and waits for those in flight until ctx ends. Then it cancels them, gives them
// [CancelGrace] to answer, and cuts what is left. The error is the cause of ctx's end when tasks had to be cancelled.
func (l *Lifecycle) Shutdown(ctx context.Context) error {
	l.drain()
	select {
	case <-l.drained:
		return nil
	case <-ctx.Done():
	}
	l.each(Task.Cancel)
	grace := time.NewTimer(CancelGrace)
	defer grace.Stop()
	select {
	case <-l.drained:
	case <-grace.C:
		l.each(Task.Cut)
		// What was cut ends at once, unless its method ignores its context.
		grace.Reset(CancelGrace)
		select {
		case <-l.drained:
		case <-grace.C:
		}
	}
	return context.Cause(ctx)
}

// Close refuses further tasks, and cancels and cuts those in flight. It does not wait for them, and may be called
// more than once.
func (l *Lifecycle) Close() {
	l.drain()
	l.each(Task.Cancel)
	l.each(Task.Cut)
}

// closeOnce closes c unless it is closed; the caller holds the lock that guards c.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}
