package fleet

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"iter"
	"slices"
	"sync"
	"time"
)

// A Table is an ordered map of byte strings with transactions, in which a [Local] keeps what it
// stores. It is safe for concurrent use.
type Table interface {
	// View runs read on the table as it is at one moment.
	View(read func(Tx) error) error

	// Update runs change and keeps what it changed when Update returns nil. After an error of change,
	// or another one, nothing has changed. It may run change more than once, and it may return when
	// ctx ends, before it is known whether the change was kept.
	Update(ctx context.Context, change func(Tx) error) error

	// Close releases the table. Its methods fail after that.
	Close() error
}

// A Tx is a transaction of a [Table]. Keys and values are valid until it ends.
type Tx interface {
	Get(key []byte) []byte // nil if the table does not have the key
	Put(key, value []byte) error
	Delete(key []byte) error

	// Scan returns the keys with the prefix in order, from prefix+from on. The table must not be
	// changed before the loop ends.
	Scan(prefix, from []byte) iter.Seq2[[]byte, []byte]

	// Used returns how many bytes the table takes, with the changes so far.
	Used() int64
}

// A Local is an [Engine] for the servers of one process. It keeps records and logs in a [Table]; its
// bus does not leave the process. Create one with [NewMemory], [NewLocal] or package boltfleet.
type Local struct {
	s     *localStore
	hub   Hub
	close func() error
}

var _ Engine = (*Local)(nil)

// localStore is what engines of one table share.
type localStore struct {
	table    Table
	maxBytes int64

	mu       sync.Mutex
	hubs     map[*Hub]struct{}   // of the open engines; guarded by mu
	replicas map[string]struct{} // that have started; guarded by mu
	ahead    time.Duration       // of the clock, in tests; guarded by mu
}

// NewLocal returns an engine that keeps its data in a table, which no other one uses. It closes the
// table. When the table uses more than maxBytes, the engine refuses what is new until something
// expires or is deleted: the error is [ErrFull].
func NewLocal(table Table, maxBytes int64) *Local {
	return (&localStore{table: table, maxBytes: maxBytes, hubs: map[*Hub]struct{}{}, replicas: map[string]struct{}{}}).open()
}

// Open returns another engine that shares all records, logs and messages with l, for another server
// of the process. The last one that is closed closes the table.
func (l *Local) Open() *Local { return l.s.open() }

func (s *localStore) open() *Local {
	l := &Local{s: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hubs[&l.hub] = struct{}{}
	l.close = sync.OnceValue(func() error {
		s.mu.Lock()
		delete(s.hubs, &l.hub)
		last := len(s.hubs) == 0
		s.mu.Unlock()
		l.hub.Close()
		if last {
			return s.table.Close()
		}
		return nil
	})
	return l
}

// Close implements [Engine].
func (l *Local) Close() error { return l.close() }

// join notes that a replica of this process has started, until leave is called.
func (l *Local) join(replica string) (leave func()) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.s.replicas[replica] = struct{}{}
	return func() {
		l.s.mu.Lock()
		defer l.s.mu.Unlock()
		delete(l.s.replicas, replica)
	}
}

// joined reports whether a replica of this process has started. There are no others.
func (l *Local) joined(replica string) bool {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	_, found := l.s.replicas[replica]
	return found
}

// begin returns the time, or an error if ctx has ended or the engine is closed.
func (l *Local) begin(ctx context.Context) (now int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if _, open := l.s.hubs[&l.hub]; !open {
		return 0, errClosed
	}
	return time.Now().Add(l.s.ahead).UnixNano(), nil
}

// view runs read.
func view[T any](ctx context.Context, l *Local, read func(*localTx) (T, error)) (result T, err error) {
	now, err := l.begin(ctx)
	if err != nil {
		return result, err
	}
	err = l.s.table.View(func(t Tx) (err error) {
		result, err = read(&localTx{Tx: t, now: now})
		return err
	})
	return result, err
}

// update removes what has expired, and then runs run.
func update[T any](ctx context.Context, l *Local, run func(*localTx) (T, error)) (result T, err error) {
	now, err := l.begin(ctx)
	if err != nil {
		return result, err
	}
	done := make(chan T, 1) // the table may still run the function when this one has returned
	err = l.s.table.Update(ctx, func(in Tx) error {
		select {
		case <-done: // of an earlier run
		default:
		}
		t, before := &localTx{Tx: in, now: now}, in.Used()
		t.expire()
		result, err := run(t)
		if err = cmp.Or(err, t.failed); err != nil {
			return err
		}
		if after := in.Used(); after > before && after > l.s.maxBytes {
			return ErrFull
		}
		done <- result
		return nil
	})
	if err != nil {
		return result, err
	}
	return <-done, nil
}

// change is update without a result.
func (l *Local) change(ctx context.Context, run func(*localTx) error) error {
	_, err := update(ctx, l, func(t *localTx) (struct{}, error) { return struct{}{}, run(t) })
	return err
}

// What keys of a table begin with. Names follow, each with a byte 0 at its end. Numbers have 8
// bytes, big-endian; times are nanoseconds since 1970.
const (
	recordKey   = 'r' // set, key: a record
	groupKey    = 'g' // set, group, key: nothing
	dueKey      = 'd' // set, time, key of the record: nothing
	countKey    = 'n' // set, group: the number of records; group "" for all
	logKey      = 'l' // group, log: a head
	entryKey    = 'e' // group, log, number: data
	expiryKey   = 'x' // time, key of a record or head: nothing
	revisionKey = 's' // the last revision
)

func tableKey(kind byte, names ...string) []byte {
	key := []byte{kind}
	for _, name := range names {
		key = append(append(key, name...), 0)
	}
	return key
}

// names returns the names in a key after its kind.
func names(key []byte) (first, second string) {
	a, rest, _ := bytes.Cut(key[1:], []byte{0})
	b, _, _ := bytes.Cut(rest, []byte{0})
	return string(a), string(b)
}

func number[T int64 | uint64](n T) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// numberOf decodes what begins with a number; nil is 0.
func numberOf(b []byte) uint64 {
	if b == nil {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

// later returns a time, or the last one that there is instead of an overflow.
func later(now int64, d time.Duration) int64 {
	if sum := now + int64(d); sum >= now {
		return sum
	}
	return 1<<63 - 1
}

// A localTx is a transaction of a Local.
type localTx struct {
	Tx
	now    int64
	failed error // of the first change that failed
}

func (t *localTx) put(key, value []byte) { t.failed = cmp.Or(t.failed, t.Put(key, value)) }

func (t *localTx) remove(key []byte) { t.failed = cmp.Or(t.failed, t.Delete(key)) }

// setTimes moves what has the key in the index of expiry.
func (t *localTx) setTimes(key []byte, old, expires int64) {
	if old != 0 {
		t.remove(slices.Concat([]byte{expiryKey}, number(old), key))
	}
	if expires != 0 {
		t.put(slices.Concat([]byte{expiryKey}, number(expires), key), nil)
	}
}

// expired returns the first entry of the index of expiry, if it is over; otherwise nil.
func (t *localTx) expired() []byte {
	for entry := range t.Scan([]byte{expiryKey}, nil) {
		if int64(numberOf(entry[1:])) <= t.now {
			return bytes.Clone(entry)
		}
		break
	}
	return nil
}

// expire removes what has expired.
func (t *localTx) expire() {
	for entry := t.expired(); entry != nil && t.failed == nil; entry = t.expired() {
		t.remove(entry)
		if first, second := names(entry[9:]); entry[9] == logKey {
			t.removeLog(first, second)
		} else {
			t.removeRecord(first, second)
		}
	}
}

// A localRecord is what is stored of a record.
type localRecord struct {
	revision     uint64
	expires, due int64 // due is 0 for never
	group        string
	data         []byte
}

func (r *localRecord) encode() []byte {
	b := slices.Concat(number(r.revision), number(r.expires), number(r.due), []byte{byte(len(r.group))}, []byte(r.group))
	return append(b, r.data...)
}

// record returns a record, or nil. Its data is valid after the transaction.
func (t *localTx) record(set, key string) *localRecord {
	b := bytes.Clone(t.Get(tableKey(recordKey, set, key)))
	if len(b) < 25 || len(b) < 25+int(b[24]) {
		return nil
	}
	group, data := b[25:25+int(b[24])], b[25+int(b[24]):]
	return &localRecord{numberOf(b), int64(numberOf(b[8:])), int64(numberOf(b[16:])), string(group), data}
}

// alive is record without those that have expired, as callers see it.
func (t *localTx) alive(set, key string) (r Record, found bool) {
	own := t.record(set, key)
	if own == nil || own.expires <= t.now {
		return Record{}, false
	}
	return Record{Key: key, Group: own.group, Data: own.data, Revision: own.revision, TTL: time.Duration(own.expires - t.now)}, true
}

// putRecord stores r in the place of old, or of nothing, and returns the revision.
func (t *localTx) putRecord(set string, r Record, old *localRecord) uint64 {
	revision := numberOf(t.Get([]byte{revisionKey})) + 1
	t.put([]byte{revisionKey}, number(revision))
	own := &localRecord{revision: revision, expires: later(t.now, r.TTL), group: r.Group, data: r.Data}
	if r.Due > 0 {
		own.due = later(t.now, r.Due-AtOnce)
	}
	key := tableKey(recordKey, set, r.Key)
	if old == nil {
		old = &localRecord{}
		t.count(set, r.Group, 1)
		if r.Group != "" {
			t.put(tableKey(groupKey, set, r.Group, r.Key), nil)
		}
	}
	t.setDue(set, r.Key, old.due, own.due)
	t.setTimes(key, old.expires, own.expires)
	t.put(key, own.encode())
	return revision
}

func (t *localTx) setDue(set, key string, old, due int64) {
	at := func(due int64) []byte { return slices.Concat(tableKey(dueKey, set), number(due), []byte(key)) }
	if old != 0 {
		t.remove(at(old))
	}
	if due != 0 {
		t.put(at(due), nil)
	}
}

// count changes how many records the group and the set have.
func (t *localTx) count(set, group string, change int64) {
	for _, group := range []string{"", group}[:1+min(1, len(group))] {
		key := tableKey(countKey, set, group)
		if n := int64(numberOf(t.Get(key))) + change; n > 0 {
			t.put(key, number(n))
		} else {
			t.remove(key)
		}
	}
}

func (t *localTx) removeRecord(set, key string) {
	r := t.record(set, key)
	if r == nil {
		return
	}
	t.setDue(set, key, r.due, 0)
	t.setTimes(tableKey(recordKey, set, key), r.expires, 0)
	t.count(set, r.group, -1)
	if r.group != "" {
		t.remove(tableKey(groupKey, set, r.group, key))
	}
	t.remove(tableKey(recordKey, set, key))
}

// Get implements [Records].
func (l *Local) Get(ctx context.Context, set, key string) (Record, error) {
	return view(ctx, l, func(t *localTx) (Record, error) {
		r, found := t.alive(set, key)
		if !found {
			return Record{}, ErrNotFound
		}
		return r, nil
	})
}

// Create implements [Records].
func (l *Local) Create(ctx context.Context, set string, r Record) (revision uint64, err error) {
	return update(ctx, l, func(t *localTx) (uint64, error) {
		if t.record(set, r.Key) != nil {
			return 0, ErrExists
		}
		return t.putRecord(set, r, nil), nil
	})
}

// Update implements [Records].
func (l *Local) Update(ctx context.Context, set string, r Record) (revision uint64, err error) {
	return update(ctx, l, func(t *localTx) (uint64, error) {
		old := t.record(set, r.Key)
		if old == nil {
			return 0, ErrNotFound
		}
		if old.revision != r.Revision {
			return 0, ErrConflict
		}
		r := r
		r.Group = old.group
		return t.putRecord(set, r, old), nil
	})
}

// Delete implements [Records].
func (l *Local) Delete(ctx context.Context, set, key string, revision uint64) error {
	return l.change(ctx, func(t *localTx) error {
		if old := t.record(set, key); old != nil && revision != 0 && old.revision != revision {
			return ErrConflict
		}
		t.removeRecord(set, key)
		return nil
	})
}

// Due implements [Records].
func (l *Local) Due(ctx context.Context, set string, within time.Duration, limit int) ([]Record, error) {
	return view(ctx, l, func(t *localTx) (all []Record, _ error) {
		prefix := tableKey(dueKey, set)
		for key := range t.Scan(prefix, nil) {
			rest := key[len(prefix):]
			if int64(numberOf(rest)) > later(t.now, within) || len(all) == limit {
				break
			}
			if r, found := t.alive(set, string(rest[8:])); found {
				all = append(all, r)
			}
		}
		return all, nil
	})
}

// List implements [Records].
func (l *Local) List(ctx context.Context, set, group, after string, limit int) ([]Record, error) {
	return view(ctx, l, func(t *localTx) (all []Record, _ error) {
		prefix := tableKey(groupKey, set, group)
		for key := range t.Scan(prefix, []byte(after)) {
			if len(all) == limit {
				break
			}
			name := string(bytes.TrimSuffix(key[len(prefix):], []byte{0}))
			if r, found := t.alive(set, name); found && name != after {
				all = append(all, r)
			}
		}
		return all, nil
	})
}

// Count implements [Records].
func (l *Local) Count(ctx context.Context, set, group string) (int, error) {
	count := func(t *localTx) (int, error) { return int(numberOf(t.Get(tableKey(countKey, set, group)))), nil }
	stale, err := view(ctx, l, func(t *localTx) (bool, error) { return t.expired() != nil, nil })
	switch {
	case err != nil:
		return 0, err
	case stale:
		return update(ctx, l, count)
	}
	return view(ctx, l, count)
}

// A logHead is what is stored of a log besides its entries.
type logHead struct {
	last           uint64
	entries, bytes int64
	expires        int64
}

// head returns the head of a log; nil if there is none.
func (t *localTx) head(group, log string) *logHead {
	b := t.Get(tableKey(logKey, group, log))
	if len(b) != 32 {
		return nil
	}
	return &logHead{numberOf(b), int64(numberOf(b[8:])), int64(numberOf(b[16:])), int64(numberOf(b[24:]))}
}

func (t *localTx) removeLog(group, log string) {
	h := t.head(group, log)
	if h == nil {
		return
	}
	t.shorten(group, log, h, Keep{})
	t.setTimes(tableKey(logKey, group, log), h.expires, 0)
	t.remove(tableKey(logKey, group, log))
}

// shorten removes the oldest entries beyond the limits.
func (t *localTx) shorten(group, log string, h *logHead, keep Keep) {
	var gone [][]byte
	for key, data := range t.Scan(tableKey(entryKey, group, log), nil) {
		if h.entries <= int64(keep.Entries) && h.bytes <= int64(keep.Bytes) {
			break
		}
		h.entries--
		h.bytes -= int64(len(data))
		gone = append(gone, bytes.Clone(key))
	}
	for _, key := range gone {
		t.remove(key)
	}
}

// Append implements [Logs].
func (l *Local) Append(ctx context.Context, group, log string, e Entry, keep Keep) error {
	return l.change(ctx, func(t *localTx) error {
		h := t.head(group, log)
		if h == nil {
			h = &logHead{}
		}
		entry := append(tableKey(entryKey, group, log), number(e.Seq)...)
		if e.Seq <= h.last {
			if old := t.Get(entry); old == nil || !bytes.Equal(old, e.Data) {
				return ErrConflict
			}
			return nil
		}
		// The new entry stays in any case, so it counts before it is there.
		h.last, h.entries, h.bytes = e.Seq, h.entries+1, h.bytes+int64(len(e.Data))
		t.shorten(group, log, h, keep)
		t.put(entry, e.Data)
		head, expires := tableKey(logKey, group, log), later(t.now, keep.TTL)
		t.setTimes(head, h.expires, expires)
		t.put(head, slices.Concat(number(h.last), number(h.entries), number(h.bytes), number(expires)))
		return nil
	})
}

// After implements [Logs].
func (l *Local) After(ctx context.Context, group, log string, seq uint64, limit int) ([]Entry, error) {
	return view(ctx, l, func(t *localTx) (all []Entry, _ error) {
		if h := t.head(group, log); h == nil || h.expires <= t.now {
			return nil, nil
		}
		prefix := tableKey(entryKey, group, log)
		for key, data := range t.Scan(prefix, number(seq)) {
			if len(all) == limit {
				break
			}
			if n := numberOf(key[len(prefix):]); n > seq {
				all = append(all, Entry{n, bytes.Clone(data)})
			}
		}
		return all, nil
	})
}

// Drop implements [Logs].
func (l *Local) Drop(ctx context.Context, group string) error {
	return l.change(ctx, func(t *localTx) error {
		var logs []string
		for key := range t.Scan(tableKey(logKey, group), nil) {
			_, log := names(key)
			logs = append(logs, log)
		}
		for _, log := range logs {
			t.removeLog(group, log)
		}
		return nil
	})
}

// Publish implements [Bus].
func (l *Local) Publish(ctx context.Context, topic string, data []byte) error {
	if _, err := l.begin(ctx); err != nil {
		return err
	}
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	for hub := range l.s.hubs {
		hub.Deliver(topic, data)
	}
	return nil
}

// Subscribe implements [Bus].
func (l *Local) Subscribe(ctx context.Context, topics []string, deliver func(topic string, data []byte), missed func()) error {
	return l.hub.Subscribe(ctx, topics, deliver, missed, nil)
}
