// Package boltfleet is an engine of package fleet in a file, with bbolt. The file belongs to one
// process at a time. So it is for a server with one replica, whose tasks, sessions and used proofs
// survive restarts; its bus does not leave the process.
//
// The URL of fleet.Open names a file by its absolute path: bolt:///var/lib/shop/fleet.db.
//
// Each change is on the disk when its method returns. When the process is killed, or the machine
// loses power, nothing is lost that a method has acknowledged. Changes of concurrent callers share a
// transaction, and so a sync of the disk.
//
// When the disk is full, changes fail, deletions included, and lose nothing. The file grows and never
// shrinks: what is deleted makes room for what comes.
package boltfleet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/mcpkit/mcpkit-go/fleet"
)

// Options configures an engine. The zero value is valid.
type Options struct {
	// MaxBytes is how much of the file may be in use. Beyond it, what is new is refused with an
	// error until something expires or is deleted. Zero means 4 GiB.
	MaxBytes int64
}

const (
	// defaultMaxBytes is the default of [Options].MaxBytes.
	defaultMaxBytes = 4 << 30

	lockTimeout = 5 * time.Second
	batchDelay  = time.Millisecond // in which the changes of other callers join a transaction
)

// bucket has everything. Its name is the version of the file's format.
var bucket = []byte("mcpkit fleet 2")

func init() {
	fleet.Register("bolt", func(_ context.Context, u *url.URL) (*fleet.Local, error) {
		if u.Host != "" || u.Path == "" || u.RawQuery != "" {
			return nil, errors.New("boltfleet: the URL: write bolt:///path/of/the/file")
		}
		return Open(u.Path, nil)
	})
}

// Open opens the file, or creates it for the user alone. The error says so if another process has
// it open for more than 5 seconds. Nil options mean the defaults. Servers of one process share a file
// with the method Open of the engine.
func Open(path string, opts *Options) (*fleet.Local, error) {
	if opts == nil {
		opts = &Options{}
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: lockTimeout})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("boltfleet: another process has %s open", path)
	}
	if err != nil {
		return nil, fmt.Errorf("boltfleet: %w", err)
	}
	db.MaxBatchDelay = batchDelay
	err = db.Update(func(tx *bolt.Tx) error {
		err := tx.ForEach(func(name []byte, _ *bolt.Bucket) error {
			if !bytes.Equal(name, bucket) {
				return errors.New("the file has another format than this version of the program")
			}
			return nil
		})
		if err == nil {
			_, err = tx.CreateBucketIfNotExists(bucket)
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("boltfleet: %s: %w", path, err), db.Close())
	}
	return fleet.NewLocal(&table{db}, cmp.Or(max(opts.MaxBytes, 0), defaultMaxBytes)), nil
}

// A table is a [fleet.Table] in a file.
type table struct{ db *bolt.DB }

// View implements [fleet.Table].
func (t *table) View(read func(fleet.Tx) error) error {
	return t.db.View(func(own *bolt.Tx) error { return read(t.tx(own)) })
}

// Update implements [fleet.Table].
func (t *table) Update(ctx context.Context, change func(fleet.Tx) error) error {
	done := make(chan error, 1)
	// Ends when the disk has the change.
	go func() { done <- t.db.Batch(func(own *bolt.Tx) error { return change(t.tx(own)) }) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close implements [fleet.Table].
func (t *table) Close() error { return t.db.Close() }

// A tx is a [fleet.Tx].
type tx struct {
	*bolt.Bucket
	used int64
}

func (t *table) tx(own *bolt.Tx) *tx {
	stats, pageSize := t.db.Stats(), t.db.Info().PageSize
	free := (stats.FreePageN + stats.PendingPageN) * pageSize
	return &tx{own.Bucket(bucket), own.Size() - int64(free)}
}

// Put implements [fleet.Tx].
func (t *tx) Put(key, value []byte) error {
	t.used += int64(len(key) + len(value) - t.size(key))
	return t.Bucket.Put(key, value)
}

// Delete implements [fleet.Tx].
func (t *tx) Delete(key []byte) error {
	t.used -= int64(t.size(key))
	return t.Bucket.Delete(key)
}

// size returns how many bytes a key and its value have; 0 if there is no such key.
func (t *tx) size(key []byte) int {
	if value := t.Get(key); value != nil {
		return len(key) + len(value)
	}
	return 0
}

// Used implements [fleet.Tx].
func (t *tx) Used() int64 { return t.used }

// Scan implements [fleet.Tx].
func (t *tx) Scan(prefix, from []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		cursor := t.Cursor()
		for key, value := cursor.Seek(append(bytes.Clone(prefix), from...)); bytes.HasPrefix(key, prefix); key, value = cursor.Next() {
			if !yield(key, value) {
				return
			}
		}
	}
}
