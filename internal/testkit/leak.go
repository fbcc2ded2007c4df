package testkit

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long to wait for goroutines to end. goleak itself waits less than half a second,
// which is too short for those of net/http while many packages are tested at once.
const patience = time.Minute

// VerifyTestMain runs the tests of a package and then cleanups, and exits. It fails if goroutines
// outlive the tests.
func VerifyTestMain(m *testing.M, cleanups ...func()) { goleak.VerifyTestMain(waiting{m, cleanups}) }

type waiting struct {
	m        *testing.M
	cleanups []func()
}

// Run runs the tests and waits for their goroutines.
func (w waiting) Run() int {
	code := w.m.Run()
	for _, cleanup := range w.cleanups {
		cleanup()
	}
	if code == 0 {
		_ = await()
	}
	return code
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
