package natsfleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/fleet/internal/ordered"
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

	mu      sync.Mutex
	applied uint64                 // the last message; guarded by mu
	records *ordered.Index[uint64] // with their revisions; guarded by mu
}

// An indexed record is what an index knows of one.
type indexed = ordered.Item[uint64]

// apply takes over a message. The caller holds mu.
func (x *index) apply(key string, m *stored) {
	x.applied = m.seq
	about, ok := metaOf(m)
	r := x.records.Get(key)
	if r != nil && (!ok || r.Group != about.group) {
		x.records.Remove(r)
		r = nil
	}
	if !ok {
		return
	}
	if r == nil {
		r = x.records.Add(key, about.group, 0)
	}
	r.Value = m.seq
	x.records.Schedule(r, about.due, about.expires)
}

// find returns what f finds, as it is now.
func (x *index) find(f func(records *ordered.Index[uint64]) []*indexed) []found {
	x.mu.Lock()
	defer x.mu.Unlock()
	var all []found
	for _, r := range f(x.records) {
		all = append(all, found{r.Key, r.Value})
	}
	return all
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
		x = &index{turn: make(chan struct{}, 1), records: ordered.New[uint64]()}
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
	x.records.Expire(now)
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
		x.records.Expire(now)
		from, size := x.applied, x.records.Count("")
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
// are no longer due.
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
		all := x.find(func(records *ordered.Index[uint64]) []*indexed { return records.Due(now, limit) })
		result, err := e.read(ctx, s, set, all, now, true)
		if err != nil || len(all) == 0 || len(result) > 0 {
			return result, err
		}
		// Other replicas have changed all of them meanwhile.
	}
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
		all := x.find(func(records *ordered.Index[uint64]) []*indexed { return records.List(group, after, limit-len(result)) })
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
	return x.records.Count(group), nil
}
