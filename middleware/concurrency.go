package middleware

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Concurrency runs at most limit calls of tools, prompts, resources and completions at a time, for
// all callers together. [By] gives each key a limit and a queue of its own. Up to queue further
// calls wait for their turn, in the order in which they come; calls beyond that get a [BusyError].
// A waiting call that is cancelled or times out leaves the queue.
//
// The turn of a call ends when its method has returned, even if a resource is still being sent from
// a reader. Concurrency panics if limit is less than 1 or queue is negative.
func Concurrency(limit, queue int, opts ...KeyOption) mcpkit.Middleware {
	if limit < 1 || queue < 0 {
		panic(fmt.Sprintf("middleware: Concurrency(%d, %d): the limit is less than 1, or the queue less than 0", limit, queue))
	}
	return lastKey(opts, By(func(*mcpkit.Call) struct{} { return struct{}{} })).concurrency(limit, queue)
}

func (key keyFunc[K]) concurrency(limit, queue int) mcpkit.Middleware {
	turns := turnTable[K]{limit: limit, queue: queue, byKey: map[K]*turns{}}
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			if !runsUserCode(call) {
				return next(ctx, call)
			}
			k := key(call)
			if err := turns.acquire(ctx, k); err != nil {
				return nil, err
			}
			// An overdue method keeps its turn until it returns.
			defer call.OnReturn(func() { turns.release(k) })
			return next(ctx, call)
		}
	}
}

// A BusyError reports that [Concurrency] has no turn and no place in the queue for a call.
type BusyError struct {
	// Running and Waiting are the numbers of calls with the same key.
	Running, Waiting int
}

// Error asks the caller to try again.
func (e *BusyError) Error() string { return "too many calls at a time; try again when others are done" }

// UserMessage returns the same text, which is meant for the caller.
func (e *BusyError) UserMessage() string { return e.Error() }

// ErrorDetails returns the numbers, for programs.
func (e *BusyError) ErrorDetails() map[string]any {
	return map[string]any{"running": e.Running, "waiting": e.Waiting}
}

// RetryAfter returns one second. When a turn will be free is not known.
func (e *BusyError) RetryAfter() time.Duration { return time.Second }

func (e *BusyError) outcome() Outcome { return Limited }

// A turnTable gives turns to calls, for each key.
type turnTable[K comparable] struct {
	limit, queue int

	mu    sync.Mutex
	byKey map[K]*turns // guarded by mu; has only keys with calls
}

// turns counts the calls of one key. A turn that ends goes to the first waiting call.
type turns struct {
	running int
	waiting list.List // of chan struct{}, closed when the call gets its turn
}

func (t *turnTable[K]) acquire(ctx context.Context, key K) error {
	t.mu.Lock()
	s := t.byKey[key]
	if s == nil {
		s = &turns{}
		t.byKey[key] = s
	}
	if s.running < t.limit {
		s.running++
		t.mu.Unlock()
		return nil
	}
	if s.waiting.Len() >= t.queue {
		err := &BusyError{Running: s.running, Waiting: s.waiting.Len()}
		t.mu.Unlock()
		return err
	}
	turn := make(chan struct{})
	place := s.waiting.PushBack(turn)
	t.mu.Unlock()

	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-turn: // the turn came while ctx ended
		t.pass(key, s)
	default:
		s.waiting.Remove(place)
	}
	return ctx.Err()
}

func (t *turnTable[K]) release(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pass(key, t.byKey[key])
}

// pass gives a turn to the first waiting call. The caller holds t.mu.
func (t *turnTable[K]) pass(key K, s *turns) {
	if first := s.waiting.Front(); first != nil {
		close(s.waiting.Remove(first).(chan struct{}))
		return
	}
	if s.running--; s.running == 0 {
		delete(t.byKey, key)
	}
}
