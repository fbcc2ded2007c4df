package fleet

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
)

const (
	maxWaiting      = 1024        // messages that wait for a subscription, or to be sent
	maxWaitingBytes = 4 * MaxData // bytes of these messages
)

var errClosed = errors.New("fleet: the engine was closed")

// A Hub is the part of a [Bus] that is in one process: an engine delivers to it what arrives, and
// it calls the subscriptions. Each has a goroutine and a queue, so a slow one does not delay others.
// The zero value is ready to use. All methods are safe for concurrent use.
type Hub struct {
	mu     sync.Mutex
	topics map[string][]*subscription // guarded by mu
	closed bool                       // guarded by mu
	ended  sync.WaitGroup
}

type subscription struct {
	deliver func(topic string, data []byte)
	missed  func()
	wake    chan struct{} // has space for one
	end     context.CancelFunc

	mu    sync.Mutex
	queue []queued // guarded by mu
	bytes int      // of the queue; guarded by mu
	lost  bool     // messages were dropped; guarded by mu
}

type queued struct {
	topic string
	data  []byte
}

// Subscribe implements [Bus]. ended is called when the subscription has ended; it may be nil. The
// error is that of ctx if it has ended, or another one after Close.
func (h *Hub) Subscribe(ctx context.Context, topics []string, deliver func(topic string, data []byte), missed, ended func()) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &subscription{deliver: deliver, missed: missed, wake: make(chan struct{}, 1), end: cancel}
	topics = slices.Compact(slices.Sorted(slices.Values(topics)))
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		cancel()
		return errClosed
	}
	if h.topics == nil {
		h.topics = map[string][]*subscription{}
	}
	for _, topic := range topics {
		h.topics[topic] = append(h.topics[topic], s)
	}
	// Ends with ctx, or with Close.
	h.ended.Go(func() {
		s.run(ctx)
		cancel()
		h.remove(s, topics)
		if ended != nil {
			ended()
		}
	})
	return nil
}

func (h *Hub) remove(s *subscription, topics []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, topic := range topics {
		all := h.topics[topic]
		i := slices.Index(all, s)
		if h.topics[topic] = slices.Delete(all, i, i+1); len(h.topics[topic]) == 0 {
			delete(h.topics, topic)
		}
	}
}

// Topics returns the topics that have a subscription, sorted.
func (h *Hub) Topics() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.topics))
}

// Deliver queues a message for the subscriptions of the topic. They share data, which must not
// change.
func (h *Hub) Deliver(topic string, data []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.topics[topic] {
		s.add(&queued{topic, data})
	}
}

// Missed tells all subscriptions that messages may have been lost.
func (h *Hub) Missed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, all := range h.topics {
		for _, s := range all {
			s.add(nil)
		}
	}
}

// Close ends all subscriptions, and waits until their functions have returned. It may be called more
// than once, but not by those functions.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	for _, all := range h.topics {
		for _, s := range all {
			s.end()
		}
	}
	h.mu.Unlock()
	h.ended.Wait()
}

// add queues a message; nil stands for those that may have been lost.
func (s *subscription) add(m *queued) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m == nil || s.lost || len(s.queue) >= maxWaiting || s.bytes+len(m.data) > maxWaitingBytes {
		s.lost = true
	} else {
		s.queue = append(s.queue, *m)
		s.bytes += len(m.data)
	}
	select {
	case s.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// run calls the functions of the subscription until ctx ends.
func (s *subscription) run(ctx context.Context) {
	for {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return
		}
		s.mu.Lock()
		queue, lost := s.queue, s.lost
		s.queue, s.bytes, s.lost = nil, 0, false
		s.mu.Unlock()
		for _, m := range queue {
			if ctx.Err() != nil {
				return
			}
			s.deliver(m.topic, m.data)
		}
		if lost && ctx.Err() == nil {
			s.missed()
		}
	}
}
