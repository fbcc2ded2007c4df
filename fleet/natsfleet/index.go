package natsfleet

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
)

const (
	//limit:server records of a set on NATS that can be listed | an error of List, Due and Count
	maxIndexed = 1_000_000

	pageEntries = 500
	pageBytes   = 4 << 20
	pageKeys    = 128
)

// An index knows the records of a set up to a message of the stream.
type index struct {
	turn chan struct{} // has space for one: who reads from the server

	mu       sync.Mutex
	applied  uint64                         // the last message; guarded by mu
	entries  map[string]*indexed            // by key; guarded by mu
	groups   map[string]map[string]*indexed // by group and key; guarded by mu
	due      timers                         // guarded by mu
	expiring timers                         // guarded by mu
}

type indexed struct {
	key, group string
	revision   uint64
	due        timer
	expires    timer
}

// A timer is in a heap unless at is zero.
type timer struct {
	at    time.Time
	place int
	of    *indexed
}

// timers is a heap: the first is the earliest.
type timers []*timer

// Len implements [heap.Interface].
func (h timers) Len() int { return len(h) }

// Less implements [heap.Interface].
func (h timers) Less(i, j int) bool { return h[i].at.Before(h[j].at) }

// Swap implements [heap.Interface].
func (h timers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements [heap.Interface].
func (h *timers) Push(x any) {
	t := x.(*timer)
	t.place = len(*h)
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
		heap.Remove(h, t.place)
	case !was.IsZero():
		heap.Fix(h, t.place)
	}
}

// apply takes over a message. The caller holds mu.
func (x *index) apply(key string, m *stored) {
	x.applied = m.seq
	about, ok := metaOf(m)
	old := x.entries[key]
	if old != nil && (!ok || old.group != about.group) {
		x.forget(old)
		old = nil
	}
	if !ok {
		return
	}
	if old == nil {
		old = &indexed{key: key, group: about.group}
		old.due.of, old.expires.of = old, old
		x.entries[key] = old
		if old.group != "" {
			if x.groups[old.group] == nil {
				x.groups[old.group] = map[string]*indexed{}
			}
			x.groups[old.group][key] = old
		}
	}
	old.revision = m.seq
	x.due.set(&old.due, about.due)
	x.expiring.set(&old.expires, about.expires)
}

// forget removes an entry. The caller holds mu.
func (x *index) forget(r *indexed) {
	x.due.set(&r.due, time.Time{})
	x.expiring.set(&r.expires, time.Time{})
	delete(x.entries, r.key)
	if group := x.groups[r.group]; group != nil {
		if delete(group, r.key); len(group) == 0 {
			delete(x.groups, r.group)
		}
	}
}

// expire removes what has expired. The caller holds mu.
func (x *index) expire(now time.Time) {
	for len(x.expiring) > 0 && !x.expiring[0].at.After(now) {
		x.forget(x.expiring[0].of)
	}
}

// refresh returns the index of a set, with all that was written before the call.
func (e *Engine) refresh(ctx context.Context, s *stream, set string) (*index, time.Time, error) {
	now, err := e.now(ctx, s)
	if err != nil {
		return nil, now, err
	}
	e.mu.Lock()
	x := e.indexes[set]
	if x == nil {
		x = &index{turn: make(chan struct{}, 1), entries: map[string]*indexed{}, groups: map[string]map[string]*indexed{}}
		e.indexes[set] = x
	}
	e.mu.Unlock()
	for {
		last, err := e.last(ctx, s, e.subject(set, "*"))
		if err != nil {
			return nil, now, err
		}
		if last == nil {
			break
		}
		done, err := e.catchUp(ctx, s, set, x, last.seq, now)
		if err != nil {
			return nil, now, err
		}
		if done {
			break
		}
		// The message has expired meanwhile, or another server than the leader did not have it yet.
		if !pause(ctx, 5*time.Millisecond) {
			return nil, now, ctx.Err()
		}
	}
	if now, err = e.now(ctx, s); err != nil { // messages may have moved it
		return nil, now, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.expire(now)
	return x, now, nil
}

// catchUp reads messages until the last one. It returns false if the server had less.
func (e *Engine) catchUp(ctx context.Context, s *stream, set string, x *index, last uint64, now time.Time) (bool, error) {
	select {
	case x.turn <- struct{}{}:
		defer func() { <-x.turn }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	prefix := e.subject(set, "")
	for {
		x.mu.Lock()
		x.expire(now)
		from, size := x.applied, len(x.entries)
		x.mu.Unlock()
		if from >= last {
			return true, nil
		}
		if size >= maxIndexed {
			return false, fmt.Errorf("natsfleet: set %s has more than %d records, which is too many to list", set, maxIndexed)
		}
		page, _, err := e.direct(ctx, s, getRequest{Seq: from + 1, NextFor: prefix + "*", Batch: pageEntries, MaxBytes: pageBytes})
		if err != nil || len(page) == 0 {
			return false, err
		}
		x.mu.Lock()
		for _, m := range page {
			x.apply(strings.TrimPrefix(m.subject, prefix), m)
		}
		x.mu.Unlock()
	}
}

// A found record is one of the index.
type found struct {
	key      string
	revision uint64
}

// read returns the records that the index found, as they are now. With due it leaves out those that
// are not due any more.
func (e *Engine) read(ctx context.Context, s *stream, set string, all []found, now time.Time, due bool) ([]fleet.Record, error) {
	got := make(map[string]*stored, len(all))
	for chunk := range slices.Chunk(all, pageKeys) {
		subjects := make([]string, len(chunk))
		for i, f := range chunk {
			subjects[i] = e.subject(set, f.key)
		}
		for len(subjects) > 0 {
			page, _, err := e.direct(ctx, s, getRequest{MultiFor: subjects, MaxBytes: pageBytes})
			if err != nil {
				return nil, err
			}
			for _, m := range page {
				got[m.subject] = m
			}
			rest := slices.DeleteFunc(slices.Clone(subjects), func(subject string) bool { return got[subject] != nil })
			if len(page) == 0 || len(rest) == len(subjects) {
				break
			}
			subjects = rest
		}
	}
	var result []fleet.Record
	for _, f := range all {
		m := got[e.subject(set, f.key)]
		if m == nil || m.seq < f.revision { // the server that was asked is behind
			var err error
			if m, err = e.last(ctx, s, e.subject(set, f.key)); err != nil {
				return nil, err
			}
		}
		if m == nil {
			continue
		}
		if about, _ := metaOf(m); due && (about.due.IsZero() || about.due.After(now)) {
			continue
		}
		if r, ok := e.record(set, f.key, m, now); ok {
			result = append(result, r)
		}
	}
	return result, nil
}

// Due implements [fleet.Records].
func (e *Engine) Due(ctx context.Context, set string, limit int) ([]fleet.Record, error) {
	ctx, cancel, s, err := e.use(ctx, records)
	if err != nil {
		return nil, err
	}
	defer cancel()
	for {
		x, now, err := e.refresh(ctx, s, set)
		if err != nil {
			return nil, err
		}
		all := x.dueBy(now, limit)
		result, err := e.read(ctx, s, set, all, now, true)
		if err != nil || len(all) == 0 || len(result) > 0 {
			return result, err
		}
		// Other replicas have changed all of them meanwhile.
	}
}

// dueBy returns what is due.
func (x *index) dueBy(now time.Time, limit int) []found {
	x.mu.Lock()
	defer x.mu.Unlock()
	var due []*timer
	for len(x.due) > 0 && !x.due[0].at.After(now) && len(due) < limit {
		due = append(due, heap.Pop(&x.due).(*timer))
	}
	all := make([]found, len(due))
	for i, t := range due {
		all[i] = found{t.of.key, t.of.revision}
		heap.Push(&x.due, t)
	}
	return all
}

// List implements [fleet.Records].
func (e *Engine) List(ctx context.Context, set, group, after string, limit int) ([]fleet.Record, error) {
	ctx, cancel, s, err := e.use(ctx, records)
	if err != nil {
		return nil, err
	}
	defer cancel()
	x, now, err := e.refresh(ctx, s, set)
	if err != nil {
		return nil, err
	}
	var result []fleet.Record
	for {
		all := x.list(group, after, limit-len(result))
		read, err := e.read(ctx, s, set, all, now, false)
		if err != nil {
			return nil, err
		}
		result = append(result, read...)
		if len(result) >= limit || len(all) == 0 {
			return result, nil
		}
		after = all[len(all)-1].key // some were deleted meanwhile
	}
}

// list returns the first records of a group after a key.
func (x *index) list(group, after string, limit int) []found {
	x.mu.Lock()
	defer x.mu.Unlock()
	var all []found
	for key, r := range x.groups[group] {
		if key > after {
			all = append(all, found{key, r.revision})
		}
	}
	slices.SortFunc(all, func(a, b found) int { return cmp.Compare(a.key, b.key) })
	return all[:min(limit, len(all))]
}

// Count implements [fleet.Records].
func (e *Engine) Count(ctx context.Context, set, group string) (int, error) {
	ctx, cancel, s, err := e.use(ctx, records)
	if err != nil {
		return 0, err
	}
	defer cancel()
	x, _, err := e.refresh(ctx, s, set)
	if err != nil {
		return 0, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if group == "" {
		return len(x.entries), nil
	}
	return len(x.groups[group]), nil
}
