package tasks

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Bounds of a [memoryStore], so that no client fills the memory with arguments, answers and results.
const (
	maxOwnerBytes  = 64 << 20  // bytes of the tasks of one principal in memory
	maxMemoryBytes = 256 << 20 // bytes of all tasks in memory
)

// A memoryStore is a [store] in memory: its tasks end with the process. It is the default. Its
// records take 64 MiB for each owner and 256 MiB altogether: beyond that, tasks of the owner that
// have ended are deleted before their time, and then new tasks and answers are refused with a
// [*limitError]. The zero value is empty.
type memoryStore struct {
	mu      sync.Mutex
	records map[string]*record // guarded by mu
	ready   map[string]*record // guarded by mu: those in stateReady
	owners  map[string]*owner  // guarded by mu
	size    int                // guarded by mu: the bytes of all owners
	ended   int64              // guarded by mu: counts records that ended
	watchers
}

// An owner is what the store knows of the records of an owner.
type owner struct {
	memos map[string]*memo // by ID
	open  int              // records that have not ended
	bytes int              // of data
}

// A memo is what the store knows of a record of an owner.
type memo struct {
	record *record
	ended  int64 // in which order it ended; 0 if it has not
}

// Create implements [store].
func (s *memoryStore) Create(_ context.Context, r *record, limits limits) error {
	s.mu.Lock()
	if s.records == nil {
		s.records, s.ready, s.owners = map[string]*record{}, map[string]*record{}, map[string]*owner{}
	}
	evicted, err := s.makeRoom(r, limits)
	if err == nil && s.records[r.ID] != nil {
		err = errConflict
	}
	if err == nil {
		r.Version = 1
		own := *r
		s.put(&own)
	}
	s.mu.Unlock()
	if err == nil {
		evicted = append(evicted, r.ID)
	}
	for _, id := range evicted {
		s.Changed(id)
	}
	return err
}

// makeRoom checks the limits for a new record, and deletes the oldest ended records of an owner that
// has too many.
func (s *memoryStore) makeRoom(r *record, limits limits) (evicted []string, err error) {
	if limits.Open > 0 && s.of(r.Owner).open >= limits.Open {
		return nil, &limitError{Limit: limits.Open}
	}
	for limits.Kept > 0 && len(s.of(r.Owner).memos) >= limits.Kept {
		id := s.evict(r)
		if id == "" {
			return evicted, &limitError{Limit: limits.Kept}
		}
		evicted = append(evicted, id)
	}
	more, err := s.makeSpace(r, len(r.Data))
	evicted = append(evicted, more...)
	if err == nil && limits.Total > 0 && len(s.records) >= limits.Total {
		err = &limitError{Total: true, Limit: limits.Total}
	}
	return evicted, err
}

// makeSpace deletes the oldest ended records of the owner until there is space for so many bytes
// more.
func (s *memoryStore) makeSpace(r *record, n int) (evicted []string, err error) {
	for s.of(r.Owner).bytes+n > maxOwnerBytes || s.size+n > maxMemoryBytes {
		id := s.evict(r)
		switch {
		case id != "":
			evicted = append(evicted, id)
		case s.of(r.Owner).bytes+n > maxOwnerBytes:
			return evicted, &limitError{Bytes: true, Limit: maxOwnerBytes}
		default:
			return evicted, &limitError{Total: true, Bytes: true, Limit: maxMemoryBytes}
		}
	}
	return evicted, nil
}

// evict deletes the oldest ended record of the owner of r, other than r. It returns "" if there is
// none.
func (s *memoryStore) evict(r *record) (id string) {
	var oldest *memo
	for _, m := range s.of(r.Owner).memos {
		if m.ended > 0 && m.record.ID != r.ID && (oldest == nil || m.ended < oldest.ended) {
			oldest = m
		}
	}
	if oldest == nil {
		return ""
	}
	s.drop(oldest.record)
	return oldest.record.ID
}

// of returns what the store knows of an owner, who may have no records.
func (s *memoryStore) of(name string) *owner { return cmp.Or(s.owners[name], &owner{}) }

// put stores the record, which nobody else changes.
func (s *memoryStore) put(r *record) {
	m := &memo{record: r}
	if old := s.records[r.ID]; old != nil {
		m.ended = s.of(old.Owner).memos[old.ID].ended
		s.drop(old)
	}
	o := s.owners[r.Owner]
	if o == nil {
		o = &owner{memos: map[string]*memo{}}
		s.owners[r.Owner] = o
	}
	s.records[r.ID], o.memos[r.ID] = r, m
	o.bytes += len(r.Data)
	s.size += len(r.Data)
	if r.State == stateReady {
		s.ready[r.ID] = r
	}
	if r.State != stateEnded {
		o.open++
	} else if m.ended == 0 {
		s.ended++
		m.ended = s.ended
	}
}

// drop deletes a record.
func (s *memoryStore) drop(r *record) {
	o := s.of(r.Owner)
	delete(s.records, r.ID)
	delete(s.ready, r.ID)
	delete(o.memos, r.ID)
	s.size -= len(r.Data)
	o.bytes -= len(r.Data)
	if r.State != stateEnded {
		o.open--
	}
	if len(o.memos) == 0 {
		delete(s.owners, r.Owner)
	}
}

// Get implements [store].
func (s *memoryStore) Get(_ context.Context, id string) (*record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[id]
	if r == nil {
		return nil, errNotFound
	}
	own := *r // Data is never changed in place
	return &own, nil
}

// Update implements [store].
func (s *memoryStore) Update(_ context.Context, r *record) error {
	s.mu.Lock()
	old := s.records[r.ID]
	switch {
	case old == nil:
		s.mu.Unlock()
		return errNotFound
	case old.Version != r.Version:
		s.mu.Unlock()
		return errConflict
	}
	var evicted []string
	var err error
	if more := len(r.Data) - len(old.Data); more > 0 {
		evicted, err = s.makeSpace(r, more)
	}
	if old.State != stateAsleep {
		err = nil // only a client makes a sleeping record larger
	}
	if err == nil {
		r.Version++
		own := *r
		s.put(&own)
		evicted = append(evicted, r.ID)
	}
	s.mu.Unlock()
	for _, id := range evicted {
		s.Changed(id)
	}
	return err
}

// Claim implements [store]. The record is the one that was created first.
func (s *memoryStore) Claim(_ context.Context, before, until time.Time) (*record, error) {
	s.mu.Lock()
	var first *record
	for _, r := range s.ready {
		if r.Lease.Before(before) && (first == nil || r.Created.Before(first.Created)) {
			first = r
		}
	}
	if first == nil {
		s.mu.Unlock()
		return nil, errNotFound
	}
	first.Lease = until
	first.Fence++
	first.Version++
	own := *first
	s.mu.Unlock()
	s.Changed(own.ID)
	return &own, nil
}

// Extend implements [store].
func (s *memoryStore) Extend(_ context.Context, id string, fence int64, until time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r := s.records[id]; {
	case r == nil:
		return errNotFound
	case r.Fence != fence || r.State != stateReady:
		return errConflict
	default:
		r.Lease = until
		return nil
	}
}

// List implements [store].
func (s *memoryStore) List(_ context.Context, owner, after string, limit int) ([]*record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*record
	for _, id := range slices.Sorted(maps.Keys(s.of(owner).memos)) {
		if id > after && len(list) < limit {
			own := *s.records[id]
			list = append(list, &own)
		}
	}
	return list, nil
}

// Sweep implements [store].
func (s *memoryStore) Sweep(_ context.Context, before time.Time) (int, error) {
	s.mu.Lock()
	var gone []string
	for id, r := range s.records {
		if r.Expires.Before(before) {
			gone = append(gone, id)
			s.drop(r)
		}
	}
	s.mu.Unlock()
	for _, id := range gone {
		s.Changed(id)
	}
	return len(gone), nil
}

// watchers implement [store.Watch] for a store that one process uses. The zero value is ready.
type watchers struct {
	mu  sync.Mutex
	all map[*func(string)]struct{} // guarded by mu
}

// Watch implements [store].
func (w *watchers) Watch(ctx context.Context, changed func(id string)) {
	w.mu.Lock()
	if w.all == nil {
		w.all = map[*func(string)]struct{}{}
	}
	w.all[&changed] = struct{}{}
	w.mu.Unlock()
	<-ctx.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.all, &changed)
}

// Changed tells the watchers of a record that has changed. Call it without a lock.
func (w *watchers) Changed(id string) {
	w.mu.Lock()
	all := slices.Collect(maps.Keys(w.all))
	w.mu.Unlock()
	for _, changed := range all {
		(*changed)(id)
	}
}
