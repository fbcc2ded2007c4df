// Package fleet lets the replicas of a server share what outlives a request: legacy sessions and
// their event streams, tasks and used proofs. It also carries messages between them.
//
// An [Engine] is the database behind it. [NewMemory] makes one in memory, and the modules below this
// one keep it in a file with bbolt, or in Redis. An engine stores bytes and knows nothing of MCP:
// what it stores is sealed with the keys of the server. Package fleettest tests engines.
//
// Give a server its engine with mcpkit.Fleet. A [Fleet] is the view that packages of this module
// and extensions have of it.
package fleet

import (
	"context"
	"errors"
	"time"
)

// An Engine is what replicas share. It is safe for concurrent use.
//
// Its arguments are valid, since a [Fleet] checks them before: names of sets, keys, groups, logs and
// topics have 1 to 64 characters of A-Z, a-z, 0-9, "_" and "-", limits are at least 1, and sizes and
// times are those that the fields say.
//
// Errors other than those of this package mean that the engine is not available. An engine without
// space returns ErrFull for what is new. Every method may
// be tried again after such an error, whether or not it had an effect. Methods do nothing if their
// context has ended, and return soon after its deadline. They may ignore that it is cancelled before.
type Engine interface {
	Records
	Logs
	Bus

	// Close releases what the engine itself made, and no connection that it was given. It ends the
	// subscriptions, and methods fail after it. It may be called more than once.
	Close() error
}

// Records are small pieces of data with a revision, in named sets. Each expires by itself. Times
// are measured by the clock of the engine, which all replicas share.
type Records interface {
	// Get returns a record, or ErrNotFound. When a change of a record has returned, Get sees it on
	// all replicas.
	Get(ctx context.Context, set, key string) (Record, error)

	// Create adds a record and returns its revision, or ErrExists.
	Create(ctx context.Context, set string, r Record) (revision uint64, err error)

	// Update replaces the data, TTL and Due of the record whose revision is still r.Revision, and
	// returns the new revision. Otherwise the error is ErrConflict, or ErrNotFound. The group of a
	// record never changes.
	Update(ctx context.Context, set string, r Record) (revision uint64, err error)

	// Delete deletes a record if its revision is still the given one; 0 deletes any. The error is
	// ErrConflict if it is not, and nil if there is no such record.
	Delete(ctx context.Context, set, key string, revision uint64) error

	// Due returns up to limit records that are due, or will be within the time, in the order of the
	// times when they are.
	Due(ctx context.Context, set string, within time.Duration, limit int) ([]Record, error)

	// List returns up to limit records of a group, sorted by key, whose keys come after the given
	// one; "" for the first. It returns fewer only if there are no more. The group is not "".
	List(ctx context.Context, set, group, after string, limit int) ([]Record, error)

	// Count returns how many records a group has; "" counts those of the whole set. Records that
	// were just created or have just expired may be counted or not.
	Count(ctx context.Context, set, group string) (int, error)
}

// A Record is an entry of [Records].
type Record struct {
	Key   string
	Group string // "" for none
	Data  []byte // not changed by an engine, nor by its callers after the call; up to [MaxData]

	// Revision identifies the content. It is never 0, and grows with each change of the record. A
	// record that is created again has a larger one than before, or at least another one.
	Revision uint64

	// TTL is how long the record lives from now on: at least [MinTTL]. An engine may round it up to
	// seconds. In what an engine returns, it is the rest.
	TTL time.Duration

	// Due is the time from now at which Due begins to return the record: [AtOnce], or more. Zero
	// means never. In what an engine returns, it is zero.
	Due time.Duration
}

const (
	// AtOnce is the smallest Due: the record is due at once.
	AtOnce = time.Duration(1)

	// MinTTL is the shortest life of a record or log. An engine may let it live for longer.
	MinTTL = time.Second

	// MaxData is how long the data of records, entries and messages may be, in bytes. More is
	// refused with [ErrTooLarge]. An engine may refuse it beyond a lower limit, of at least 512 kB.
	MaxData = 8 << 20

	maxName = 64 // characters
)

// Logs are sequences of entries. Each log belongs to a group, with which it is dropped.
type Logs interface {
	// Append adds an entry to a log, which it creates if necessary. e.Seq is larger than that of
	// each entry before; numbers may be left out. Appending the same entry again does nothing. The
	// error is ErrConflict if the log has an entry with that number and other data, or a later one.
	// It drops the oldest entries beyond the limits of keep.
	Append(ctx context.Context, group, log string, e Entry, keep Keep) error

	// After returns up to limit entries with numbers larger than seq, in order, and fewer only if
	// there are no more. An unknown log has none.
	After(ctx context.Context, group, log string, seq uint64, limit int) ([]Entry, error)

	// Drop deletes the logs of a group. The error is nil if there are none.
	Drop(ctx context.Context, group string) error
}

// An Entry is a part of a log.
type Entry struct {
	Seq  uint64 // at least 1
	Data []byte // not changed by an engine, nor by its callers after the call; up to [MaxData]
}

// Keep limits a log. An engine may keep somewhat more.
type Keep struct {
	Entries int           // at least 1
	Bytes   int           // of the data of all entries; the newest stays in any case
	TTL     time.Duration // how long the log lives after the last Append: at least [MinTTL]
}

// A Bus carries messages between replicas. A message is delivered at most once to each subscriber,
// in the order of its publisher, or not at all if the connection fails.
type Bus interface {
	// Publish sends a message to all that subscribed to the topic, on all replicas, the caller's
	// included.
	Publish(ctx context.Context, topic string, data []byte) error

	// Subscribe calls deliver with each message of the topics that is published after Subscribe has
	// returned without an error, one at a time, until ctx ends. It calls missed when messages may
	// have been lost, once the connection is back. Neither may block for long.
	Subscribe(ctx context.Context, topics []string, deliver func(topic string, data []byte), missed func()) error
}

// Errors of engines.
var (
	ErrNotFound = errors.New("fleet: there is no such record")
	ErrExists   = errors.New("fleet: there is such a record already")
	ErrConflict = errors.New("fleet: it was changed meanwhile")
	ErrTooLarge = errors.New("fleet: the data is larger than the engine keeps")
	ErrFull     = errors.New("fleet: the store is full")
	ErrInvalid  = errors.New("fleet: an argument is not allowed")
)
