//go:build race

package streamable

// Under the race detector memory that is resident says nothing.
func init() { raceDetector = true }
