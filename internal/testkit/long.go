package testkit

import (
	"os"
	"testing"
)

// LongTests reports whether tests run that take long by nature: they run the go command or other
// programs, or need many megabytes. They run if the environment variable LONG_TESTS is 1, as make
// test sets it, so that the other tests of the module can be run often.
func LongTests() bool { return os.Getenv("LONG_TESTS") == "1" }

// MarkLong marks a test as long, and skips it unless [LongTests] run. The reason follows "because
// it".
func MarkLong(t testing.TB, because string) {
	t.Helper()
	if !LongTests() {
		t.Skipf("long, because it %s; to run it: LONG_TESTS=1 go test -run '^%s$' in its folder, or make nightly", because, t.Name())
	}
}
