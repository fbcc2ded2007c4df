package mcptest

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// leakPatience is how long goroutines may run after the end of the test.
var leakPatience = 10 * time.Second

var (
	watched  sync.Map // the tests that are checked
	lastTest atomic.Int64
)

// checkLeaks fails the test if goroutines that it started outlive it. Goroutines inherit the
// profiler labels of the goroutine that started them, which distinguishes parallel tests. The check
// runs after the cleanups that the test adds after the first call for t.
func checkLeaks(t testing.TB) {
	if _, again := watched.LoadOrStore(t, true); again {
		return
	}
	label := strconv.FormatInt(lastTest.Add(1), 10)
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("mcptest", label)))
	t.Cleanup(func() {
		watched.Delete(t)
		pprof.SetGoroutineLabels(context.Background())
		var left []string
		for wait := time.Millisecond; wait < leakPatience; wait *= 2 {
			if left = labelled(label); len(left) == 0 {
				return
			}
			time.Sleep(wait) //nolint:forbidigo // goroutines that end tell nobody
		}
		if left = labelled(label); len(left) > 0 {
			t.Errorf("mcptest: goroutines of the test still run:\n%s", strings.Join(left, "\n"))
		}
	})
}

// labelled returns the stacks of the goroutines that have the label.
func labelled(label string) []string {
	var profile bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&profile, 1) // a buffer returns no error
	mark := fmt.Sprintf("%q:%q", "mcptest", label)
	var found []string
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(stack, mark) {
			found = append(found, stack)
		}
	}
	return found
}
