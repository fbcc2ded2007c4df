package fleet

import (
	"container/heap"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
)

// MemoryOptions limits what a [Memory] keeps. The zero value is ready to use.
type MemoryOptions struct {
	MaxRecords int // records and entries of logs; zero means [DefaultMaxRecords]
	MaxBytes   int // of records and logs, with what their indexes take; zero means [DefaultMaxBytes]
}

const (
	// DefaultMaxRecords is the default of [MemoryOptions].MaxRecords.
	//
	//limit:server records and entries of logs that the engine in memory keeps | a retryable error
	DefaultMaxRecords = 1_000_000

	// DefaultMaxBytes is the default of [MemoryOptions].MaxBytes.
	//
	//limit:server bytes that the engine in memory keeps | a retryable error
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
	s := &memoryStore{opts: opts, sets: map[string]*memorySet{}, logs: map[string]map[string]*memoryLog{}, hubs: map[*Hub]struct{}{}}
	return s.open()
}

// Open returns another engine that shares all records, logs and messages with m, as if it were that
// of another replica. Each is closed by itself.
func (m *Memory) Open() *Memory { return m.store.open() }

// memoryStore is what engines in memory share.
type memoryStore struct {
	opts MemoryOptions

	mu       sync.Mutex
	sets     map[string]*memorySet            // guarded by mu
	logs     map[string]map[string]*memoryLog // by group and name; guarded by mu
	hubs     map[*Hub]struct{}                // of the open engines; guarded by mu
	expiring timers                           // of records and logs; guarded by mu
	revision uint64                           // the last one; guarded by mu
	records  int                              // with entries; guarded by mu
	bytes    int                              // guarded by mu
	ahead    time.Duration                    // of the clock, in tests; guarded by mu
}

type memorySet struct {
	records map[string]*memoryRecord
	groups  map[string][]*memoryRecord // sorted by key
	due     timers
}

type memoryRecord struct {
	Record
	set      string
	expires  timer
	becomes  timer // due
	occupies int
}

type memoryLog struct {
	group, name string
	entries     []Entry
	last        uint64
	bytes       int // of the data
	expires     timer
}

// A timer is in a heap of timers, unless at is zero.
type timer struct {
	at     time.Time
	index  int
	record *memoryRecord // either
	log    *memoryLog    // or
}

// timers is a heap: the first is the earliest.
type timers []*timer

func (h timers) Len() int           { return len(h) }
func (h timers) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h timers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements [heap.Interface].
func (h *timers) Push(x any) {
	t := x.(*timer)
	t.index = len(*h)
	*h = append(*h, t)
}

// Pop implements [heap.Interface].
func (h *timers) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return t
}

// set moves the timer to a time; the zero time removes it.
func (h *timers) set(t *timer, at time.Time) {
	was := t.at
	t.at = at
	switch {
	case was.IsZero() && !at.IsZero():
		heap.Push(h, t)
	case !was.IsZero() && at.IsZero():
		heap.Remove(h, t.index)
	case !was.IsZero():
		heap.Fix(h, t.index)
	}
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
	for len(s.expiring) > 0 && !s.expiring[0].at.After(now) {
		if t := s.expiring[0]; t.record != nil {
			s.remove(t.record)
		} else {
			s.drop(t.log)
		}
	}
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
	return r.copy(now), nil
}

func (r *memoryRecord) copy(now time.Time) Record {
	c := r.Record
	c.TTL, c.Due = r.expires.at.Sub(now), 0
	return c
}

func (s *memoryStore) record(set, key string) *memoryRecord {
	if in := s.sets[set]; in != nil {
		return in.records[key]
	}
	return nil
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
	own := &memoryRecord{Record: r, set: set, occupies: recordOverhead + len(r.Key) + len(r.Group) + len(r.Data)}
	if err := s.takes(1, own.occupies); err != nil {
		return 0, err
	}
	in := s.sets[set]
	if in == nil {
		in = &memorySet{records: map[string]*memoryRecord{}, groups: map[string][]*memoryRecord{}}
		s.sets[set] = in
	}
	in.records[r.Key] = own
	if r.Group != "" {
		i, _ := in.find(r.Group, r.Key)
		in.groups[r.Group] = slices.Insert(in.groups[r.Group], i, own)
	}
	s.records++
	s.bytes += own.occupies
	own.expires.record, own.becomes.record = own, own
	s.schedule(in, own, now, r.TTL, r.Due)
	return own.Revision, nil
}

// schedule sets the times of a record and its revision.
func (s *memoryStore) schedule(in *memorySet, r *memoryRecord, now time.Time, ttl, due time.Duration) {
	s.revision++
	r.Revision = s.revision
	s.expiring.set(&r.expires, now.Add(ttl))
	at := time.Time{}
	if due > 0 {
		at = now.Add(due - AtOnce)
	}
	in.due.set(&r.becomes, at)
}

// find returns where a key is in a group, or where it belongs.
func (in *memorySet) find(group, key string) (int, bool) {
	return slices.BinarySearchFunc(in.groups[group], key, func(r *memoryRecord, key string) int { return strings.Compare(r.Key, key) })
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
	case own.Revision != r.Revision:
		return 0, ErrConflict
	}
	more := len(r.Data) - len(own.Data)
	if err := s.takes(0, more); err != nil {
		return 0, err
	}
	own.Data = r.Data
	own.occupies += more
	s.bytes += more
	s.schedule(s.sets[set], own, now, r.TTL, r.Due)
	return own.Revision, nil
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
	case revision != 0 && r.Revision != revision:
		return ErrConflict
	}
	m.store.remove(r)
	return nil
}

func (s *memoryStore) remove(r *memoryRecord) {
	in := s.sets[r.set]
	delete(in.records, r.Key)
	if r.Group != "" {
		i, _ := in.find(r.Group, r.Key)
		if in.groups[r.Group] = slices.Delete(in.groups[r.Group], i, i+1); len(in.groups[r.Group]) == 0 {
			delete(in.groups, r.Group)
		}
	}
	s.expiring.set(&r.expires, time.Time{})
	in.due.set(&r.becomes, time.Time{})
	if len(in.records) == 0 {
		delete(s.sets, r.set)
	}
	s.records--
	s.bytes -= r.occupies
}

// Due implements [Records].
func (m *Memory) Due(ctx context.Context, set string, limit int) ([]Record, error) {
	now, err := m.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer m.store.mu.Unlock()
	in := m.store.sets[set]
	if in == nil {
		return nil, nil
	}
	var found []*timer
	for len(in.due) > 0 && !in.due[0].at.After(now) && len(found) < limit {
		found = append(found, heap.Pop(&in.due).(*timer))
	}
	all := make([]Record, len(found))
	for i, t := range found {
		all[i] = t.record.copy(now)
		heap.Push(&in.due, t)
	}
	return all, nil
}

// List implements [Records].
func (m *Memory) List(ctx context.Context, set, group, after string, limit int) ([]Record, error) {
	now, err := m.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer m.store.mu.Unlock()
	in := m.store.sets[set]
	if in == nil {
		return nil, nil
	}
	first, found := in.find(group, after)
	if found {
		first++
	}
	var all []Record
	for _, r := range in.groups[group][first:] {
		if len(all) >= limit {
			break
		}
		all = append(all, r.copy(now))
	}
	return all, nil
}

// Count implements [Records].
func (m *Memory) Count(ctx context.Context, set, group string) (int, error) {
	if _, err := m.begin(ctx); err != nil {
		return 0, err
	}
	defer m.store.mu.Unlock()
	in := m.store.sets[set]
	switch {
	case in == nil:
		return 0, nil
	case group == "":
		return len(in.records), nil
	}
	return len(in.groups[group]), nil
}

// Append implements [Logs].
func (m *Memory) Append(ctx context.Context, group, log string, e Entry, keep Keep) error {
	now, err := m.begin(ctx)
	if err != nil {
		return err
	}
	s := m.store
	defer s.mu.Unlock()
	l := s.logs[group][log]
	if l != nil && e.Seq <= l.last {
		i, found := l.find(e.Seq)
		if found && string(l.entries[i].Data) == string(e.Data) {
			return nil
		}
		return ErrConflict
	}
	if l == nil {
		l = &memoryLog{group: group, name: log}
	}
	// What the entry replaces makes room for it.
	dropped, freed := 0, 0
	for dropped < len(l.entries) && (len(l.entries)-dropped >= keep.Entries || l.bytes-freed+len(e.Data) > keep.Bytes) {
		freed += len(l.entries[dropped].Data)
		dropped++
	}
	records, bytes := 1-dropped, len(e.Data)-freed+(1-dropped)*entryOverhead
	if l.last == 0 {
		records, bytes = records+1, bytes+l.overhead()
	}
	if err := s.takes(records, bytes); err != nil {
		return err
	}
	if l.last == 0 {
		if s.logs[group] == nil {
			s.logs[group] = map[string]*memoryLog{}
		}
		s.logs[group][log] = l
		l.expires.log = l
	}
	s.records += records
	s.bytes += bytes
	l.entries = append(slices.Delete(l.entries, 0, dropped), e)
	l.bytes += len(e.Data) - freed
	l.last = e.Seq
	s.expiring.set(&l.expires, now.Add(keep.TTL))
	return nil
}

func (l *memoryLog) overhead() int { return recordOverhead + len(l.group) + len(l.name) }

// find returns where an entry is, or where it belongs.
func (l *memoryLog) find(seq uint64) (int, bool) {
	return slices.BinarySearchFunc(l.entries, seq, func(e Entry, seq uint64) int {
		switch {
		case e.Seq < seq:
			return -1
		case e.Seq > seq:
			return 1
		}
		return 0
	})
}

func (s *memoryStore) drop(l *memoryLog) {
	s.expiring.set(&l.expires, time.Time{})
	s.records -= 1 + len(l.entries)
	s.bytes -= l.overhead() + l.bytes + len(l.entries)*entryOverhead
	if delete(s.logs[l.group], l.name); len(s.logs[l.group]) == 0 {
		delete(s.logs, l.group)
	}
}

// After implements [Logs].
func (m *Memory) After(ctx context.Context, group, log string, seq uint64, limit int) ([]Entry, error) {
	if _, err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.store.mu.Unlock()
	l := m.store.logs[group][log]
	if l == nil {
		return nil, nil
	}
	first, found := l.find(seq)
	if found {
		first++
	}
	rest := l.entries[first:]
	return slices.Clone(rest[:min(limit, len(rest))]), nil
}

// Last implements [Logs].
func (m *Memory) Last(ctx context.Context, group, log string) (uint64, error) {
	if _, err := m.begin(ctx); err != nil {
		return 0, err
	}
	defer m.store.mu.Unlock()
	if l := m.store.logs[group][log]; l != nil {
		return l.last, nil
	}
	return 0, nil
}

// Drop implements [Logs].
func (m *Memory) Drop(ctx context.Context, group string) error {
	if _, err := m.begin(ctx); err != nil {
		return err
	}
	defer m.store.mu.Unlock()
	for _, l := range m.store.logs[group] {
		m.store.drop(l)
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
