// Package taskbolt keeps the records of tasks in a file, with bbolt. The file belongs to one process
// at a time, so the server has one replica.
//
// Each change is on the disk when the store returns: a task that a client knows of is there after a
// crash, and so is its result.
package taskbolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/mcpkit/mcpkit-go/tasks"
)

// A Store is a [tasks.Store] in a file. Make one with [Open].
type Store struct {
	db *bolt.DB
	tasks.Watchers
}

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
func Open(path string) (*Store, error) {
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
	return &Store{db: db}, nil
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

// Close closes the file. Close the server before.
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
	b := binary.AppendUvarint(nil, uint64(len(head)))
	return append(append(b, head...), r.Data...), nil
}

func decode(id, b []byte) (*tasks.Record, error) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, errors.New("taskbolt: a record is damaged")
	}
	var h header
	if err := json.Unmarshal(b[n:n+int(size)], &h); err != nil {
		return nil, fmt.Errorf("taskbolt: a record is damaged: %w", err)
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
		number = binary.BigEndian.Uint64(t.Bucket(owners).Get(ownerKey(old.Owner, []byte(old.ID)...)))
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
	number := binary.BigEndian.Uint64(t.Bucket(owners).Get(key))
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
	evicted := ""
	err := s.update(func(t tx) error {
		if t.Bucket(records).Get([]byte(r.ID)) != nil {
			return tasks.ErrConflict
		}
		open, err := t.count(openKey(r.Owner), 0)
		if err == nil && limits.Open > 0 && open >= int64(limits.Open) {
			return &tasks.LimitError{Limit: limits.Open}
		}
		if err == nil {
			evicted, err = t.makeRoom(r.Owner, limits)
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
	if evicted != "" {
		s.Changed(evicted)
	}
	s.Changed(r.ID)
	return nil
}

// makeRoom deletes the record of the owner that ended first, if the owner has too many.
func (t tx) makeRoom(owner string, limits tasks.Limits) (evicted string, err error) {
	kept, err := t.count(keptKey(owner), 0)
	if err != nil {
		return "", err
	}
	if limits.Kept > 0 && kept >= int64(limits.Kept) {
		prefix := ownerKey(owner)
		key, _ := t.Bucket(ended).Cursor().Seek(prefix)
		if !bytes.HasPrefix(key, prefix) {
			return "", &tasks.LimitError{Limit: limits.Kept}
		}
		r, err := t.get(string(key[len(prefix)+8:]))
		if err == nil {
			evicted, err = r.ID, t.drop(r)
		}
		if err != nil {
			return "", err
		}
	}
	all, err := t.count(total, 0)
	if err == nil && limits.Total > 0 && all >= int64(limits.Total) {
		return "", &tasks.LimitError{Total: true, Limit: limits.Total}
	}
	return evicted, err
}

// Get implements [tasks.Store].
func (s *Store) Get(_ context.Context, id string) (r *tasks.Record, err error) {
	err = s.view(func(t tx) error { r, err = t.get(id); return err })
	return r, err
}

// Update implements [tasks.Store].
func (s *Store) Update(_ context.Context, r *tasks.Record) error {
	err := s.update(func(t tx) error {
		old, err := t.get(r.ID)
		if err != nil {
			return err
		}
		if old.Version != r.Version {
			return tasks.ErrConflict
		}
		next := *r
		next.Version++
		return t.put(&next, old)
	})
	if err != nil {
		return err
	}
	r.Version++
	s.Changed(r.ID)
	return nil
}

// Claim implements [tasks.Store]. The record is the one that was created first.
func (s *Store) Claim(_ context.Context, before, until time.Time) (r *tasks.Record, err error) {
	err = s.update(func(t tx) error {
		cursor := t.Bucket(ready).Cursor()
		for key, lease := cursor.First(); key != nil; key, lease = cursor.Next() {
			if int64(binary.BigEndian.Uint64(lease)) >= nanos(before) {
				continue
			}
			old, err := t.get(string(key[8:]))
			if err != nil {
				return err
			}
			next := *old
			next.Lease = until.UTC()
			next.Fence++
			next.Version++
			r = &next
			return t.put(r, old)
		}
		return tasks.ErrNotFound
	})
	if err != nil {
		return nil, err
	}
	s.Changed(r.ID)
	return r, nil
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
		var gone []string
		if err := s.expired(before, &gone); err != nil || len(gone) == 0 {
			return deleted, err
		}
		err := s.update(func(t tx) error {
			for _, id := range gone {
				r, err := t.get(id)
				if err == nil {
					err = t.drop(r)
				}
				if err != nil && !errors.Is(err, tasks.ErrNotFound) {
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

// expired finds records that have expired. It writes nothing: most sweeps find none.
func (s *Store) expired(before time.Time, gone *[]string) error {
	return s.view(func(t tx) error {
		cursor := t.Bucket(expires).Cursor()
		for key, _ := cursor.First(); key != nil && len(*gone) < sweepBatch; key, _ = cursor.Next() {
			if int64(binary.BigEndian.Uint64(key)) >= nanos(before) {
				return nil
			}
			*gone = append(*gone, string(key[8:]))
		}
		return nil
	})
}
