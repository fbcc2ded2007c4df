//go:build race

package client_test

// raceDetector says that the tests run with the race detector, which makes them many times slower.
const raceDetector = true
