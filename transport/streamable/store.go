package streamable

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// An eventStore keeps the messages of the streams of legacy sessions, so that a client can resume a
// broken stream: a [memoryStore], or the logs of a fleet, by its [replica]. Sessions are named by the
// digests of their IDs.
//
// The messages of one stream are appended one after the other, with consecutive numbers. A store
// may drop old messages at any time; the client then misses them. It is safe for concurrent use.
type eventStore interface {
	// append stores the next message of a stream. It keeps its data, which does not change. The
	// error is errTooLarge if the store cannot keep a message of that size.
	append(ctx context.Context, session, stream string, e event) error

	// after returns the stored messages of a stream with numbers larger than seq, in order. An
	// unknown stream has none.
	after(ctx context.Context, session, stream string, seq uint64) ([]event, error)
}

// An event is a message in an [eventStore].
type event struct {
	seq     uint64
	data    []byte // JSON; must not be changed
	request string // JSON of the id of the request that the stream belongs to; "" for none
	last    bool   // nothing follows
}

var errTooLarge = errors.New("streamable: message is too large for the event store")

const (
	defaultSessionBytes  = 4 << 20  // bytes of messages that are kept for clients that resume a stream
	defaultSessionEvents = 1000     // messages that are kept for clients that resume a stream
	defaultTotalBytes    = 64 << 20 // bytes of messages that are kept for clients that resume a stream
)

// eventOverhead is the approximate cost of an event besides its data.
const eventOverhead = 100

// A memoryStore keeps messages in memory.
type memoryStore struct {
	sessionBytes, sessionEvents int // limits of one session
	totalBytes                  int // the limit of all sessions

	mu       sync.Mutex
	sessions map[string]*list.Element // of order
	order    list.List                // of *sessionEvents, by their last messages
	bytes    int
}

func newMemoryStore() *memoryStore {
	return &memoryStore{
		sessionBytes: defaultSessionBytes, sessionEvents: defaultSessionEvents, totalBytes: defaultTotalBytes,
		sessions: make(map[string]*list.Element),
	}
}

// sessionEvents are the messages of one session in order.
type sessionEvents struct {
	name   string
	events []storedEvent
	bytes  int
}

type storedEvent struct {
	stream string
	event
}

func (e *storedEvent) size() int { return len(e.data) + eventOverhead }

// append implements [eventStore]. It drops the oldest messages of the session beyond its limits, and
// beyond those of all, the sessions that were silent longest.
func (m *memoryStore) append(_ context.Context, session, stream string, e event) error {
	next := storedEvent{stream, e}
	if next.size() > m.sessionBytes {
		return errTooLarge
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.sessions[session]
	if at == nil {
		at = m.order.PushBack(&sessionEvents{name: session})
		m.sessions[session] = at
	}
	m.order.MoveToBack(at)
	s := at.Value.(*sessionEvents)
	m.bytes -= s.bytes
	s.events = append(s.events, next)
	s.bytes += next.size()
	for s.bytes > m.sessionBytes || len(s.events) > m.sessionEvents {
		s.bytes -= s.events[0].size()
		s.events[0] = storedEvent{} // for the garbage collector
		s.events = s.events[1:]
	}
	m.bytes += s.bytes
	for m.bytes > m.totalBytes {
		m.remove(m.order.Front())
	}
	return nil
}

// after implements [eventStore].
func (m *memoryStore) after(_ context.Context, session, stream string, seq uint64) (found []event, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.sessions[session]
	if at == nil {
		return nil, nil
	}
	all := at.Value.(*sessionEvents).events
	first := len(all) // those that are asked for are mostly the last ones
	for first > 0 && (all[first-1].stream != stream || all[first-1].seq > seq) {
		first--
	}
	for _, e := range all[first:] {
		if e.stream == stream {
			found = append(found, e.event)
		}
	}
	return found, nil
}

// forget drops everything of a session that has ended.
func (m *memoryStore) forget(session string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at := m.sessions[session]; at != nil {
		m.remove(at)
	}
}

func (m *memoryStore) remove(at *list.Element) {
	s := m.order.Remove(at).(*sessionEvents)
	m.bytes -= s.bytes
	delete(m.sessions, s.name)
}
