package streamable

import (
	"context"
	"net/http"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/internal/sse"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// serveGet opens the stream for messages outside requests, or resumes a broken stream.
func (h *Handler) serveGet(w http.ResponseWriter, r *http.Request) *jsonrpc.Response {
	if _, stream := httpserve.Accepts(r.Header); !stream || len(r.Header["Accept"]) == 0 {
		return refuse(http.StatusNotAcceptable, "Accept must list text/event-stream")
	}
	s, refusal := h.session(r)
	if refusal != nil {
		return refusal
	}
	defer h.sessions.release(s)
	last := r.Header.Get(headerLastEventID)
	if last == "" && h.life.Draining.Err() != nil {
		return shuttingDown()
	}
	l := &listener{timedWriter: h.newWriter(w), r: r, s: s}
	if l.flush = h.flusher(w, r, true); l.flush == nil {
		return methodNotAllowed(w, r, "POST, DELETE")
	}
	closed, refusal := h.takeSlot(r)
	if refusal != nil {
		return refusal
	}
	defer closed()
	if refusal := l.open(last); refusal != nil {
		return refusal
	}
	l.run()
	return nil
}

// takeSlot counts a stream that only listens against its caller, until closed is called. It
// returns a refusal if the caller has too many.
func (h *Handler) takeSlot(r *http.Request) (closed func(), _ *jsonrpc.Response) {
	caller := httpserve.Caller(r, h.opts.TrustedProxies)
	if !h.listening.begin(caller) {
		return nil, busy("busy: too many streams listen; try again later")
	}
	return func() { h.listening.end(caller) }, nil
}

// A listener is the GET that reads a stream of a session. It takes messages from the event store, so
// a slow client does not block anything. If the store has dropped messages that the client needs,
// the listener disconnects it.
type listener struct {
	timedWriter
	r *http.Request
	s *legacySession

	st     *stream
	reader *reader
	seq    uint64 // of the last message written
	missed bool   // the client may have missed notifications
}

// open takes the stream after the last event that the client received, or returns why it cannot.
func (l *listener) open(last string) *jsonrpc.Response {
	done, err := l.s.out.resume(l, last)
	if err != nil {
		return refuse(http.StatusBadRequest, "Last-Event-ID: %v", err)
	}
	why := ""
	if done {
		if events, _, err := l.s.out.next(l.r.Context(), l.st, l.reader, l.seq); err != nil || len(events) == 0 {
			why = "the messages of that stream are no longer stored; send the request again"
		}
	} else if lost, gone := l.s.h.replica.gone(l); gone && lost == nil {
		why = "the process that ran the request has ended; the request may have had effects"
	}
	if why == "" {
		return nil
	}
	l.leave()
	return refuse(http.StatusBadRequest, "Last-Event-ID: %s", why)
}

// leave ends the stream for this client.
func (l *listener) leave() { l.s.out.free(l.st, l.reader) }

// run writes the stream until it ends, the client disconnects or reads it elsewhere, or the server
// closes it.
func (l *listener) run() {
	defer l.leave()
	open, cancel := oauth.WithExpiry(l.r.Context())
	defer cancel()
	draining := l.s.h.life.Draining
	if l.st != &l.s.out.standalone { // a call in flight may finish, and the shutdown waits for the listener
		draining = context.Background()
		l.s.h.life.Hold()
		defer l.s.h.life.End()
	}
	// The read deadline of a server with a ReadTimeout would look like a disconnect.
	_ = l.rc.SetReadDeadline(time.Time{})
	l.alive = time.NewTimer(l.every)
	defer l.alive.Stop()
	l.beginStream()
	var head []byte
	if l.st == &l.s.out.standalone && l.s.canPoll() {
		head = sse.AppendPriming(nil, primingID(l.st, l.seq))
	}
	if l.writeEvent(head) != nil {
		return
	}
	if l.missed {
		l.s.h.storer.SessionMissed(l.s.Session)
	}
	l.s.h.replica.tell("", l.s, message{About: aboutStream, Stream: l.st.name, Since: l.reader.since})
	var tick <-chan time.Time
	if l.s.h.replica.ranElsewhere(l.st.name) {
		tick = time.Tick(lookAway)
	}
	for live := false; ; live = true {
		lost, gone := l.s.h.replica.gone(l) // asked before the messages, which may be its last
		if !l.writeNew(live) {
			return
		}
		if gone { // without a response, the client is refused when it resumes the stream again
			if lost != nil {
				_ = l.writeEvent(sse.AppendEvent(nil, "", jsonrpc.AppendResponse(nil, lost)))
			}
			return
		}
		select {
		case <-draining.Done():
			return
		case <-open.Done(): // the client may resume the stream with another credential
			return
		case <-l.reader.wake:
		case <-tick: // the bus may have lost what wakes it, and the replica may be gone
		case <-l.alive.C:
			if l.writeEvent([]byte(sse.KeepAlive)) != nil {
				return
			}
		}
	}
}

// writeNew writes what the stream has more. It returns false if the stream ends.
func (l *listener) writeNew(live bool) (more bool) {
	events, more, err := l.s.out.next(l.r.Context(), l.st, l.reader, l.seq)
	if err != nil {
		l.s.h.opts.Logger.ErrorContext(l.r.Context(), "streamable: event store failed", "err", err)
		return false
	}
	// A client that resumes gets what is still stored. A live stream must not skip messages
	// silently.
	if live && len(events) > 0 && events[0].seq != l.seq+1 {
		l.s.h.opts.Logger.WarnContext(l.r.Context(), "streamable: client reads too slowly; closing its stream")
		return false
	}
	for _, ev := range events {
		if len(ev.data) > 0 && l.writeEvent(sse.AppendEvent(nil, eventID(l.st, ev.seq), ev.data)) != nil {
			return false
		}
		l.seq = ev.seq
		l.s.out.wrote(l.st, l.seq)
		more = more && !ev.last
	}
	return more
}
