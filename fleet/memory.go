package fleet

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet/internal/ordered"
)

// MemoryOptions limits what a [Memory] keeps. The zero value is ready to use.
type MemoryOptions struct {
	MaxRecords int // records and entries of logs; zero means [DefaultMaxRecords]
	MaxBytes   int // of records and logs, with what their indexes take; zero means [DefaultMaxBytes]
}

const (
	// DefaultMaxRecords is the default of [MemoryOptions].MaxRecords.
	DefaultMaxRecords = 1_000_000

	// DefaultMaxBytes is the default of [MemoryOptions].MaxBytes.
	DefaultMaxBytes = 512 << 20

	// The approximate cost of a record or a log, and of an entry, besides names and data.
	recordOverhead, entryOverhead = 320, 48
)

var errFull = errors.New("fleet: the engine in memory is full")

// A Memory is an [Engine] in the memory of one process. What it stores ends with the process, and
// is lost with it. When it is full, it refuses what is new until something expires or is deleted.
// Create one with [NewMemory].
type Memory struct {
	store  *memoryStore
	hub    Hub
	closed func()
}

var _ Engine = (*Memory)(nil)

// NewMemory returns an empty engine in memory. Limits below 1 mean the defaults.
func NewMemory(opts MemoryOptions) *Memory {
	if opts.MaxRecords <= 0 {
		opts.MaxRecords = DefaultMaxRecords
	}
	if opts.MaxBytes <= 0 {
		opts.MaxBytes = DefaultMaxBytes
	}
	s := &memoryStore{opts: opts, sets: map[string]*memorySet{}, logs: ordered.New[*memoryLog](), hubs: map[*Hub]struct{}{}}
	return s.open()
}

// Open returns another engine that shares all records, logs and messages with m, as if it were that
// of another replica. Each is closed by itself.
func (m *Memory) Open() *Memory { return m.store.open() }

// memoryStore is what engines in memory share.
type memoryStore struct {
	opts MemoryOptions

	mu       sync.Mutex
	sets     map[string]*memorySet      // guarded by mu; not empty
	logs     *ordered.Index[*memoryLog] // by path, in their groups; guarded by mu
	hubs     map[*Hub]struct{}          // of the open engines; guarded by mu
	revision uint64                     // the last one; guarded by mu
	records  int                        // with entries; guarded by mu
	bytes    int                        // guarded by mu
	ahead    time.Duration              // of the clock, in tests; guarded by mu
}

type (
	memorySet  = ordered.Index[memoryRecord]
	memoryItem = ordered.Item[memoryRecord]
)

type memoryRecord struct {
	data     []byte
	revision uint64
}

type memoryLog struct {
	entries []Entry
	last    uint64
	bytes   int // of the data
}

func (s *memoryStore) open() *Memory {
	m := &Memory{store: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hubs[&m.hub] = struct{}{}
	m.closed = sync.OnceFunc(func() {
		s.mu.Lock()
		delete(s.hubs, &m.hub)
		s.mu.Unlock()
		m.hub.Close()
	})
	return m
}

// begin locks the store, removes what has expired and returns the time. Unless it returns an
// error, the caller unlocks.
func (m *Memory) begin(ctx context.Context) (now time.Time, err error) {
	if err := ctx.Err(); err != nil {
		return now, err
	}
	s := m.store
	s.mu.Lock()
	if _, open := s.hubs[&m.hub]; !open {
		s.mu.Unlock()
		return now, errClosed
	}
	now = time.Now().Add(s.ahead)
	for name, in := range s.sets {
		s.forget(name, in.Expire(now)...)
	}
	s.drop(s.logs.Expire(now)...)
	return now, nil
}

// Ping implements [Engine].
func (m *Memory) Ping(ctx context.Context) error {
	_, err := m.begin(ctx)
	if err == nil {
		m.store.mu.Unlock()
	}
	return err
}

// Close implements [Engine]. It ends the subscriptions of this engine. What is stored stays, for
// the engines that share it.
func (m *Memory) Close() error {
	m.closed()
	return nil
}

// takes returns an error if there is no space for so much more.
func (s *memoryStore) takes(records, bytes int) error {
	if records > 0 && s.records+records > s.opts.MaxRecords || bytes > 0 && s.bytes+bytes > s.opts.MaxBytes {
		return errFull
	}
	return nil
}

// Get implements [Records].
func (m *Memory) Get(ctx context.Context, set, key string) (Record, error) {
	now, err := m.begin(ctx)
	if err != nil {
		return Record{}, err
	}
	defer m.store.mu.Unlock()
	r := m.store.record(set, key)
	if r == nil {
		return Record{}, ErrNotFound
	}
	return public(r, now), nil
}

// public returns a record for callers.
func public(r *memoryItem, now time.Time) Record {
	return Record{Key: r.Key, Group: r.Group, Data: r.Value.data, Revision: r.Value.revision, TTL: r.Expires().Sub(now)}
}

func (s *memoryStore) record(set, key string) *memoryItem {
	if in := s.sets[set]; in != nil {
		return in.Get(key)
	}
	return nil
}

// occupies returns the bytes that a record takes.
func occupies(r *memoryItem) int {
	return recordOverhead + len(r.Key) + len(r.Group) + len(r.Value.data)
}

// Create implements [Records].
func (m *Memory) Create(ctx context.Context, set string, r Record) (revision uint64, err error) {
	now, err := m.begin(ctx)
	if err != nil {
		return 0, err
	}
	s := m.store
	defer s.mu.Unlock()
	if s.record(set, r.Key) != nil {
		return 0, ErrExists
	}
	if err := s.takes(1, recordOverhead+len(r.Key)+len(r.Group)+len(r.Data)); err != nil {
		return 0, err
	}
	in := s.sets[set]
	if in == nil {
		in = ordered.New[memoryRecord]()
		s.sets[set] = in
	}
	own := in.Add(r.Key, r.Group, memoryRecord{data: r.Data})
	s.records++
	s.bytes += occupies(own)
	return s.schedule(in, own, now, r), nil
}

// schedule sets the times of a record and its revision, which it returns.
func (s *memoryStore) schedule(in *memorySet, own *memoryItem, now time.Time, r Record) (revision uint64) {
	s.revision++
	own.Value.revision = s.revision
	due := time.Time{}
	if r.Due > 0 {
		due = now.Add(r.Due - AtOnce)
	}
	in.Schedule(own, due, now.Add(r.TTL))
	return s.revision
}

// Update implements [Records].
func (m *Memory) Update(ctx context.Context, set string, r Record) (revision uint64, err error) {
	now, err := m.begin(ctx)
	if err != nil {
		return 0, err
	}
	s := m.store
	defer s.mu.Unlock()
	own := s.record(set, r.Key)
	switch {
	case own == nil:
		return 0, ErrNotFound
	case own.Value.revision != r.Revision:
		return 0, ErrConflict
	}
	more := len(r.Data) - len(own.Value.data)
	if err := s.takes(0, more); err != nil {
		return 0, err
	}
	own.Value.data = r.Data
	s.bytes += more
	return s.schedule(s.sets[set], own, now, r), nil
}

// Delete implements [Records].
func (m *Memory) Delete(ctx context.Context, set, key string, revision uint64) error {
	if _, err := m.begin(ctx); err != nil {
		return err
	}
	defer m.store.mu.Unlock()
	r := m.store.record(set, key)
	switch {
	case r == nil:
		return nil
	case revision != 0 && r.Value.revision != revision:
		return ErrConflict
	}
	m.store.sets[set].Remove(r)
	m.store.forget(set, r)
	return nil
}

// forget accounts for records that were removed from a set.
func (s *memoryStore) forget(set string, removed ...*memoryItem) {
	for _, r := range removed {
		s.records--
		s.bytes -= occupies(r)
	}
	if s.sets[set].Count("") == 0 {
		delete(s.sets, set)
	}
}

// read returns the records that find finds in a set.
func (m *Memory) read(ctx context.Context, set string, find func(in *memorySet, now time.Time) []*memoryItem) ([]Record, error) {
	now, err := m.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer m.store.mu.Unlock()
	in := m.store.sets[set]
	if in == nil {
		return nil, nil
	}
	var all []Record
	for _, r := range find(in, now) {
		all = append(all, public(r, now))
	}
	return all, nil
}

// Due implements [Records].
func (m *Memory) Due(ctx context.Context, set string, limit int) ([]Record, error) {
	return m.read(ctx, set, func(in *memorySet, now time.Time) []*memoryItem { return in.Due(now, limit) })
}

// List implements [Records].
func (m *Memory) List(ctx context.Context, set, group, after string, limit int) ([]Record, error) {
	return m.read(ctx, set, func(in *memorySet, _ time.Time) []*memoryItem { return in.List(group, after, limit) })
}

// Count implements [Records].
func (m *Memory) Count(ctx context.Context, set, group string) (int, error) {
	if _, err := m.begin(ctx); err != nil {
		return 0, err
	}
	defer m.store.mu.Unlock()
	in := m.store.sets[set]
	if in == nil {
		return 0, nil
	}
	return in.Count(group), nil
}

// path returns the key of a log. Names have no slash.
func path(group, log string) string { return group + "/" + log }

// Append implements [Logs].
func (m *Memory) Append(ctx context.Context, group, log string, e Entry, keep Keep) error {
	now, err := m.begin(ctx)
	if err != nil {
		return err
	}
	s := m.store
	defer s.mu.Unlock()
	own := s.logs.Get(path(group, log))
	l := &memoryLog{}
	if own != nil {
		l = own.Value
	}
	if e.Seq <= l.last {
		i, found := l.find(e.Seq)
		if found && string(l.entries[i].Data) == string(e.Data) {
			return nil
		}
		return ErrConflict
	}
	// What the entry replaces makes room for it.
	dropped, freed := 0, 0
	for dropped < len(l.entries) && (len(l.entries)-dropped >= keep.Entries || l.bytes-freed+len(e.Data) > keep.Bytes) {
		freed += len(l.entries[dropped].Data)
		dropped++
	}
	records, bytes := 1-dropped, len(e.Data)-freed+(1-dropped)*entryOverhead
	if own == nil {
		records, bytes = records+1, bytes+recordOverhead+len(group)+len(log)
	}
	if err := s.takes(records, bytes); err != nil {
		return err
	}
	if own == nil {
		own = s.logs.Add(path(group, log), group, l)
	}
	s.records += records
	s.bytes += bytes
	l.entries = append(slices.Delete(l.entries, 0, dropped), e)
	l.bytes += len(e.Data) - freed
	l.last = e.Seq
	s.logs.Schedule(own, time.Time{}, now.Add(keep.TTL))
	return nil
}

// find returns where an entry is, or where it belongs.
func (l *memoryLog) find(seq uint64) (int, bool) {
	return slices.BinarySearchFunc(l.entries, seq, func(e Entry, seq uint64) int { return cmp.Compare(e.Seq, seq) })
}

// drop accounts for logs that were removed.
func (s *memoryStore) drop(removed ...*ordered.Item[*memoryLog]) {
	for _, own := range removed {
		s.records -= 1 + len(own.Value.entries)
		s.bytes -= recordOverhead + len(own.Key) - 1 + own.Value.bytes + len(own.Value.entries)*entryOverhead
	}
}

// After implements [Logs].
func (m *Memory) After(ctx context.Context, group, log string, seq uint64, limit int) ([]Entry, error) {
	if _, err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.store.mu.Unlock()
	own := m.store.logs.Get(path(group, log))
	if own == nil {
		return nil, nil
	}
	first, found := own.Value.find(seq)
	if found {
		first++
	}
	rest := own.Value.entries[first:]
	return slices.Clone(rest[:min(limit, len(rest))]), nil
}

// Last implements [Logs].
func (m *Memory) Last(ctx context.Context, group, log string) (uint64, error) {
	if _, err := m.begin(ctx); err != nil {
		return 0, err
	}
	defer m.store.mu.Unlock()
	if own := m.store.logs.Get(path(group, log)); own != nil {
		return own.Value.last, nil
	}
	return 0, nil
}

// Drop implements [Logs].
func (m *Memory) Drop(ctx context.Context, group string) error {
	if _, err := m.begin(ctx); err != nil {
		return err
	}
	s := m.store
	defer s.mu.Unlock()
	for _, own := range s.logs.List(group, "", s.logs.Count(group)) {
		s.logs.Remove(own)
		s.drop(own)
	}
	return nil
}

// Publish implements [Bus].
func (m *Memory) Publish(ctx context.Context, topic string, data []byte) error {
	if _, err := m.begin(ctx); err != nil {
		return err
	}
	defer m.store.mu.Unlock()
	for hub := range m.store.hubs {
		hub.Deliver(topic, data)
	}
	return nil
}

// Subscribe implements [Bus].
func (m *Memory) Subscribe(ctx context.Context, topics []string, deliver func(topic string, data []byte), missed func()) error {
	return m.hub.Subscribe(ctx, topics, deliver, missed, nil)
}
