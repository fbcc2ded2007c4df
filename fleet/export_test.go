package fleet

import "time"

// Advance moves the clock of all engines that share what l stores.
func (l *Local) Advance(d time.Duration) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.s.ahead += d
}

// Keys returns the keys of the table in memory.
func (l *Local) Keys() (all []string) {
	_ = l.s.table.View(func(t Tx) error {
		for key := range t.Scan(nil, nil) {
			all = append(all, string(key))
		}
		return nil
	})
	return all
}

// Unregister undoes Register.
func Unregister(scheme string) {
	schemes.mu.Lock()
	defer schemes.mu.Unlock()
	delete(schemes.open, scheme)
}
