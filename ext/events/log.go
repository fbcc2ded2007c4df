package events

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// What is kept of each event, for clients that ask later.
const (
	keptEntries = 4096
	keptBytes   = 8 << 20
	keptFor     = 24 * time.Hour // after the last one

	logGroup = "events"
	readPage = 512
)

// A kept is an occurrence in a log. One without an ID is the beginning of a log.
type kept struct {
	Seq  uint64          `json:"-"`
	ID   string          `json:"id,omitzero"`
	Time time.Time       `json:"time,omitzero"`
	Data json.RawMessage `json:"data,omitzero"`
	Feed string          `json:"feed,omitzero"` // the feed that it is for; "" for all that match
}

func (k *kept) key() string { return k.Feed + " " + k.ID }

// A log is what has happened with one event: a copy of the log of the fleet, whose entries have
// consecutive numbers. A cursor is the number of the last entry that a client knows of.
type log struct {
	f    *fleet.Fleet
	name string

	writing sync.Mutex  // held while something is added, or the copy is brought up to date
	stale   atomic.Bool // others may have added something

	mu      sync.Mutex
	entries []*kept             // guarded by mu
	ids     map[string]struct{} // of the entries, with their feeds; guarded by mu
	bytes   int                 // of the entries; guarded by mu
	floor   uint64              // the last entry that is no longer kept; guarded by mu
	head    uint64              // the last entry; guarded by mu
	changed chan struct{}       // closed when there is more; guarded by mu
}

func newLog(f *fleet.Fleet, name string) *log {
	l := &log{f: f, name: name, ids: map[string]struct{}{}, changed: make(chan struct{})}
	l.stale.Store(true)
	return l
}

// touch makes all readers look at the log of the fleet again.
func (l *log) touch() {
	l.stale.Store(true)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wake()
}

// wake wakes the readers. The caller holds mu.
func (l *log) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// more returns a channel that is closed when there is more.
func (l *log) more() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// sync brings the copy up to date.
func (l *log) sync(ctx context.Context) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	return l.follow(ctx)
}

// follow is sync while writing is held. The first replica begins the log with a number that no earlier
// log of the name has reached, so that old cursors show that something may be missing.
func (l *log) follow(ctx context.Context) (err error) {
	if !l.stale.Swap(false) {
		return nil
	}
	defer func() {
		if err != nil {
			l.stale.Store(true)
		}
	}()
	for {
		all, err := l.f.After(ctx, logGroup, fleet.Digest(l.name), max(l.head, 1)-1, readPage)
		if err != nil {
			return err
		}
		for i, e := range all {
			k := kept{Seq: e.Seq}
			if err := jsonx.Unmarshal(e.Data, &k); err != nil {
				return err
			}
			l.add(&k, i > 0)
		}
		switch {
		case len(all) == readPage:
		case l.head != 0:
			return nil
		default:
			err := l.write(ctx, &kept{Seq: uint64(time.Now().UnixMicro())})
			if err != nil && !errors.Is(err, fleet.ErrConflict) {
				return err
			}
		}
	}
}

// write adds an entry to the log of the fleet.
func (l *log) write(ctx context.Context, k *kept) error {
	data, err := jsonx.Marshal(k)
	if err != nil {
		return err
	}
	keep := fleet.Keep{Entries: keptEntries, Bytes: keptBytes, TTL: keptFor}
	return l.f.Append(ctx, logGroup, fleet.Digest(l.name), fleet.Entry{Seq: k.Seq, Data: data}, keep)
}

// append adds an occurrence, unless it is there already. Of replicas that add the same one, the second
// finds its number taken, and then the occurrence.
func (l *log) append(ctx context.Context, k kept) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	for {
		if err := l.follow(ctx); err != nil {
			return err
		}
		if _, known := l.ids[k.key()]; known { // it changes only while writing is held
			return nil
		}
		k.Seq = l.head + 1
		err := l.write(ctx, &k)
		if !errors.Is(err, fleet.ErrConflict) {
			if err == nil {
				l.add(&k, true)
				l.f.Tell("", kindNews, news{Log: l.name})
			}
			return err
		}
		l.stale.Store(true)
	}
}

// add adds an entry to the copy, unless it is the head, and drops what no longer has room. next says that
// nothing was between, not even if numbers are left out because two replicas have begun the log.
func (l *log) add(k *kept, next bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case k.Seq == l.head:
		return
	case k.Seq != l.head+1 && !next: // what was between is not kept, or this is the first entry
		l.entries, l.bytes, l.floor = nil, 0, k.Seq-1
		clear(l.ids)
	}
	l.head = k.Seq
	l.entries = append(l.entries, k)
	l.ids[k.key()] = struct{}{}
	l.bytes += len(k.Data)
	for len(l.entries) > keptEntries || l.bytes > keptBytes && len(l.entries) > 1 {
		first := l.entries[0]
		l.bytes -= len(first.Data)
		l.floor = first.Seq
		delete(l.ids, first.key())
		l.entries = slices.Delete(l.entries, 0, 1)
	}
	l.wake()
}

func cursorOf(seq uint64) *string { return new(strconv.FormatUint(seq, 36)) }

// start returns where a client goes on, and whether something may be missing before that.
func (l *log) start(ctx context.Context, p Position) (seq uint64, truncated bool, err error) {
	l.stale.Store(true)
	if err := l.sync(ctx); err != nil {
		return 0, false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.Cursor == nil {
		return l.head, false, nil
	}
	seq, err = strconv.ParseUint(*p.Cursor, 36, 64)
	switch {
	case err != nil || seq > l.head:
		return l.head, true, nil
	case seq < l.floor:
		seq, truncated = l.floor, true
	}
	if p.MaxAgeMs == nil {
		return seq, truncated, nil
	}
	oldest := time.UnixMilli(time.Now().UnixMilli() - *p.MaxAgeMs)
	for _, k := range l.after(seq) {
		if !k.Time.Before(oldest) {
			break
		}
		seq, truncated = k.Seq, truncated || k.ID != ""
	}
	return seq, truncated, nil
}

// after returns the entries after a number. The caller holds mu.
func (l *log) after(seq uint64) []*kept {
	first, _ := slices.BinarySearchFunc(l.entries, seq+1, func(k *kept, seq uint64) int { return cmp.Compare(k.Seq, seq) })
	return l.entries[first:]
}

// A batch is a part of a log.
type batch struct {
	kept      []*kept
	seq       uint64 // up to which the log was read
	more      bool   // there are more that the filter wants
	truncated bool   // some are missing before the first one
}

// read returns up to most occurrences after a number that the filter wants. After an error it is a
// part of what this replica knows of.
func (l *log) read(ctx context.Context, f *filter, after uint64, most int) (batch, error) {
	err := l.sync(ctx)
	l.mu.Lock()
	b := batch{seq: max(after, l.floor), truncated: after < l.floor}
	entries := slices.Clone(l.after(b.seq))
	l.mu.Unlock()
	for _, k := range entries {
		if k.ID != "" && f.wants(ctx, k) {
			if b.more = len(b.kept) == most; b.more {
				break
			}
			b.kept = append(b.kept, k)
		}
		b.seq = k.Seq
	}
	return b, err
}
