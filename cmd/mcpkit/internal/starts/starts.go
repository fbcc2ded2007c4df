// Package starts passes on the standard error of a program that may be started twice: a program
// that ends at once may be a legacy server, and says the same again.
package starts

import (
	"bytes"
	"regexp"
	"sync"
)

// A Filter passes lines on. Until the program serves, it drops those that come again. Create one
// with [NewFilter]. It is safe for concurrent use.
type Filter struct {
	pass  func(line []byte, serves bool)
	parts bool

	mu     sync.Mutex
	serves bool            // guarded by mu, as is the rest
	seen   map[string]bool // lines, without their numbers
	line   []byte          // the beginning of a line
}

// maxLine limits the bytes of a line that waits for its end.
const maxLine = 64 << 10

// NewFilter returns a filter that calls pass with one line at a time, and whether the program serves.
// With parts, the lines of a program that serves do not wait for their ends.
func NewFilter(parts bool, pass func(line []byte, serves bool)) *Filter {
	return &Filter{pass: pass, parts: parts, seen: map[string]bool{}}
}

// Write implements [io.Writer]. It never fails.
func (f *Filter) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.line = append(f.line, p...)
	for len(f.line) > 0 {
		end := bytes.IndexByte(f.line, '\n') + 1
		if end == 0 && (f.serves && f.parts || len(f.line) > maxLine) {
			end = len(f.line)
		}
		if end == 0 {
			break
		}
		f.next(f.line[:end])
		f.line = f.line[end:]
	}
	return len(p), nil
}

// numbers differ between two starts of a program: times, process IDs and addresses.
var numbers = regexp.MustCompile(`0x[0-9a-f]+|\d+`)

// next passes a line on, unless it comes again. The caller holds mu.
func (f *Filter) next(line []byte) {
	if !f.serves {
		key := numbers.ReplaceAllString(string(line), "")
		if f.seen[key] {
			return
		}
		f.seen[key] = true
	}
	f.pass(line, f.serves)
}

// Serves says that the program serves, so that it is not started a second time.
func (f *Filter) Serves() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.serves, f.seen = true, nil
	if f.parts {
		f.flush("")
	}
}

// Flush passes on the last line if it has no end, and ends it.
func (f *Filter) Flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flush("\n")
}

func (f *Filter) flush(end string) {
	if len(f.line) > 0 {
		f.next(append(f.line, end...))
		f.line = nil
	}
}
