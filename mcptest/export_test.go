package mcptest

import "time"

// SetPatience changes how long leaks and replays are waited for, until what it returns is called.
func SetPatience(d time.Duration) (restore func()) {
	leaks, replays := leakPatience, replayPatience
	leakPatience, replayPatience = d, d
	return func() { leakPatience, replayPatience = leaks, replays }
}
