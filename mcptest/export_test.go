package mcptest

import "time"

// SetLeakPatience changes how long goroutines may take to end, until the returned function is
// called.
func SetLeakPatience(d time.Duration) (restore func()) {
	before := leakPatience
	leakPatience = d
	return func() { leakPatience = before }
}
