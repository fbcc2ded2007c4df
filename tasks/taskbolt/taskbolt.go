// Package taskbolt keeps the records of tasks in a file, with bbolt. The file belongs to one process
// at a time, so the server has one replica.
//
// Each change is on the disk when the store returns: a task that a client knows of is there after a
// crash, and so is its result.
//
// A record that is damaged is logged once and left in the file. It is neither claimed nor listed,
// and Get and Update return an error for it; other records are not affected.
package taskbolt

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"math"
	"os"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/mcpkit/mcpkit-go/tasks"
)

// A Store is a [tasks.Store] in a file. Make one with [Open] or [OpenWith].
type Store struct {
	db       *bolt.DB
	maxBytes int64
	logger   *slog.Logger
	logged   sync.Map // IDs of damaged records that were logged
	tasks.Watchers
}

// Options configures [OpenWith]. The zero value serves.
type Options struct {
	// MaxBytes limits the bytes of the file that are in use. Beyond it, tasks of the owner that have
	// ended are deleted before their time, and then new tasks and answers are refused with a
	// [*tasks.LimitError]. Outcomes of tasks are always kept. The file grows in steps, and does not
	// shrink. Zero means [DefaultMaxBytes].
	MaxBytes int64

	// Logger receives errors about damaged records. Nil means slog.Default.
	Logger *slog.Logger
}

// DefaultMaxBytes is the default of [Options.MaxBytes].
//
//limit:server bytes in use of the file of `taskbolt` | the oldest task of the caller that has ended is deleted; then a tool error: `the server has too many tasks; try again later`
const DefaultMaxBytes = 4 << 30

// The buckets. Times are big-endian nanoseconds since 1970, so that keys sort by time.
var (
	records = []byte("records") // ID -> record
	ready   = []byte("ready")   // created, ID -> end of the lease
	expires = []byte("expires") // expires, ID -> nothing
	owners  = []byte("owners")  // owner, 0, ID -> number in which it ended, 0 if it has not
	ended   = []byte("ended")   // owner, 0, number in which it ended, ID -> nothing
	counts  = []byte("counts")  // owner, 0, kind of count -> number
	total   = []byte{1}         // the key in counts of all records; owners are hexadecimal
)

// Open opens the file, or creates it for the user alone. The error says so if another process has
// it open for more than 5 seconds.
func Open(path string) (*Store, error) { return OpenWith(path, nil) }

// OpenWith is Open with options. Nil options are the zero value.
func OpenWith(path string, opts *Options) (*Store, error) {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	if o.MaxBytes < 0 {
		return nil, fmt.Errorf("taskbolt: MaxBytes is %d; 0 means %d", o.MaxBytes, int64(DefaultMaxBytes))
	}
	if err := checkSize(path); err != nil {
		return nil, fmt.Errorf("taskbolt: %w", err)
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: 5 * time.Second})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("taskbolt: another process has %s open", path)
	}
	if err != nil {
		return nil, fmt.Errorf("taskbolt: %w", err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{records, ready, expires, owners, ended, counts} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("taskbolt: %w", err)
	}
	return &Store{db: db, maxBytes: cmp.Or(o.MaxBytes, DefaultMaxBytes), logger: cmp.Or(o.Logger, slog.Default())}, nil
}

// checkSize returns an error if the file has lost its end: bbolt maps it into memory, so what is
// missing would end the process. A file that cannot be opened is left to Open.
func checkSize(path string) error {
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		return nil
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second, ReadOnly: true})
	if err != nil {
		return nil
	}
	defer func() { _ = db.Close() }()
	return db.View(func(tx *bolt.Tx) error {
		info, err := os.Stat(path) // nobody writes now
		if err == nil && info.Size() < tx.Size() {
			err = fmt.Errorf("%s is damaged: it has %d bytes of %d; restore it, or remove it and lose its tasks", path, info.Size(), tx.Size())
		}
		return err
	})
}

// Close closes the file; other methods then fail. Close the server before. It may be called more than
// once.
func (s *Store) Close() error { return s.db.Close() }

// Exclusive reports that no other process has the file open: leases of an earlier process are void.
func (s *Store) Exclusive() bool { return true }

// A header is a record without its data.
type header struct {
	Owner   string      `json:"o"`
	Version int64       `json:"v"`
	State   tasks.State `json:"s"`
	Created int64       `json:"c"`
	Expires int64       `json:"x"`
	Lease   int64       `json:"l,omitempty"`
	Fence   int64       `json:"f,omitempty"`
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func timeOf(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos).UTC()
}

func encode(r *tasks.Record) ([]byte, error) {
	head, err := json.Marshal(header{r.Owner, r.Version, r.State, nanos(r.Created), nanos(r.Expires), nanos(r.Lease), r.Fence})
	if err != nil {
		return nil, err
	}
	b := binary.AppendUvarint(make([]byte, 4), uint64(len(head)))
	b = append(append(b, head...), r.Data...)
	binary.BigEndian.PutUint32(b, checksum(r.ID, b[4:]))
	return b, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum finds damage. The data itself is authenticated by its seal.
func checksum(id string, b []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte(id), castagnoli), castagnoli, b)
}

// errDamaged means that a record is not as it was written.
var errDamaged = errors.New("taskbolt: the record is damaged")

func decode(id, b []byte) (*tasks.Record, error) {
	if len(b) < 4 || binary.BigEndian.Uint32(b) != checksum(string(id), b[4:]) {
		return nil, errDamaged
	}
	b = b[4:]
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, errDamaged
	}
	var h header
	if err := json.Unmarshal(b[n:n+int(size)], &h); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return &tasks.Record{
		ID: string(id), Owner: h.Owner, Version: h.Version, State: h.State, Created: timeOf(h.Created), Expires: timeOf(h.Expires),
		Lease: timeOf(h.Lease), Fence: h.Fence, Data: bytes.Clone(b[n+int(size):]),
	}, nil
}

// timeKey is a key that sorts by time, and then by ID.
func timeKey(t time.Time, id string) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(nanos(t))), id...)
}

// ownerKey is a key that begins with an owner.
func ownerKey(owner string, rest ...byte) []byte {
	return append(append([]byte(owner), 0), rest...)
}

// A tx is a transaction.
type tx struct{ *bolt.Tx }

func (s *Store) update(f func(tx) error) error {
	return s.db.Update(func(t *bolt.Tx) error { return f(tx{t}) })
}

func (s *Store) view(f func(tx) error) error {
	return s.db.View(func(t *bolt.Tx) error { return f(tx{t}) })
}

func (t tx) get(id string) (*tasks.Record, error) {
	b := t.Bucket(records).Get([]byte(id))
	if b == nil || id == "" {
		return nil, tasks.ErrNotFound
	}
	return decode([]byte(id), b)
}

// number returns in which order a record ended; 0 if it has not.
func (t tx) number(r *tasks.Record) uint64 {
	b := t.Bucket(owners).Get(ownerKey(r.Owner, []byte(r.ID)...))
	if len(b) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

// used returns the bytes of the file that are in use.
func (s *Store) used(t tx) int64 {
	stats := s.db.Stats()
	return t.Size() - int64(stats.FreePageN+stats.PendingPageN)*int64(s.db.Info().PageSize)
}

// report logs that a record is damaged, once.
func (s *Store) report(id string) {
	if _, known := s.logged.LoadOrStore(id, true); !known {
		s.logger.Error("taskbolt: a record is damaged; it stays in the file", "task", id[:min(len(id), 8)], "file", s.db.Path())
	}
}

// count changes a number and returns it.
func (t tx) count(key []byte, change int64) (int64, error) {
	b := t.Bucket(counts)
	var n int64
	if old := b.Get(key); old != nil {
		n = int64(binary.BigEndian.Uint64(old))
	}
	if change == 0 {
		return n, nil
	}
	n += change
	if n == 0 {
		return 0, b.Delete(key)
	}
	return n, b.Put(key, binary.BigEndian.AppendUint64(nil, uint64(n)))
}

func openKey(owner string) []byte { return ownerKey(owner, 'o') }
func keptKey(owner string) []byte { return ownerKey(owner, 'k') }

// put stores a record and changes the indexes. old is the one that it replaces, or nil.
func (t tx) put(r, old *tasks.Record) error {
	var number uint64 // in which the record ended
	if old != nil {
		number = t.number(old)
		if err := t.drop(old); err != nil {
			return err
		}
	}
	text, err := encode(r)
	if err != nil {
		return err
	}
	puts := errors.Join(
		t.Bucket(records).Put([]byte(r.ID), text),
		t.Bucket(expires).Put(timeKey(r.Expires, r.ID), nil),
	)
	if r.State == tasks.Ready {
		puts = errors.Join(puts, t.Bucket(ready).Put(timeKey(r.Created, r.ID), binary.BigEndian.AppendUint64(nil, uint64(nanos(r.Lease)))))
	}
	if r.State == tasks.Ended {
		if number == 0 {
			if number, err = t.Bucket(ended).NextSequence(); err != nil {
				return err
			}
		}
		puts = errors.Join(puts, t.Bucket(ended).Put(endedKey(r, number), nil))
	} else {
		number = 0
		_, err := t.count(openKey(r.Owner), 1)
		puts = errors.Join(puts, err)
	}
	_, kept := t.count(keptKey(r.Owner), 1)
	_, all := t.count(total, 1)
	return errors.Join(puts, kept, all,
		t.Bucket(owners).Put(ownerKey(r.Owner, []byte(r.ID)...), binary.BigEndian.AppendUint64(nil, number)))
}

func endedKey(r *tasks.Record, number uint64) []byte {
	return ownerKey(r.Owner, append(binary.BigEndian.AppendUint64(nil, number), r.ID...)...)
}

// drop deletes a record.
func (t tx) drop(r *tasks.Record) error {
	key := ownerKey(r.Owner, []byte(r.ID)...)
	number := t.number(r)
	_, kept := t.count(keptKey(r.Owner), -1)
	_, all := t.count(total, -1)
	var open error
	if r.State != tasks.Ended {
		_, open = t.count(openKey(r.Owner), -1)
	}
	return errors.Join(kept, all, open,
		t.Bucket(records).Delete([]byte(r.ID)),
		t.Bucket(ready).Delete(timeKey(r.Created, r.ID)),
		t.Bucket(expires).Delete(timeKey(r.Expires, r.ID)),
		t.Bucket(ended).Delete(endedKey(r, number)),
		t.Bucket(owners).Delete(key))
}

// Create implements [tasks.Store].
func (s *Store) Create(_ context.Context, r *tasks.Record, limits tasks.Limits) error {
	var evicted []string
	err := s.update(func(t tx) error {
		if t.Bucket(records).Get([]byte(r.ID)) != nil {
			return tasks.ErrConflict
		}
		open, err := t.count(openKey(r.Owner), 0)
		if err == nil && limits.Open > 0 && open >= int64(limits.Open) {
			return &tasks.LimitError{Limit: limits.Open}
		}
		if err == nil {
			evicted, err = s.makeRoom(t, r, limits)
		}
		if err != nil {
			return err
		}
		r.Version = 1
		return t.put(r, nil)
	})
	if err != nil {
		return err
	}
	for _, id := range append(evicted, r.ID) {
		s.Changed(id)
	}
	return nil
}

// makeRoom deletes the records of the owner that ended first, if the owner has too many, or if the
// file would become too large.
func (s *Store) makeRoom(t tx, r *tasks.Record, limits tasks.Limits) (evicted []string, err error) {
	kept, err := t.count(keptKey(r.Owner), 0)
	if err != nil {
		return nil, err
	}
	if limits.Kept > 0 && kept >= int64(limits.Kept) {
		old, err := s.evict(t, r)
		if err != nil {
			return nil, err
		}
		if old == nil {
			return nil, &tasks.LimitError{Limit: limits.Kept}
		}
		evicted = append(evicted, old.ID)
	}
	more, err := s.makeSpace(t, r, len(r.Data))
	if err != nil {
		return nil, err
	}
	evicted = append(evicted, more...)
	all, err := t.count(total, 0)
	if err == nil && limits.Total > 0 && all >= int64(limits.Total) {
		return nil, &tasks.LimitError{Total: true, Limit: limits.Total}
	}
	return evicted, err
}

// makeSpace deletes the records of the owner that ended first, until there is space for so many
// bytes more.
func (s *Store) makeSpace(t tx, r *tasks.Record, n int) (evicted []string, err error) {
	for over := s.used(t) + int64(n) - s.maxBytes; over > 0; {
		old, err := s.evict(t, r)
		if err != nil {
			return nil, err
		}
		if old == nil {
			return nil, &tasks.LimitError{Total: true, Bytes: true, Limit: int(min(s.maxBytes, math.MaxInt))}
		}
		evicted = append(evicted, old.ID)
		over -= int64(len(old.Data))
	}
	return evicted, nil
}

// evict deletes the record of the owner of r that ended first. It returns nil if there is none.
func (s *Store) evict(t tx, r *tasks.Record) (*tasks.Record, error) {
	prefix := ownerKey(r.Owner)
	for {
		key, _ := t.Bucket(ended).Cursor().Seek(prefix)
		if !bytes.HasPrefix(key, prefix) {
			return nil, nil
		}
		id := string(key[len(prefix)+8:])
		old, err := t.get(id)
		switch {
		case errors.Is(err, errDamaged):
			s.report(id)
			err = t.Bucket(ended).Delete(bytes.Clone(key))
		case err == nil:
			return old, t.drop(old)
		}
		if err != nil {
			return nil, err
		}
	}
}

// Get implements [tasks.Store].
func (s *Store) Get(_ context.Context, id string) (r *tasks.Record, err error) {
	err = s.view(func(t tx) error { r, err = t.get(id); return err })
	return r, err
}

// Update implements [tasks.Store].
func (s *Store) Update(_ context.Context, r *tasks.Record) error {
	var evicted []string
	err := s.update(func(t tx) error {
		old, err := t.get(r.ID)
		if err != nil {
			return err
		}
		if old.Version != r.Version {
			return tasks.ErrConflict
		}
		if more := len(r.Data) - len(old.Data); more > 0 && r.State == tasks.Asleep {
			if evicted, err = s.makeSpace(t, r, more); err != nil {
				return err
			}
		}
		next := *r
		next.Version++
		return t.put(&next, old)
	})
	if err != nil {
		return err
	}
	r.Version++
	for _, id := range append(evicted, r.ID) {
		s.Changed(id)
	}
	return nil
}

// Claim implements [tasks.Store]. The record is the one that was created first.
func (s *Store) Claim(_ context.Context, before, until time.Time) (r *tasks.Record, err error) {
	var damaged [][]byte
	err = s.update(func(t tx) error {
		cursor := t.Bucket(ready).Cursor()
		for key, lease := cursor.First(); key != nil; key, lease = cursor.Next() {
			if int64(binary.BigEndian.Uint64(lease)) >= nanos(before) {
				continue
			}
			id := string(key[8:])
			old, err := t.get(id)
			if errors.Is(err, errDamaged) {
				s.report(id)
				damaged = append(damaged, bytes.Clone(key))
				continue
			}
			if err != nil {
				return err
			}
			next := *old
			next.Lease = until.UTC()
			next.Fence++
			next.Version++
			r = &next
			return errors.Join(t.put(r, old), t.forget(ready, damaged))
		}
		if damaged == nil {
			return tasks.ErrNotFound // nothing is written
		}
		return t.forget(ready, damaged)
	})
	if err == nil && r == nil {
		err = tasks.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	s.Changed(r.ID)
	return r, nil
}

// forget deletes keys of damaged records from an index.
func (t tx) forget(index []byte, keys [][]byte) error {
	var errs []error
	for _, key := range keys {
		errs = append(errs, t.Bucket(index).Delete(key))
	}
	return errors.Join(errs...)
}

// Extend implements [tasks.Store].
func (s *Store) Extend(_ context.Context, id string, fence int64, until time.Time) error {
	return s.update(func(t tx) error {
		old, err := t.get(id)
		if err != nil {
			return err
		}
		if old.Fence != fence || old.State != tasks.Ready {
			return tasks.ErrConflict
		}
		next := *old
		next.Lease = until
		return t.put(&next, old)
	})
}

// List implements [tasks.Store].
func (s *Store) List(_ context.Context, owner, after string, limit int) (list []*tasks.Record, err error) {
	err = s.view(func(t tx) error {
		prefix := ownerKey(owner)
		cursor := t.Bucket(owners).Cursor()
		for key, _ := cursor.Seek(append(prefix[:len(prefix):len(prefix)], after...)); bytes.HasPrefix(key, prefix) && len(list) < limit; key, _ = cursor.Next() {
			id := string(key[len(prefix):])
			if id == after {
				continue
			}
			r, err := t.get(id)
			if errors.Is(err, errDamaged) {
				s.report(id)
				continue
			}
			if err != nil {
				return err
			}
			list = append(list, r)
		}
		return nil
	})
	return list, err
}

// sweepBatch limits what one transaction deletes, so that others wait only shortly.
const sweepBatch = 500

// Sweep implements [tasks.Store].
func (s *Store) Sweep(ctx context.Context, before time.Time) (deleted int, err error) {
	for {
		keys, err := s.expired(before)
		if err != nil || len(keys) == 0 {
			return deleted, err
		}
		var gone []string
		err = s.update(func(t tx) error {
			gone = nil
			for _, key := range keys {
				id := string(key[8:])
				r, err := t.get(id)
				switch {
				case errors.Is(err, errDamaged):
					s.report(id)
					err = t.forget(expires, [][]byte{key})
				case errors.Is(err, tasks.ErrNotFound): // deleted meanwhile
					err = t.forget(expires, [][]byte{key})
				case err == nil:
					gone = append(gone, id)
					err = t.drop(r)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return deleted, err
		}
		deleted += len(gone)
		for _, id := range gone {
			s.Changed(id)
		}
		if ctx.Err() != nil {
			return deleted, ctx.Err()
		}
	}
}

// expired finds keys of records that have expired. It writes nothing: most sweeps find none.
func (s *Store) expired(before time.Time) (keys [][]byte, err error) {
	err = s.view(func(t tx) error {
		cursor := t.Bucket(expires).Cursor()
		for key, _ := cursor.First(); key != nil && len(keys) < sweepBatch; key, _ = cursor.Next() {
			if int64(binary.BigEndian.Uint64(key)) >= nanos(before) {
				return nil
			}
			keys = append(keys, bytes.Clone(key))
		}
		return nil
	})
	return keys, err
}
