package dev

import (
	"bytes"
	"io"
	"strings"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// words passes on the standard error of a program, and keeps its beginning. It takes out the events.
type words struct {
	to    io.Writer
	trace func(mcpkit.TraceEvent)
	begin []byte // of an event: see [mcpkit.EnvDev]

	mu   sync.Mutex
	kept bytes.Buffer // guarded by mu
	part []byte       // of an event that goes on in the next Write; guarded by mu
}

// maxKept limits the bytes that are kept of the standard error.
const maxKept = 16 << 10

// Write implements [io.Writer].
func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var own []byte
	for line := range bytes.Lines(append(w.part, p...)) {
		before, text, _ := bytes.Cut(line, w.begin)
		own, w.part = append(own, before...), line[len(before):]
		if bytes.HasSuffix(text, []byte("\n")) {
			var event mcpkit.TraceEvent
			if jsonx.Unmarshal(text, &event) == nil {
				w.trace(event)
			}
			w.part = nil
		}
	}
	w.kept.Write(own[:min(len(own), maxKept-w.kept.Len())])
	_, err := w.to.Write(own)
	return len(p), err
}

// text returns what was kept.
func (w *words) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(w.kept.String(), "\uFFFD"))
}
