package mcptest

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"
)

// leakPatience is how long goroutines may run after the end of the test.
var leakPatience = 2 * time.Second

var watched sync.Map // the tests that are checked

// checkLeaks fails the test if goroutines that it started outlive it. Goroutines inherit the
// profiler labels of the goroutine that started them, which distinguishes parallel tests. The check
// runs after the cleanups that the test adds after the first call for t.
func checkLeaks(t testing.TB) {
	if _, again := watched.LoadOrStore(t, true); again {
		return
	}
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("mcptest", t.Name())))
	t.Cleanup(func() {
		watched.Delete(t)
		pprof.SetGoroutineLabels(context.Background())
		for wait := time.Millisecond; ; wait *= 2 {
			left := labelled(t.Name())
			if len(left) == 0 {
				return
			}
			if wait > leakPatience {
				t.Errorf("mcptest: goroutines of the test still run:\n%s", strings.Join(left, "\n"))
				return
			}
			time.Sleep(wait) //nolint:forbidigo // goroutines that end tell nobody
		}
	})
}

// labelled describes the goroutines that have the label.
func labelled(label string) (found []string) {
	var profile bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&profile, 1) // a buffer returns no error
	mark := fmt.Sprintf("%q:%q", "mcptest", label)
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(stack, mark) {
			found = append(found, explained(stack))
		}
	}
	return found
}

// starters begin the names of functions that only run those of others.
var starters = regexp.MustCompile(
	`^(sync|reflect|golang.org/x/sync/errgroup|github.com/mcpkit/mcpkit-go/(mcpkit|reflectx))\.`)

// cures say how goroutines end, by the beginnings of the functions that they were started for.
var cures = []struct{ function, cure string }{
	{"net/http", "close the HTTP server"},
	{"net/http.(*persistConn)", "close the body of the response, and call CloseIdleConnections of the HTTP client"},
	{"database/sql.", "close the sql.DB"},
	{"github.com/mcpkit/mcpkit-go/client.", "close the client"},
}

// explained returns a stack of the profile, below the function that the goroutine was started for and how
// it ends.
func explained(stack string) string {
	var function, functions string // the latter with their places
	for line := range strings.SplitSeq(stack, "\n") {
		fields := strings.FieldsFunc(line, func(r rune) bool { return r == '\t' })
		if len(fields) != 4 { // #, an address, function+offset, place
			continue
		}
		name, _, _ := strings.Cut(fields[2], "+0x")
		functions += "\n        " + name + " " + fields[3]
		if function == "" || !starters.MatchString(name) { // the last one is the outermost
			function = name
		}
	}
	cure := "it has to end with its context, or with Close of the service, which the test calls at its end"
	for _, c := range cures {
		if strings.HasPrefix(function, c.function) {
			cure = c.cure
		}
	}
	return "    " + function + ": " + cure + functions
}
