package streamable

import (
	"container/list"
	"context"
	"errors"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/httpserve"
)

// An EventStore keeps the messages of the streams of legacy sessions, so that a client can resume a
// broken stream.
//
// The messages of one stream are appended one after the other, with consecutive numbers. A store
// may drop old messages at any time; the client then misses them. It must be safe for concurrent
// use. A message sent during a request waits until it is stored, for at most 10 seconds; then it is
// sent without being stored, and ctx ends. Nothing else waits for a store: no lock is held while it
// works.
type EventStore interface {
	// Append stores the next message of a stream. It may keep its data, which does not change.
	// The error is [ErrTooLarge] if the store cannot keep a message of that size.
	Append(ctx context.Context, session, stream string, e Event) error

	// After returns the stored messages of a stream with numbers larger than seq, in order. An
	// unknown stream has none.
	After(ctx context.Context, session, stream string, seq uint64) ([]Event, error)

	// Forget drops everything of a session that has ended.
	Forget(ctx context.Context, session string) error
}

// An Event is a message in an [EventStore].
type Event struct {
	Seq     uint64
	Data    []byte // JSON; must not be changed
	Request string // JSON of the id of the request that the stream belongs to; "" for none
	Last    bool   // nothing follows
}

// ErrTooLarge is returned for a message that is larger than an event store keeps.
var ErrTooLarge = errors.New("streamable: message is too large for the event store")

// MemoryLimits are the limits of [NewMemoryStore], which drops the oldest messages first.
type MemoryLimits struct {
	SessionBytes  int // of one session; zero means 4 MiB
	SessionEvents int // of one session; zero means 1000
	TotalBytes    int // of all sessions; zero means 64 MiB
}

const (
	//limit:session bytes of messages that are kept for clients that resume a stream | the oldest are dropped
	defaultSessionBytes = 4 << 20
	//limit:session messages that are kept for clients that resume a stream | the oldest are dropped
	defaultSessionEvents = 1000
	//limit:server bytes of messages that are kept for clients that resume a stream | the oldest are dropped
	defaultTotalBytes = 64 << 20
)

// firstEvents is how many events a session has room for after its first one.
const firstEvents = 8

// eventOverhead is the approximate cost of an event besides its data.
const eventOverhead = 100

// NewMemoryStore returns a store that keeps messages in memory within limits.
func NewMemoryStore(limits MemoryLimits) EventStore {
	limits.SessionEvents = httpserve.Positive(limits.SessionEvents, defaultSessionEvents)
	limits.TotalBytes = httpserve.Positive(limits.TotalBytes, defaultTotalBytes)
	limits.SessionBytes = min(httpserve.Positive(limits.SessionBytes, defaultSessionBytes), limits.TotalBytes)
	return &memoryStore{limits: limits, sessions: make(map[string]*list.Element)}
}

type memoryStore struct {
	limits MemoryLimits

	mu       sync.Mutex
	sessions map[string]*list.Element // of order
	order    list.List                // of *sessionEvents, by last append
	bytes    int
}

// sessionEvents are the messages of one session in order.
type sessionEvents struct {
	name   string
	events []storedEvent
	bytes  int
}

type storedEvent struct {
	stream string
	Event
}

func (e *storedEvent) size() int { return len(e.Data) + eventOverhead }

func (m *memoryStore) Append(_ context.Context, session, stream string, e Event) error {
	event := storedEvent{stream, e}
	if event.size() > m.limits.SessionBytes {
		return ErrTooLarge
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.sessions[session]
	if at == nil {
		at = m.order.PushBack(&sessionEvents{name: session, events: make([]storedEvent, 0, firstEvents)})
		m.sessions[session] = at
	}
	m.order.MoveToBack(at)
	s := at.Value.(*sessionEvents)
	s.events = append(s.events, event)
	s.bytes += event.size()
	m.bytes += event.size()
	for s.bytes > m.limits.SessionBytes || len(s.events) > m.limits.SessionEvents {
		m.dropFirst(at)
	}
	for m.bytes > m.limits.TotalBytes {
		m.dropFirst(m.order.Front())
	}
	return nil
}

func (m *memoryStore) After(_ context.Context, session, stream string, seq uint64) ([]Event, error) {
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
		if e := &events[from-1]; e.stream == stream && e.Seq <= seq {
			break
		}
	}
	var found []Event
	for i := range events[from:] {
		if e := &events[from+i]; e.stream == stream {
			found = append(found, e.Event)
		}
	}
	return found, nil
}

func (m *memoryStore) Forget(_ context.Context, session string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at := m.sessions[session]; at != nil {
		m.remove(at)
	}
	return nil
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
