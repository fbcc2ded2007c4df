package middleware

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Concurrency lets limit calls of tools, prompts, resources and completions run at a time, and queue more wait for their turn,
// first come, first served. Who finds the queue full gets a [BusyError]; who waits and is cancelled, or out of time, leaves
// it. Contents that a resource sends from a reader are sent after its turn is over. It panics when limit is less than 1, or queue is negative.
func Concurrency(limit, queue int) mcpkit.Middleware {
	return ConcurrencyBy(limit, queue, func(*mcpkit.Call) struct{} { return struct{}{} })
}

// ConcurrencyBy is [Concurrency] with a limit and a queue for each key: [CallerOf], [TargetOf] or a function of the
// program's own. Only keys that have calls take memory.
func ConcurrencyBy[K comparable](limit, queue int, key func(*mcpkit.Call) K) mcpkit.Middleware {
	if limit < 1 || queue < 0 {
		panic(fmt.Sprintf("middleware: Concurrency(%d, %d): at least 1 call has to run, and at least 0 wait", limit, queue))
	}
	turns := turnTable[K]{limit: limit, queue: queue, byKey: map[K]*turns{}}
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			if !works(call) {
				return next(ctx, call)
			}
			k := key(call)
			if err := turns.acquire(ctx, k); err != nil {
				return nil, err
			}
			// A method that is overdue keeps its turn until it returns.
			defer call.OnReturn(func() { turns.release(k) })
			return next(ctx, call)
		}
	}
}

// A BusyError says that as many calls run and wait as may.
type BusyError struct {
	// Running and Waiting are how many calls there were.
	Running, Waiting int
}

// Error tells the caller to try again.
func (e *BusyError) Error() string { return "too many calls at a time; try again when others are done" }

// UserMessage is the same text: it is meant for the caller.
func (e *BusyError) UserMessage() string { return e.Error() }

// ErrorDetails are for programs.
func (e *BusyError) ErrorDetails() map[string]any {
	return map[string]any{"running": e.Running, "waiting": e.Waiting}
}

// RetryAfter is a second: nobody knows when a turn is free, and who comes back at once finds the queue as it is.
func (e *BusyError) RetryAfter() time.Duration { return time.Second }

func (e *BusyError) outcome() Outcome { return Limited }

// turnTable hands out turns for each key.
type turnTable[K comparable] struct {
	limit, queue int

	mu    sync.Mutex
	byKey map[K]*turns // guarded by mu; keys without calls are not there
}

// turns are the calls of one key. A turn that ends is given to the first who waits, so running never falls while some do.
type turns struct {
	running int
	waiting list.List // of chan struct{}, closed when it is the waiter's turn
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
	case <-turn: // it came while the context ended: it is passed on
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

// pass gives a turn to the first who waits. t.mu is held.
func (t *turnTable[K]) pass(key K, s *turns) {
	if first := s.waiting.Front(); first != nil {
		close(s.waiting.Remove(first).(chan struct{}))
		return
	}
	if s.running--; s.running == 0 {
		delete(t.byKey, key)
	}
}
