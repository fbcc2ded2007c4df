package mcpkit

import (
	"sync"
	"sync/atomic"
)

// A family is the servers that are mounted in one another, directly or by way of others. The change of a catalog may be one of all
// that its server is mounted in, in no order that locks of their own could be taken in, so they share a lock: it is held while a
// catalog of the family changes, and nothing of the user's runs meanwhile.
//
// Each server begins with a family of its own. Mounting joins two of them, for good.
type family struct {
	mu   sync.Mutex
	id   uint64                 // two families are locked in the order of their ids
	into atomic.Pointer[family] // what this one was joined into; nil if none. Set while both are locked.
}

var families atomic.Uint64 // how many there were

func newFamily() *family { return &family{id: families.Add(1)} }

// last is the family that f is part of now.
func (f *family) last() *family {
	for next := f.into.Load(); next != nil; next = f.into.Load() {
		f = next
	}
	return f
}

// lock locks the family that f is part of, and returns what unlocks it.
func (f *family) lock() (unlock func()) {
	for {
		f = f.last()
		f.mu.Lock()
		if f.into.Load() == nil {
			return f.mu.Unlock
		}
		f.mu.Unlock() // it was joined into another one meanwhile
	}
}

// lockBoth locks the families that a and b are part of. Join makes them one when it is unlocked.
func lockBoth(a, b *family) (unlock func(join bool)) {
	for {
		a, b = a.last(), b.last()
		if a == b {
			unlock := a.lock()
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
