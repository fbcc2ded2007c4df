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

// leakPatience is how long goroutines may take to end after the test did.
var leakPatience = 10 * time.Second

var (
	watched  sync.Map // the tests that are checked
	lastTest atomic.Int64
)

// checkLeaks fails the test when goroutines that it started outlive it. Goroutines inherit the profiler's labels of the one that
// started them, so that tests that run at the same time are told apart. The check is the last of what the test cleans up
// since the first call for t.
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
			time.Sleep(wait)
		}
		if left = labelled(label); len(left) > 0 {
			t.Errorf("mcptest: goroutines of the test still run:\n%s", strings.Join(left, "\n"))
		}
	})
}

// labelled returns the stacks of the goroutines that have the label.
func labelled(label string) []string {
	var profile bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&profile, 1) // a buffer takes everything
	mark := fmt.Sprintf("%q:%q", "mcptest", label)
	var found []string
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(stack, mark) {
			found = append(found, stack)
		}
	}
	return found
}
