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

// A memoryStore keeps messages in memory. It drops the oldest ones first.
type memoryStore struct {
	sessionBytes, sessionEvents int // limits of one session
	totalBytes                  int // the limit of all sessions

	mu       sync.Mutex
	sessions map[string]*list.Element // of order
	order    list.List                // of *sessionEvents, by last append
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
	s.events = append(s.events, next)
	s.bytes += next.size()
	m.bytes += next.size()
	for s.bytes > m.sessionBytes || len(s.events) > m.sessionEvents {
		m.dropFirst(at)
	}
	for m.bytes > m.totalBytes {
		m.dropFirst(m.order.Front())
	}
	return nil
}

func (m *memoryStore) after(_ context.Context, session, stream string, seq uint64) ([]event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.sessions[session]
	if at == nil {
		return nil, nil
	}
	// Most readers have missed only the newest.
	events := at.Value.(*sessionEvents).events
	from := len(events)
	for ; from > 0; from-- {
		if e := &events[from-1]; e.stream == stream && e.seq <= seq {
			break
		}
	}
	var found []event
	for i := range events[from:] {
		if e := &events[from+i]; e.stream == stream {
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

// dropFirst drops the oldest message of a session, and the session with its last message.
func (m *memoryStore) dropFirst(at *list.Element) {
	s := at.Value.(*sessionEvents)
	size := s.events[0].size()
	s.bytes -= size
	m.bytes -= size
	s.events[0] = storedEvent{}
	s.events = s.events[1:]
	if len(s.events) == 0 {
		m.remove(at)
	}
}

func (m *memoryStore) remove(at *list.Element) {
	s := m.order.Remove(at).(*sessionEvents)
	m.bytes -= s.bytes
	delete(m.sessions, s.name)
}
