package streamable

import (
	"context"
	"net/http"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/admission"
	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/internal/sse"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// noFlush is why a writer cannot send a stream.
const noFlush = "the response writer cannot flush; does a middleware buffer it?"

// serveGet opens the stream for messages outside requests, or resumes a broken stream.
func (h *Handler) serveGet(w http.ResponseWriter, r *http.Request) {
	if h.opts.Stateless || h.opts.JSONOnly || modernHeader(r.Header) {
		h.methodNotAllowed(w, r)
		return
	}
	if _, stream := httpserve.Accepts(r.Header); !stream || len(r.Header["Accept"]) == 0 {
		writeError(w, refuse(http.StatusNotAcceptable, "Accept must list text/event-stream"))
		return
	}
	s, refusal := h.session(r)
	if refusal != nil {
		writeError(w, refusal)
		return
	}
	defer h.sessions.release(s)
	last := r.Header.Get(headerLastEventID)
	if last == "" && h.life.Draining.Err() != nil {
		writeError(w, shuttingDown())
		return
	}
	flush := httpserve.Flusher(w)
	if flush == nil {
		h.warnNoStream(r, noFlush)
		h.methodNotAllowed(w, r)
		return
	}
	closed, refusal := h.takeSlot(r)
	if refusal != nil {
		writeError(w, refusal)
		return
	}
	defer closed()
	l := &listener{h: h, r: r, s: s, out: timedWriter{w: w, rc: http.NewResponseController(w), flush: flush}}
	if refusal := l.open(last); refusal != nil {
		writeError(w, refusal)
		return
	}
	defer s.out.free(l.st, l.reader)
	l.run()
}

// takeSlot counts a stream that only listens against its caller, until closed is called. It
// returns a refusal if the caller has too many.
func (h *Handler) takeSlot(r *http.Request) (closed func(), _ *jsonrpc.Response) {
	caller := admission.Caller(r, h.opts.TrustedProxies)
	if !h.listening.Open(caller) {
		return nil, busy("busy: too many streams listen; try again later")
	}
	return func() { h.listening.Close(caller) }, nil
}

// A listener is the GET that reads a stream of a session. It takes messages from the event store, so
// a slow client does not block anything. If the store has dropped messages that the client needs,
// the listener disconnects it.
type listener struct {
	h   *Handler
	r   *http.Request
	s   *legacySession
	out timedWriter

	st     *stream
	reader *reader
	seq    uint64      // of the last message written
	missed bool        // the client may have missed notifications
	ended  bool        // the last message of the stream was written
	broken bool        // the client has disconnected
	alive  *time.Timer // fires when nothing was written for Options.KeepAlive; nil without keep-alive
}

// open takes the stream after the last event that the client received, or returns why it cannot.
func (l *listener) open(last string) *jsonrpc.Response {
	o := &l.s.out
	if last == "" {
		l.st, l.reader, l.seq = o.listen()
		return nil
	}
	var err error
	if l.st, l.reader, l.seq, l.missed, err = o.resume(last); err != nil {
		return refuse(http.StatusBadRequest, "Last-Event-ID: %v", err)
	}
	why := ""
	if done, _ := o.state(l.st); done {
		if events, err := l.after(); err != nil || len(events) == 0 {
			why = "the messages of that stream are no longer stored; send the request again"
		}
	} else if lost, gone := l.h.replica.gone(l); gone && lost == nil {
		why = "the process that ran the request has ended; the request may have had effects"
	}
	if why == "" {
		return nil
	}
	o.free(l.st, l.reader)
	return refuse(http.StatusBadRequest, "Last-Event-ID: %s", why)
}

// begin sends the head of the reply, with the event that makes the stream resumable.
func (l *listener) begin() {
	// The read deadline of a server with a ReadTimeout would look like a disconnect.
	_ = l.out.rc.SetReadDeadline(time.Time{})
	l.out.beginStream()
	var head []byte
	if l.st == &l.s.out.standalone && l.s.canPoll() {
		head = sse.AppendPriming(nil, primingID(l.st, l.seq), l.h.opts.Retry)
	}
	l.write(head)
}

// run writes the stream until it ends, the client disconnects or reads it elsewhere, or the server
// closes it.
func (l *listener) run() {
	closing := l.h.life.Draining.Done()
	if l.st != &l.s.out.standalone {
		closing = nil // a call in flight may finish and respond, while the shutdown waits for the listener
		l.h.life.Hold()
		defer l.h.life.End()
	}
	l.begin()
	if l.missed {
		l.h.storer.SessionMissed(l.s.Session)
	}
	authentic, cancel := oauth.WithExpiry(context.WithoutCancel(l.r.Context()))
	defer cancel()
	var silent <-chan time.Time
	if l.h.opts.KeepAlive > 0 {
		l.alive = time.NewTimer(l.h.opts.KeepAlive)
		defer l.alive.Stop()
		silent = l.alive.C
	}
	tick, stop := l.h.replica.take(l)
	defer stop()
	for live := false; !l.broken; live = true {
		// Read these before the messages: a message appended later wakes the loop again.
		done, closed := l.s.out.state(l.st)
		lost, gone := l.h.replica.gone(l)
		if closed || !l.writeNew(live) || done || l.ended {
			return
		}
		if gone {
			l.writeLost(lost)
			return
		}
		select {
		case <-l.reader.wake:
		case <-tick: // the bus may have lost what wakes it, and the replica may be gone
		case <-silent:
			l.write([]byte(sse.KeepAlive))
		case <-l.reader.left:
			return
		case <-closing:
			return
		case <-authentic.Done():
			return // the client resumes the stream with another token
		case <-l.r.Context().Done():
			l.broken = true
		}
	}
}

// writeNew writes what the store has more. It returns false if the stream cannot continue.
func (l *listener) writeNew(live bool) bool {
	events, err := l.after()
	if err != nil {
		l.h.opts.Logger.ErrorContext(l.r.Context(), "streamable: event store failed", "err", err)
		return false
	}
	// A client that resumes gets what is still stored. A live stream must not skip messages
	// silently.
	if live && len(events) > 0 && events[0].seq != l.seq+1 {
		l.h.opts.Logger.WarnContext(l.r.Context(), "streamable: client reads too slowly; closing its stream")
		return false
	}
	for _, ev := range events {
		if len(ev.data) > 0 && !l.write(sse.AppendEvent(nil, eventID(l.st, ev.seq), ev.data)) {
			return false
		}
		l.seq, l.ended = ev.seq, ev.last
		l.s.out.wrote(l.st, ev.seq)
	}
	return true
}

// writeLost writes a response that is not stored, in place of the one that was lost. Without one,
// the client is refused when it resumes the stream again.
func (l *listener) writeLost(resp *jsonrpc.Response) {
	if resp != nil {
		l.write(sse.AppendEvent(nil, "", jsonrpc.AppendResponse(nil, resp)))
	}
}

func (l *listener) after() ([]event, error) {
	store := l.h.events
	if l.st == &l.s.out.standalone {
		store = l.h.memory
	}
	return store.after(context.WithoutCancel(l.r.Context()), l.s.Digest(), l.st.name, l.seq)
}

// write writes and flushes frame. It returns false if the client has disconnected.
func (l *listener) write(frame []byte) bool {
	l.broken = l.out.send(frame) != nil
	if l.alive != nil {
		l.alive.Reset(l.h.opts.KeepAlive)
	}
	return !l.broken
}
