package tasks

import (
	"context"
	"errors"
	"time"
)

// A Store keeps the records of tasks. The records are sealed: a store sees who owns a task only as
// a digest, and neither its arguments nor its result. All replicas of a server share one store.
// A Store is safe for concurrent use. Package taskstoretest tests implementations.
//
// Errors other than those named below mean that the store is not available.
type Store interface {
	// Create adds a record, unless that exceeds a limit: then the error is a [*LimitError]. It sets
	// r.Version. When Create has returned, Get finds the record in all replicas.
	//
	// If the owner has limits.Kept records already, Create deletes the oldest one of them that has
	// ended.
	Create(ctx context.Context, r *Record, limits Limits) error

	// Get returns a record, or ErrNotFound. The caller owns it.
	Get(ctx context.Context, id string) (*Record, error)

	// Update replaces the record if its version is still r.Version, which it increments. Otherwise
	// the error is ErrConflict, or ErrNotFound. If the data of a record in the state Asleep becomes
	// too large, it may be a [*LimitError].
	Update(ctx context.Context, r *Record) error

	// Claim finds a record in the state Ready whose lease ended before the time, and leases it until
	// the other time. It increments the fence and the version. The error is ErrNotFound if there is
	// none. Of several callers, only one gets the record.
	Claim(ctx context.Context, before, until time.Time) (*Record, error)

	// Extend leases a record until a later time. The error is ErrConflict if the record has another
	// fence or is not in the state Ready, and ErrNotFound if it is gone. The version stays.
	Extend(ctx context.Context, id string, fence int64, until time.Time) error

	// List returns up to limit records of an owner, sorted by ID, that come after an ID; "" for the
	// first.
	List(ctx context.Context, owner, after string, limit int) ([]*Record, error)

	// Sweep deletes the records that expired before the time, and returns how many there were.
	Sweep(ctx context.Context, before time.Time) (deleted int, err error)

	// Watch calls changed with the IDs of records after they were created, updated, claimed or
	// deleted, at least by this process, until ctx ends. It then returns nil. Calls may be missed and
	// repeated, and must not block. changed may call methods of the store.
	Watch(ctx context.Context, changed func(id string)) error
}

// Errors of stores.
var (
	ErrNotFound = errors.New("tasks: the store does not have such a record")
	ErrConflict = errors.New("tasks: the record was changed meanwhile")
)

// A State says what a record waits for.
type State string

// The states of records.
const (
	Ready  State = "ready"  // a worker has to run the task, or runs it
	Asleep State = "asleep" // the task waits for answers of a user
	Ended  State = "ended"  // the task has ended
)

// A Record is a task as a [Store] keeps it.
type Record struct {
	ID      string    `json:"id"`    // 128 random bits
	Owner   string    `json:"owner"` // digest of the principal; "" if the caller is unauthenticated
	Version int64     `json:"version"`
	State   State     `json:"state"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
	Lease   time.Time `json:"lease"` // the end of a worker's lease; zero if there is none
	Fence   int64     `json:"fence"` // how often the record was leased
	Data    []byte    `json:"data"`  // sealed
}

// Limits are limits of a [Store]. Zero means no limit.
type Limits struct {
	// Open limits the tasks of one owner that have not ended.
	Open int
	// Kept limits the records of one owner.
	Kept int
	// Total limits all records.
	Total int
}

// A LimitError means that a limit for tasks is reached.
type LimitError struct {
	// Total reports whether it is the limit of all records, not that of an owner.
	Total bool
	// Bytes reports whether it is a limit of bytes, not of tasks.
	Bytes bool
	// Limit is the limit.
	Limit int
}
