package tasks

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// A MemoryStore is a [Store] in memory: its tasks end with the process. It is the default. The zero
// value is empty.
type MemoryStore struct {
	mu      sync.Mutex
	records map[string]*Record          // guarded by mu
	ready   map[string]*Record          // guarded by mu: those in the state Ready
	owners  map[string]map[string]*memo // guarded by mu: by owner and ID
	opens   map[string]int              // guarded by mu: by owner, records that have not ended
	ended   int64                       // guarded by mu: counts records that ended
	Watchers
}

// A memo is what the store knows of a record of an owner.
type memo struct {
	record *Record
	ended  int64 // in which order it ended; 0 if it has not
}

// Create implements [Store].
func (s *MemoryStore) Create(_ context.Context, r *Record, limits Limits) error {
	s.mu.Lock()
	if s.records == nil {
		s.records, s.ready = map[string]*Record{}, map[string]*Record{}
		s.owners, s.opens = map[string]map[string]*memo{}, map[string]int{}
	}
	evicted, err := s.makeRoom(r.Owner, limits)
	if err == nil && s.records[r.ID] != nil {
		err = ErrConflict
	}
	if err == nil {
		r.Version = 1
		own := *r
		s.put(&own)
	}
	s.mu.Unlock()
	if evicted != "" {
		s.Changed(evicted)
	}
	if err == nil {
		s.Changed(r.ID)
	}
	return err
}

// makeRoom checks the limits, and deletes the oldest ended record of an owner that has too many.
func (s *MemoryStore) makeRoom(owner string, limits Limits) (evicted string, err error) {
	if limits.Open > 0 && s.opens[owner] >= limits.Open {
		return "", &LimitError{Limit: limits.Open}
	}
	if limits.Kept > 0 && len(s.owners[owner]) >= limits.Kept {
		var oldest *memo
		for _, m := range s.owners[owner] {
			if m.ended > 0 && (oldest == nil || m.ended < oldest.ended) {
				oldest = m
			}
		}
		if oldest == nil {
			return "", &LimitError{Limit: limits.Kept}
		}
		evicted = oldest.record.ID
		s.drop(oldest.record)
	}
	if limits.Total > 0 && len(s.records) >= limits.Total {
		return evicted, &LimitError{Total: true, Limit: limits.Total}
	}
	return evicted, nil
}

// put stores the record, which nobody else changes.
func (s *MemoryStore) put(r *Record) {
	ended := int64(0)
	if old := s.records[r.ID]; old != nil {
		ended = s.owners[old.Owner][old.ID].ended
		s.drop(old)
	}
	s.records[r.ID] = r
	if r.State == Ready {
		s.ready[r.ID] = r
	}
	if r.State != Ended {
		s.opens[r.Owner]++
	} else if ended == 0 {
		s.ended++
		ended = s.ended
	}
	if s.owners[r.Owner] == nil {
		s.owners[r.Owner] = map[string]*memo{}
	}
	s.owners[r.Owner][r.ID] = &memo{r, ended}
}

// drop deletes a record.
func (s *MemoryStore) drop(r *Record) {
	delete(s.records, r.ID)
	delete(s.ready, r.ID)
	if r.State != Ended {
		if s.opens[r.Owner]--; s.opens[r.Owner] == 0 {
			delete(s.opens, r.Owner)
		}
	}
	delete(s.owners[r.Owner], r.ID)
	if len(s.owners[r.Owner]) == 0 {
		delete(s.owners, r.Owner)
	}
}

// Get implements [Store].
func (s *MemoryStore) Get(_ context.Context, id string) (*Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[id]
	if r == nil {
		return nil, ErrNotFound
	}
	own := *r // Data is never changed in place
	return &own, nil
}

// Update implements [Store].
func (s *MemoryStore) Update(_ context.Context, r *Record) error {
	s.mu.Lock()
	old := s.records[r.ID]
	switch {
	case old == nil:
		s.mu.Unlock()
		return ErrNotFound
	case old.Version != r.Version:
		s.mu.Unlock()
		return ErrConflict
	}
	r.Version++
	own := *r
	s.put(&own)
	s.mu.Unlock()
	s.Changed(r.ID)
	return nil
}

// Claim implements [Store]. The record is the one that was created first.
func (s *MemoryStore) Claim(_ context.Context, before, until time.Time) (*Record, error) {
	s.mu.Lock()
	var first *Record
	for _, r := range s.ready {
		if r.Lease.Before(before) && (first == nil || r.Created.Before(first.Created)) {
			first = r
		}
	}
	if first == nil {
		s.mu.Unlock()
		return nil, ErrNotFound
	}
	first.Lease = until
	first.Fence++
	first.Version++
	own := *first
	s.mu.Unlock()
	s.Changed(own.ID)
	return &own, nil
}

// Extend implements [Store].
func (s *MemoryStore) Extend(_ context.Context, id string, fence int64, until time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r := s.records[id]; {
	case r == nil:
		return ErrNotFound
	case r.Fence != fence || r.State != Ready:
		return ErrConflict
	default:
		r.Lease = until
		return nil
	}
}

// List implements [Store].
func (s *MemoryStore) List(_ context.Context, owner, after string, limit int) ([]*Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*Record
	for _, id := range slices.Sorted(maps.Keys(s.owners[owner])) {
		if id > after && len(list) < limit {
			own := *s.records[id]
			list = append(list, &own)
		}
	}
	return list, nil
}

// Sweep implements [Store].
func (s *MemoryStore) Sweep(_ context.Context, before time.Time) (int, error) {
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

// Watchers implement [Store.Watch] for a store that one process uses. The zero value is ready.
type Watchers struct {
	mu  sync.Mutex
	all map[*func(string)]struct{} // guarded by mu
}

// Watch implements [Store].
func (w *Watchers) Watch(ctx context.Context, changed func(id string)) error {
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
	return nil
}

// Changed tells the watchers of a record that has changed. Call it without a lock.
func (w *Watchers) Changed(id string) {
	w.mu.Lock()
	all := slices.Collect(maps.Keys(w.all))
	w.mu.Unlock()
	for _, changed := range all {
		(*changed)(id)
	}
}
