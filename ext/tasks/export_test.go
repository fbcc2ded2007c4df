package tasks

import "github.com/mcpkit/mcpkit-go/fleet"

// The stores, for tests that put their own in between.
type (
	Store       = store
	MemoryStore = memoryStore
	Record      = record
	State       = recordState
	Limits      = limits
	LimitError  = limitError
)

const (
	Ready  = stateReady
	Asleep = stateAsleep
	Ended  = stateEnded
)

var (
	ErrNotFound = errNotFound
	ErrConflict = errConflict
)

// StoreIn keeps the records in a store.
func StoreIn(s Store) Option {
	return func(o *options) error {
		o.store = s
		return nil
	}
}

// NewFleetStore returns the store of the servers of a fleet.
func NewFleetStore(f *fleet.Fleet) Store { return newFleetStore(f) }
