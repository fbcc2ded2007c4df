package tasks

import (
	"context"
	"errors"
	"time"
)

// A store keeps the records of tasks. All replicas of a server share one store. A store is safe for
// concurrent use.
//
// Errors other than those named below mean that the store is not available.
type store interface {
	// Create adds a record, unless that exceeds a limit: then the error is a [*limitError]. It sets
	// r.Version. When Create has returned, Get finds the record in all replicas.
	//
	// If the owner has limits.Kept records already, Create deletes the oldest one of them that has
	// ended.
	Create(ctx context.Context, r *record, limits limits) error

	// Get returns a record, or errNotFound. The caller owns it.
	Get(ctx context.Context, id string) (*record, error)

	// Update replaces the record if its version is still r.Version, which it increments. Otherwise
	// the error is errConflict, or errNotFound. If the data of a record in stateAsleep becomes
	// too large, it may be a [*limitError].
	Update(ctx context.Context, r *record) error

	// Claim finds a record in stateReady whose lease ended before the time, and leases it until
	// the other time. It increments the fence and the version. The error is errNotFound if there is
	// none. Of several callers, only one gets the record.
	Claim(ctx context.Context, before, until time.Time) (*record, error)

	// Extend leases a record until a later time. The error is errConflict if the record has another
	// fence or is not in stateReady, and errNotFound if it is gone. The version stays.
	Extend(ctx context.Context, id string, fence int64, until time.Time) error

	// List returns up to limit records of an owner, sorted by ID, that come after an ID; "" for the
	// first.
	List(ctx context.Context, owner, after string, limit int) ([]*record, error)

	// Sweep deletes the records that expired before the time, and returns how many there were.
	Sweep(ctx context.Context, before time.Time) (deleted int, err error)

	// Watch calls changed with the IDs of records after they were created, updated, claimed or
	// deleted, at least by this process, until ctx ends. Calls may be missed and repeated, and must
	// not block. changed may call methods of the store.
	Watch(ctx context.Context, changed func(id string))
}

// Errors of stores.
var (
	errNotFound = errors.New("tasks: the store does not have such a record")
	errConflict = errors.New("tasks: the record was changed meanwhile")
)

// A recordState says what a record waits for.
type recordState string

// The states of records.
const (
	stateReady  recordState = "ready"  // a worker has to run the task, or runs it
	stateAsleep recordState = "asleep" // the task waits for answers of a user
	stateEnded  recordState = "ended"  // the task has ended
)

// A record is a task as a [store] keeps it.
type record struct {
	ID      string      `json:"-"`     // 128 random bits
	Owner   string      `json:"owner"` // digest of the principal; "" if the caller is unauthenticated
	Version int64       `json:"version"`
	State   recordState `json:"state"`
	Created time.Time   `json:"created"`
	Expires time.Time   `json:"expires"`
	Lease   time.Time   `json:"lease"` // the end of a worker's lease; zero if there is none
	Fence   int64       `json:"fence"` // how often the record was leased
	Data    []byte      `json:"-"`     // a task as JSON
}

// limits are limits of a [store]. Zero means no limit.
type limits struct {
	// Open limits the tasks of one owner that have not ended.
	Open int
	// Kept limits the records of one owner.
	Kept int
	// Total limits all records.
	Total int
}

// A limitError means that a limit for tasks is reached.
type limitError struct {
	// Total reports whether it is the limit of all records, not that of an owner.
	Total bool
	// Bytes reports whether it is a limit of bytes, not of tasks.
	Bytes bool
	// Limit is the limit.
	Limit int
}
