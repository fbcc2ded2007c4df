// Package expiring is a bounded map whose entries end.
package expiring

import (
	"container/list"
	"sync"
	"time"
)

// A Map holds up to a number of entries; the one that was used longest ago makes room. It is safe for concurrent use.
// Make one with [New].
type Map[K comparable, V any] struct {
	most int

	mu    sync.Mutex
	byKey map[K]*list.Element // guarded by mu
	order list.List           // of *entry, latest use first; guarded by mu
}

type entry[K comparable, V any] struct {
	key   K
	value V
	until time.Time
}

// New makes a map of at most so many entries. Less than 1 keeps none.
func New[K comparable, V any](most int) *Map[K, V] {
	return &Map[K, V]{most: most, byKey: make(map[K]*list.Element)}
}

// Get returns the value of a key whose entry has not ended by now.
func (m *Map[K, V]) Get(key K, now time.Time) (value V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.byKey[key]
	if !ok {
		return value, false
	}
	found := e.Value.(*entry[K, V])
	if !now.Before(found.until) {
		m.remove(e)
		return value, false
	}
	m.order.MoveToFront(e)
	return found.value, true
}

// Put enters a value until a time.
func (m *Map[K, V]) Put(key K, value V, until time.Time) {
	if m.most < 1 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.byKey[key]; ok {
		m.remove(e)
	}
	if m.order.Len() >= m.most {
		m.remove(m.order.Back())
	}
	m.byKey[key] = m.order.PushFront(&entry[K, V]{key, value, until})
}

// Len is how many entries there are, ended ones included.
func (m *Map[K, V]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.order.Len()
}

// remove takes an entry out; mu is held.
func (m *Map[K, V]) remove(e *list.Element) {
	delete(m.byKey, m.order.Remove(e).(*entry[K, V]).key)
}
