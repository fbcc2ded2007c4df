// Package longtest marks tests that take long by nature: they run the go command or other programs,
// or need many megabytes. go test skips them unless the environment variable LONG_TESTS is 1, as
// make test sets it, so that the other tests of the module can be run often.
package longtest

import (
	"fmt"
	"os"
	"testing"
)

// All reports whether long tests run.
func All() bool { return os.Getenv("LONG_TESTS") == "1" }

// Mark marks a test as long, and skips it unless long tests run. The reason follows "because it".
func Mark(t testing.TB, because string) {
	t.Helper()
	if !All() {
		t.Skip(reason(t.Name(), because))
	}
}

func reason(name, because string) string {
	return fmt.Sprintf("long, because it %s; to run it: LONG_TESTS=1 go test -run '^%s$' in its folder, or make nightly", because, name)
}
