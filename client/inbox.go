package client

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
)

// Limits of the notifications of one call that wait for its handlers.
const (
	maxInbox      = 1024    // notifications of one call that wait for its handlers
	maxInboxBytes = 4 << 20 // bytes of these notifications, except the first
)

// errBehind is why a request fails for which [OnNotification] cannot receive all.
var errBehind = fmt.Errorf("more than %d notifications or %d bytes wait for the program", maxInbox, maxInboxBytes)

// An inbox passes the notifications of one call to its handlers: in order, one at a time, and never
// after the call. The zero value is open.
type inbox struct {
	mu     sync.Mutex
	queue  []heard       // guarded by mu
	bytes  int           // of the queue; guarded by mu
	busy   chan struct{} // closed when the queue is done; nil while idle; guarded by mu
	closed bool          // guarded by mu
}

// A heard is the work for a notification of size bytes.
type heard struct {
	do   func()
	size int
}

// push queues f, for another goroutine. If too much is queued, it returns false, or queues full
// instead, unless that is nil, and nothing more.
func (b *inbox) push(log *slog.Logger, f func(), size int, full func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || len(b.queue) >= maxInbox || b.bytes > 0 && b.bytes+size > maxInboxBytes {
		if !b.closed && full != nil {
			b.closed, b.queue = true, append(b.queue, heard{full, 0})
		}
		return b.closed
	}
	b.queue = append(b.queue, heard{f, size})
	b.bytes += size
	if b.busy == nil {
		b.busy = make(chan struct{})
		// Ends when the queue is empty or the call has ended.
		go b.work(log)
	}
	return true
}

func (b *inbox) work(log *slog.Logger) {
	returned := false
	defer func() {
		if !returned { // by runtime.Goexit, as testing.T.FailNow does
			go b.work(log)
		}
	}()
	for f := b.next(); f != nil; f = b.next() {
		perform(log, f)
	}
	returned = true
}

// next takes a function from the queue. It returns nil and marks the inbox as idle if the queue is
// empty.
func (b *inbox) next() func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		close(b.busy)
		b.busy, b.queue = nil, nil
		return nil
	}
	first := b.queue[0]
	b.queue = b.queue[1:]
	b.bytes -= first.size
	return first.do
}

// perform calls f and logs a panic, which input of the server may have caused.
func perform(log *slog.Logger, f func()) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("client: a handler panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	f()
}

// close waits until the queue is done. If ctx is done first, it drops the rest of the queue.
func (b *inbox) close(ctx context.Context) {
	for {
		b.mu.Lock()
		busy := b.busy
		if busy == nil || ctx.Err() != nil {
			b.closed, b.queue, b.bytes = true, nil, 0
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
		}
	}
}
