package dev

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// words passes on the standard error of a program, and keeps its beginning.
type words struct {
	to io.Writer

	mu   sync.Mutex
	kept bytes.Buffer // guarded by mu
}

// maxKept limits the bytes that are kept of the standard error.
const maxKept = 16 << 10

// Write implements [io.Writer].
func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	w.kept.Write(p[:min(len(p), maxKept-w.kept.Len())])
	w.mu.Unlock()
	return w.to.Write(p)
}

// text returns what was kept.
func (w *words) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(w.kept.String(), "\uFFFD"))
}
