// Package testkit has what the tests of several packages share: a check for goroutines that
// outlive the tests, the mark of tests that take long, a buffer and a network in memory.
package testkit
