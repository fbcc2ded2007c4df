package fleet

import "time"

// Advance moves the clock of all engines that share what m stores.
func (m *Memory) Advance(d time.Duration) {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	m.store.ahead += d
}

// Used returns how many records and bytes count against the limits, and how many sets and logs
// there are.
func (m *Memory) Used() (records, bytes, sets, logs int) {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	return m.store.records, m.store.bytes, len(m.store.sets), m.store.logs.Count("")
}

// Unregister undoes Register.
func Unregister(scheme string) {
	schemes.mu.Lock()
	defer schemes.mu.Unlock()
	delete(schemes.open, scheme)
}
