//go:build race

package streamable

// With the race detector, the resident memory means nothing.
func init() { raceDetector = true }
