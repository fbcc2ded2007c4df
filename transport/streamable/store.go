package streamable

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// An eventStore keeps the messages of the streams of legacy sessions, so that a client can resume a
// broken stream: a [memoryStore], or the logs of a fleet, by its [replica].
//
// The messages of one stream are appended one after the other, with consecutive numbers. A store
// may drop old messages at any time; the client then misses them. It is safe for concurrent use.
type eventStore interface {
	// append stores the next message of a stream. It keeps its data, which does not change. The
	// error is errTooLarge if the store cannot keep a message of that size.
	append(ctx context.Context, s *legacySession, e event) error

	// after returns the stored messages of a stream with numbers larger than seq, in order. An
	// unknown stream has none.
	after(ctx context.Context, s *legacySession, stream string, seq uint64) ([]event, error)
}

// An event is a message in an [eventStore].
type event struct {
	stream  string // its name
	seq     uint64
	data    []byte // JSON; must not be changed
	request string // JSON of the id of the request that the stream belongs to; "" for none
	last    bool   // nothing follows
}

func (e *event) size() int { return len(e.data) + eventOverhead }

var errTooLarge = errors.New("streamable: message is too large for the event store")

const (
	maxSessionBytes  = 4 << 20  // bytes of messages that are kept for clients that resume a stream
	maxSessionEvents = 1000     // messages that are kept for clients that resume a stream
	maxTotalBytes    = 64 << 20 // bytes of messages that are kept for clients that resume a stream

	// eventOverhead is the approximate cost of an event besides its data.
	eventOverhead = 100
)

// A memoryStore keeps messages in memory.
type memoryStore struct {
	sessionBytes, sessionEvents int // limits of one session
	totalBytes                  int // the limit of all sessions

	mu    sync.Mutex
	order list.List // of *legacySession that have messages, by their last ones; guarded by mu
	bytes int       // guarded by mu
}

// A backlog has the messages of one session. The mutex of the memoryStore guards it.
type backlog struct {
	events []event
	bytes  int
	place  *list.Element // in the order of sessions; nil without messages
}

// append implements [eventStore]. It drops the oldest messages of the session beyond its limits, and
// beyond those of all, the sessions that were silent longest.
func (m *memoryStore) append(_ context.Context, s *legacySession, e event) error {
	if e.size() > m.sessionBytes {
		return errTooLarge
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := &s.backlog
	if b.place == nil {
		b.place = m.order.PushBack(s)
	}
	m.order.MoveToBack(b.place)
	m.bytes -= b.bytes
	b.events = append(b.events, e)
	b.bytes += e.size()
	for b.bytes > m.sessionBytes || len(b.events) > m.sessionEvents {
		b.bytes -= b.events[0].size()
		b.events[0] = event{} // for the garbage collector
		b.events = b.events[1:]
	}
	m.bytes += b.bytes
	for m.bytes > m.totalBytes {
		m.remove(m.order.Front().Value.(*legacySession))
	}
	return nil
}

// after implements [eventStore].
func (m *memoryStore) after(_ context.Context, s *legacySession, stream string, seq uint64) (found []event, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := s.backlog.events
	first := len(all) // those that are asked for are mostly the last ones
	for first > 0 && (all[first-1].stream != stream || all[first-1].seq > seq) {
		first--
	}
	for _, e := range all[first:] {
		if e.stream == stream {
			found = append(found, e)
		}
	}
	return found, nil
}

// forget drops everything of a session that has ended.
func (m *memoryStore) forget(s *legacySession) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.backlog.place != nil {
		m.remove(s)
	}
}

// remove drops the messages of a session that has some. The caller holds mu.
func (m *memoryStore) remove(s *legacySession) {
	m.order.Remove(s.backlog.place)
	m.bytes -= s.backlog.bytes
	s.backlog = backlog{}
}
