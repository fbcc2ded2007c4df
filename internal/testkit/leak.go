// Package testkit has what the tests of several packages share: a check for goroutines that
// outlive the tests, the mark of tests that take long, a buffer and a network in memory.
package testkit

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long to wait for goroutines to end. goleak itself waits less than half a second,
// which is too short for those of net/http while many packages are tested at once.
const patience = time.Minute

// VerifyTestMain runs the tests of a package and then cleanups, and exits. It fails if goroutines
// outlive the tests.
func VerifyTestMain(m *testing.M, cleanups ...func()) {
	code := m.Run()
	for _, cleanup := range cleanups {
		cleanup()
	}
	if code == 0 {
		if err := await(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// VerifyNone fails t if goroutines are left.
func VerifyNone(t testing.TB, opts ...goleak.Option) {
	t.Helper()
	if err := await(opts...); err != nil {
		t.Error(err)
	}
}

// await waits until no goroutines are left, or returns an error that lists them.
func await(opts ...goleak.Option) error {
	for limit := time.Now().Add(patience); ; {
		if err := goleak.Find(opts...); err == nil || time.Now().After(limit) {
			return err
		}
	}
}
