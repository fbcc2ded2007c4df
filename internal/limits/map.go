package limits

import (
	"container/list"
	"sync"
	"time"
)

// A Map holds a limited number of entries and evicts the least recently used one. It is safe for
// concurrent use. Create one with [NewMap].
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

// NewMap returns a map of at most this many entries. Less than 1 means a map that stays empty.
func NewMap[K comparable, V any](most int) *Map[K, V] {
	return &Map[K, V]{most: most, byKey: make(map[K]*list.Element)}
}

// Get returns the value of a key, unless its entry has expired by now.
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

// Put stores a value that expires at a time. If the map is full, the least recently used entry is
// evicted.
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

// Len returns the number of entries, including expired ones.
func (m *Map[K, V]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.order.Len()
}

// remove removes an entry; mu is held.
func (m *Map[K, V]) remove(e *list.Element) {
	delete(m.byKey, m.order.Remove(e).(*entry[K, V]).key)
}
