package dev

import (
	"bytes"
	"io"
	"strings"
	"sync"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/starts"
)

// words passes on the standard error of a program, and keeps what it says before it serves.
type words struct {
	*starts.Filter

	mu   sync.Mutex
	kept bytes.Buffer // guarded by mu
}

// maxKept limits the bytes that are kept of the standard error.
const maxKept = 16 << 10

func newWords(to io.Writer) *words {
	w := &words{}
	w.Filter = starts.NewFilter(true, func(line []byte, serves bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !serves {
			w.kept.Write(line[:min(len(line), maxKept-w.kept.Len())])
		}
		_, _ = to.Write(line)
	})
	return w
}

// text returns what was kept.
func (w *words) text() string {
	w.Flush()
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(w.kept.String(), "\uFFFD"))
}
