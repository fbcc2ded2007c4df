package boltfleet

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"iter"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/mcpkit/mcpkit-go/fleet"
)

// The buckets. Numbers have 8 bytes, big-endian; times are nanoseconds since 1970. Names have no
// byte 0.
var (
	metaBucket   = []byte("meta")
	recordBucket = []byte("records") // set, 0, key -> record; its sequence counts revisions
	groupBucket  = []byte("groups")  // set, 0, group, 0, key -> nothing
	dueBucket    = []byte("due")     // set, 0, time, key -> nothing
	expiryBucket = []byte("expiry")  // time, kind, and set, 0, key or group, 0, log -> nothing
	countBucket  = []byte("counts")  // set, 0, group -> number of records; group "" for all
	headBucket   = []byte("logs")    // group, 0, log -> head
	entryBucket  = []byte("entries") // group, 0, log, 0, number -> data

	buckets = [][]byte{metaBucket, recordBucket, groupBucket, dueBucket, expiryBucket, countBucket, headBucket, entryBucket}

	formatKey = []byte("format")
	nowKey    = []byte("now")

	ballastKey = []byte("ballast") // a bucket with a large value
)

const (
	currentFormat = "1"

	kindRecord, kindLog = 'r', 'l'
)

func number[T int64 | uint64](n T) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func int64Of(b []byte) int64 { return int64(binary.BigEndian.Uint64(b)) }

// timeOf returns the zero time for no number.
func timeOf(b []byte) time.Time {
	if len(b) != 8 {
		return time.Time{}
	}
	return time.Unix(0, int64Of(b))
}

// path joins names.
func path(names ...string) []byte {
	var b []byte
	for i, name := range names {
		if i > 0 {
			b = append(b, 0)
		}
		b = append(b, name...)
	}
	return b
}

// later returns a time, and the last one that there is instead of an overflow.
func later(now int64, d time.Duration) int64 {
	if sum := now + int64(d); sum >= now {
		return sum
	}
	return 1<<63 - 1
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal prepends a checksum that covers the key, too.
func seal(key, value []byte) []byte {
	sum := crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(value)), sum), value...)
}

// unseal returns a copy of a value, and false if it is damaged.
func unseal(key, sealed []byte) ([]byte, bool) {
	if len(sealed) < 4 {
		return nil, false
	}
	sum := crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, sealed[4:])
	return bytes.Clone(sealed[4:]), sum == binary.BigEndian.Uint32(sealed)
}

// A tx is a transaction.
type tx struct {
	*bolt.Tx
	s      *store
	now    int64
	dirty  bool
	failed error // of the first change that failed
}

func (t *tx) put(bucket, key, value []byte) {
	t.dirty = true
	if err := t.Bucket(bucket).Put(key, value); err != nil && t.failed == nil {
		t.failed = err
	}
}

func (t *tx) delete(bucket, key []byte) {
	t.dirty = true
	if err := t.Bucket(bucket).Delete(key); err != nil && t.failed == nil {
		t.failed = err
	}
}

// room returns an error if the file has no space for so many bytes.
func (t *tx) room(n int) error {
	used := t.Size() - int64(t.s.free()) - headroom
	if used+int64(n) > t.s.maxBytes {
		return errFull
	}
	return nil
}

// keys returns what follows the prefix in the keys of a bucket, beginning at from, and the values.
func (t *tx) keys(bucket, prefix, from []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(rest, value []byte) bool) {
		cursor := t.Bucket(bucket).Cursor()
		seek := append(bytes.Clone(prefix), from...)
		for key, value := cursor.Seek(seek); bytes.HasPrefix(key, prefix); key, value = cursor.Next() {
			if !yield(key[len(prefix):], value) {
				return
			}
		}
	}
}

// A record is what is stored of one.
type record struct {
	revision uint64
	expires  int64
	due      int64 // 0 for never
	group    string
	data     []byte
}

func (r *record) encode(key []byte) []byte {
	b := make([]byte, 0, 25+len(r.group)+len(r.data))
	b = binary.BigEndian.AppendUint64(b, r.revision)
	b = binary.BigEndian.AppendUint64(b, uint64(r.expires))
	b = binary.BigEndian.AppendUint64(b, uint64(r.due))
	b = append(b, byte(len(r.group)))
	return seal(key, append(append(b, r.group...), r.data...))
}

func decode(key, value []byte) *record {
	b, ok := unseal(key, value)
	if !ok || len(b) < 25 || len(b) < 25+int(b[24]) {
		return nil
	}
	group := b[25 : 25+int(b[24])]
	return &record{
		revision: binary.BigEndian.Uint64(b), expires: int64Of(b[8:]), due: int64Of(b[16:]), group: string(group), data: b[25+len(group):],
	}
}

// record returns a record that has not expired, or nil. damaged says that there is something else in
// its place.
func (t *tx) record(set, key string) (r *record, damaged bool) {
	at := path(set, key)
	value := t.Bucket(recordBucket).Get(at)
	if value == nil {
		return nil, false
	}
	r = decode(at, value)
	if r == nil {
		t.s.log.Error("boltfleet: a record is damaged, and left out", "set", set, "key", key)
		return nil, true
	}
	if r.expires <= t.now {
		return nil, false
	}
	return r, false
}

// public returns a record for callers.
func (t *tx) public(key string, r *record) fleet.Record {
	return fleet.Record{Key: key, Group: r.group, Data: r.data, Revision: r.revision, TTL: time.Duration(r.expires - t.now)}
}

// store puts a record in the place of another one, or of none.
func (t *tx) store(set, key string, r, old *record, ttl, due time.Duration) uint64 {
	at := path(set, key)
	revision, err := t.Bucket(recordBucket).NextSequence()
	if err != nil && t.failed == nil {
		t.failed = err
	}
	r.revision, r.expires = revision, later(t.now, ttl)
	if due > 0 {
		r.due = later(t.now, due-fleet.AtOnce)
	}
	// The entry of a time that has moved into the future stays until then.
	if old == nil || r.expires < old.expires {
		t.put(expiryBucket, expiryKey(r.expires, kindRecord, at), nil)
	}
	if old == nil {
		t.count(set, r.group, 1)
		if r.group != "" {
			t.put(groupBucket, path(set, r.group, key), nil)
		}
	} else if old.due != 0 && old.due != r.due {
		t.delete(dueBucket, dueKey(set, old.due, key))
	}
	if r.due != 0 {
		t.put(dueBucket, dueKey(set, r.due, key), nil)
	}
	t.put(recordBucket, at, r.encode(at))
	return revision
}

func expiryKey(at int64, kind byte, what []byte) []byte {
	return append(append(number(at), kind), what...)
}

func dueKey(set string, at int64, key string) []byte {
	return append(append(path(set, ""), number(at)...), key...)
}

func (t *tx) count(set, group string, change int64) {
	for _, group := range []string{"", group}[:1+min(1, len(group))] {
		key := path(set, group)
		n := change
		if old := t.Bucket(countBucket).Get(key); old != nil {
			n += int64Of(old)
		}
		if n <= 0 {
			t.delete(countBucket, key)
		} else {
			t.put(countBucket, key, number(n))
		}
	}
}

// remove removes a record.
func (t *tx) remove(set, key string, r *record) {
	t.delete(recordBucket, path(set, key))
	t.count(set, r.group, -1)
	if r.group != "" {
		t.delete(groupBucket, path(set, r.group, key))
	}
	if r.due != 0 {
		t.delete(dueBucket, dueKey(set, r.due, key))
	}
}

// clear removes what is left of a record that has expired or is damaged. What a damaged one said of
// itself is looked for.
func (t *tx) clear(set, key string) {
	at := path(set, key)
	value := t.Bucket(recordBucket).Get(at)
	if value == nil {
		return
	}
	if r := decode(at, value); r != nil {
		t.remove(set, key, r)
		return
	}
	r := &record{}
	for rest := range t.keys(groupBucket, path(set, ""), nil) {
		if group, of, _ := bytes.Cut(rest, []byte{0}); string(of) == key {
			r.group = string(group)
			break
		}
	}
	for rest := range t.keys(dueBucket, path(set, ""), nil) {
		if string(rest[8:]) == key {
			r.due = int64Of(rest)
			break
		}
	}
	t.remove(set, key, r)
}

// expire removes up to limit records and logs that have expired.
func (t *tx) expire(limit int) {
	for range limit {
		entry, _ := t.Bucket(expiryBucket).Cursor().First()
		if entry == nil || int64Of(entry) > t.now {
			return
		}
		entry = bytes.Clone(entry)
		t.delete(expiryBucket, entry)
		first, second, _ := bytes.Cut(entry[9:], []byte{0})
		if entry[8] == kindLog {
			t.expireLog(string(first), string(second))
		} else {
			t.expireRecord(string(first), string(second))
		}
	}
}

func (t *tx) expireRecord(set, key string) {
	at := path(set, key)
	value := t.Bucket(recordBucket).Get(at)
	if value == nil {
		return
	}
	if r := decode(at, value); r != nil && r.expires > t.now {
		t.put(expiryBucket, expiryKey(r.expires, kindRecord, at), nil)
		return
	}
	t.clear(set, key)
}

// Get implements [fleet.Records].
func (e *Engine) Get(ctx context.Context, set, key string) (fleet.Record, error) {
	return view(ctx, e, func(t *tx) (fleet.Record, error) {
		r, _ := t.record(set, key)
		if r == nil {
			return fleet.Record{}, fleet.ErrNotFound
		}
		return t.public(key, r), nil
	})
}

// Create implements [fleet.Records].
func (e *Engine) Create(ctx context.Context, set string, r fleet.Record) (revision uint64, err error) {
	var created uint64
	err = e.update(ctx, false, func(t *tx) error {
		if old, _ := t.record(set, r.Key); old != nil {
			return fleet.ErrExists
		}
		if err := t.room(len(r.Data)); err != nil {
			return err
		}
		t.clear(set, r.Key)
		created = t.store(set, r.Key, &record{group: r.Group, data: r.Data}, nil, r.TTL, r.Due)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return created, nil
}

// Update implements [fleet.Records].
func (e *Engine) Update(ctx context.Context, set string, r fleet.Record) (revision uint64, err error) {
	var updated uint64
	err = e.update(ctx, false, func(t *tx) error {
		old, _ := t.record(set, r.Key)
		if old == nil {
			return fleet.ErrNotFound
		}
		if old.revision != r.Revision {
			return fleet.ErrConflict
		}
		if err := t.room(len(r.Data) - len(old.data)); err != nil && len(r.Data) > len(old.data) {
			return err
		}
		updated = t.store(set, r.Key, &record{group: old.group, data: r.Data}, old, r.TTL, r.Due)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return updated, nil
}

// Delete implements [fleet.Records].
func (e *Engine) Delete(ctx context.Context, set, key string, revision uint64) error {
	return e.update(ctx, true, func(t *tx) error {
		old, damaged := t.record(set, key)
		switch {
		case old == nil && !damaged:
			return nil
		case old != nil && revision != 0 && old.revision != revision:
			return fleet.ErrConflict
		}
		t.clear(set, key)
		return nil
	})
}

// Due implements [fleet.Records].
func (e *Engine) Due(ctx context.Context, set string, limit int) ([]fleet.Record, error) {
	return view(ctx, e, func(t *tx) (all []fleet.Record, _ error) {
		for rest := range t.keys(dueBucket, path(set, ""), nil) {
			at, key := int64Of(rest), string(rest[8:])
			if at > t.now || len(all) >= limit {
				break
			}
			if r, _ := t.record(set, key); r != nil && r.due == at {
				all = append(all, t.public(key, r))
			}
		}
		return all, nil
	})
}

// List implements [fleet.Records].
func (e *Engine) List(ctx context.Context, set, group, after string, limit int) ([]fleet.Record, error) {
	return view(ctx, e, func(t *tx) (all []fleet.Record, _ error) {
		for rest := range t.keys(groupBucket, path(set, group, ""), []byte(after)) {
			if len(all) >= limit {
				break
			}
			key := string(rest)
			if r, _ := t.record(set, key); key != after && r != nil && r.group == group {
				all = append(all, t.public(key, r))
			}
		}
		return all, nil
	})
}

// Count implements [fleet.Records].
func (e *Engine) Count(ctx context.Context, set, group string) (int, error) {
	return view(ctx, e, func(t *tx) (n int, _ error) {
		if count := t.Bucket(countBucket).Get(path(set, group)); count != nil {
			n = int(int64Of(count))
		}
		return n, nil
	})
}

// A head is what is known of a log besides its entries.
type head struct {
	last    uint64
	entries int64
	bytes   int64
	expires int64
}

func (h *head) encode(key []byte) []byte {
	b := append(number(h.last), number(h.entries)...)
	return seal(key, append(append(b, number(h.bytes)...), number(h.expires)...))
}

// head returns the head of a log, or nil if there is none or it has expired. That of a damaged one
// is made from the entries; it lives until the next Append.
func (t *tx) head(group, log string) *head {
	at := path(group, log)
	value := t.Bucket(headBucket).Get(at)
	if value == nil {
		return nil
	}
	h := &head{}
	if b, ok := unseal(at, value); ok && len(b) == 32 {
		h.last, h.entries, h.bytes, h.expires = binary.BigEndian.Uint64(b), int64Of(b[8:]), int64Of(b[16:]), int64Of(b[24:])
	} else {
		t.s.log.Error("boltfleet: the head of a log is damaged, and made again", "group", group, "log", log)
		h.expires = later(t.now, time.Hour)
		for rest, value := range t.keys(entryBucket, path(group, log, ""), nil) {
			h.last = binary.BigEndian.Uint64(rest)
			h.entries++
			h.bytes += int64(max(0, len(value)-4))
		}
	}
	if h.expires <= t.now {
		return nil
	}
	return h
}

func (t *tx) removeLog(group, log string) {
	at := path(group, log)
	if t.Bucket(headBucket).Get(at) == nil {
		return
	}
	t.delete(headBucket, at)
	t.deleteWhile(entryBucket, path(group, log, ""), func([]byte) bool { return true })
}

// deleteWhile deletes the keys with the prefix, in order, as long as their values fulfil the
// condition.
func (t *tx) deleteWhile(bucket, prefix []byte, condition func(value []byte) bool) {
	var gone [][]byte
	for rest, value := range t.keys(bucket, prefix, nil) {
		if !condition(value) {
			break
		}
		gone = append(gone, append(bytes.Clone(prefix), rest...))
	}
	for _, key := range gone {
		t.delete(bucket, key)
	}
}

func (t *tx) expireLog(group, log string) {
	if h := t.head(group, log); h != nil {
		t.put(expiryBucket, expiryKey(h.expires, kindLog, path(group, log)), nil)
		return
	}
	t.removeLog(group, log)
}

// Append implements [fleet.Logs].
func (e *Engine) Append(ctx context.Context, group, log string, entry fleet.Entry, keep fleet.Keep) error {
	return e.update(ctx, false, func(t *tx) error {
		at, prefix := path(group, log), path(group, log, "")
		key := append(bytes.Clone(prefix), number(entry.Seq)...)
		h := t.head(group, log)
		if h != nil && entry.Seq <= h.last {
			data, ok := unseal(key, t.Bucket(entryBucket).Get(key))
			if !ok || !bytes.Equal(data, entry.Data) {
				return fleet.ErrConflict
			}
			return nil
		}
		if err := t.room(len(entry.Data)); err != nil {
			return err
		}
		expires := later(t.now, keep.TTL)
		if h == nil {
			t.removeLog(group, log)
			h = &head{}
		}
		if h.expires == 0 || expires < h.expires {
			t.put(expiryBucket, expiryKey(expires, kindLog, at), nil)
		}
		h.last, h.expires = entry.Seq, expires
		h.entries++
		h.bytes += int64(len(entry.Data))
		t.deleteWhile(entryBucket, prefix, func(value []byte) bool {
			if h.entries <= int64(keep.Entries) && h.bytes <= int64(keep.Bytes) {
				return false
			}
			h.entries--
			h.bytes -= int64(max(0, len(value)-4))
			return true
		})
		t.put(entryBucket, key, seal(key, entry.Data))
		t.put(headBucket, at, h.encode(at))
		return nil
	})
}

// After implements [fleet.Logs]. Damaged entries are left out.
func (e *Engine) After(ctx context.Context, group, log string, seq uint64, limit int) ([]fleet.Entry, error) {
	return view(ctx, e, func(t *tx) (all []fleet.Entry, _ error) {
		if t.head(group, log) == nil || seq == 1<<64-1 {
			return nil, nil
		}
		prefix := path(group, log, "")
		for rest, value := range t.keys(entryBucket, prefix, number(seq+1)) {
			if len(all) >= limit {
				break
			}
			n := binary.BigEndian.Uint64(rest)
			data, ok := unseal(append(bytes.Clone(prefix), rest...), value)
			if !ok {
				t.s.log.Error("boltfleet: an entry of a log is damaged, and left out", "group", group, "log", log, "number", n)
				continue
			}
			all = append(all, fleet.Entry{Seq: n, Data: data})
		}
		return all, nil
	})
}

// Last implements [fleet.Logs].
func (e *Engine) Last(ctx context.Context, group, log string) (uint64, error) {
	return view(ctx, e, func(t *tx) (uint64, error) {
		if h := t.head(group, log); h != nil {
			return h.last, nil
		}
		return 0, nil
	})
}

// Drop implements [fleet.Logs].
func (e *Engine) Drop(ctx context.Context, group string) error {
	return e.update(ctx, true, func(t *tx) error {
		var logs []string
		for rest := range t.keys(headBucket, path(group, ""), nil) {
			logs = append(logs, string(rest))
		}
		for _, log := range logs {
			t.removeLog(group, log)
		}
		return nil
	})
}
