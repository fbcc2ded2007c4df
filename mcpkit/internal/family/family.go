// Package family lets servers that are mounted in one another share a lock.
package family

import (
	"sync"
	"sync/atomic"
)

// A Family is the servers that are mounted in one another, directly or indirectly. A change of one
// server may change all servers that it is mounted in, so they share one lock. No code of the
// program runs while it is held.
//
// Each server begins with a family of its own. Mounting joins two families for good.
type Family struct {
	mu   sync.Mutex
	id   uint64                 // two families are locked in the order of their ids
	into atomic.Pointer[Family] // the family that this one was joined into, or nil; set while both are locked
}

var families atomic.Uint64 // the number of families so far

// New returns the family of one server.
func New() *Family { return &Family{id: families.Add(1)} }

// Last returns the family that f is part of now.
func (f *Family) Last() *Family {
	for next := f.into.Load(); next != nil; next = f.into.Load() {
		f = next
	}
	return f
}

// Lock locks the family that f is part of. unlock unlocks it.
func (f *Family) Lock() (unlock func()) {
	for {
		f = f.Last()
		f.mu.Lock()
		if f.into.Load() == nil {
			return f.mu.Unlock
		}
		f.mu.Unlock() // it was joined into another one meanwhile
	}
}

// LockBoth locks the families that a and b are part of. unlock makes them one if join is true.
func LockBoth(a, b *Family) (unlock func(join bool)) {
	for {
		a, b = a.Last(), b.Last()
		if a == b {
			unlock := a.Lock()
			return func(bool) { unlock() }
		}
		first, second := a, b
		if second.id < first.id {
			first, second = second, first
		}
		first.mu.Lock()
		second.mu.Lock()
		if first.into.Load() == nil && second.into.Load() == nil {
			return func(join bool) {
				if join {
					second.into.Store(first)
				}
				second.mu.Unlock()
				first.mu.Unlock()
			}
		}
		second.mu.Unlock()
		first.mu.Unlock()
	}
}
