package playground

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/internal/sse"
)

// keepAlive is how long a stream may be silent before a comment is sent.
const keepAlive = 25 * time.Second

// writeTimeout limits one write to a page.
const writeTimeout = 30 * time.Second

// serveTimeline sends the timeline and its changes, until the page leaves or the handler closes.
func (h *Handler) serveTimeline(w http.ResponseWriter, r *http.Request) {
	t := h.timeline
	if !t.watch() {
		http.Error(w, "playground: too many pages watch the timeline; close one", http.StatusServiceUnavailable)
		return
	}
	defer t.unwatch()
	flush := httpserve.Flusher(w)
	if flush == nil {
		http.Error(w, "playground: middleware in front of the playground buffers its responses; mount it outside of that", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", sse.ContentType)
	control := http.NewResponseController(w)
	send := func(text []byte) bool {
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // tests have writers without deadlines
		_, err := w.Write(text)
		return err == nil && flush() == nil
	}
	if !send([]byte(": the timeline\n\n")) {
		return
	}
	idle := time.NewTicker(keepAlive)
	defer idle.Stop()
	for after := int64(0); ; {
		b, upTo, more := t.next(after)
		if b != nil {
			text, err := json.Marshal(b)
			if err != nil || !send(sse.AppendEvent(nil, "", text)) {
				return
			}
			after = upTo
			continue
		}
		select {
		case <-more:
		case <-idle.C:
			if !send([]byte(":\n\n")) {
				return
			}
		case <-t.closed.Done():
			return
		case <-r.Context().Done():
			return
		}
	}
}
