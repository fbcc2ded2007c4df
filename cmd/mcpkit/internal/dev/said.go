package dev

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"sync"
)

// words passes on the standard error of a program, and keeps its beginning. Until the program
// serves, it drops lines that come again: a program that ends at once is started twice, since it may
// be a legacy server.
type words struct {
	to io.Writer

	mu     sync.Mutex
	serves bool            // guarded by mu, as is the rest
	seen   map[string]bool // lines, without their numbers
	line   []byte          // the beginning of a line
	kept   bytes.Buffer
}

// maxKept limits the bytes that are kept of the standard error, and those of a line that waits for
// its end.
const maxKept = 16 << 10

func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line = append(w.line, p...)
	for {
		end := bytes.IndexByte(w.line, '\n') + 1
		if end == 0 && (w.serves || len(w.line) > maxKept) {
			end = len(w.line)
		}
		if end == 0 {
			return len(p), nil
		}
		w.pass(w.line[:end])
		w.line = w.line[end:]
	}
}

// numbers differ between two starts of a program: times, process IDs and addresses.
var numbers = regexp.MustCompile(`0x[0-9a-f]+|\d+`)

// pass writes a line. The caller holds mu.
func (w *words) pass(line []byte) {
	if !w.serves {
		key := numbers.ReplaceAllString(string(line), "")
		if w.seen[key] {
			return
		}
		w.seen[key] = true
		w.kept.Write(line[:min(len(line), maxKept-w.kept.Len())])
	}
	_, _ = w.to.Write(line)
}

// begun says that the program serves, so that it is not started a second time.
func (w *words) begun() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.line) > 0 {
		w.pass(w.line)
	}
	w.serves, w.seen, w.line = true, nil, nil
}

// text returns what was kept.
func (w *words) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(w.kept.String()+string(w.line), "\uFFFD"))
}
