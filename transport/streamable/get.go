package streamable

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/internal/sse"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// serveGet opens the stream for messages outside requests, or resumes a broken stream.
func (h *Handler) serveGet(w http.ResponseWriter, r *http.Request) {
	if h.opts.Stateless || h.opts.JSONOnly || modernHeader(r.Header) {
		h.methodNotAllowed(w, r)
		return
	}
	if _, stream := httpserve.Accepts(r.Header); !stream || len(r.Header["Accept"]) == 0 {
		refuse(http.StatusNotAcceptable, jsonrpc.CodeInvalidRequest, "Accept must list text/event-stream").write(w)
		return
	}
	s, refusal := h.session(r)
	if refusal != nil {
		refusal.write(w)
		return
	}
	defer h.sessions.release(s)
	resuming := field(r.Header, headerLastEventID) != ""
	if h.isDraining() && !resuming {
		shuttingDown(w, jsonrpc.ID{})
		return
	}
	flush := httpserve.Flusher(w)
	if flush == nil {
		h.warnNoStream(r, "the response writer cannot flush; does a middleware buffer it?")
		h.methodNotAllowed(w, r)
		return
	}
	closed, refusal := h.openStream(r)
	if refusal != nil {
		refusal.write(w)
		return
	}
	defer closed()
	l := &listener{h: h, w: w, r: r, s: s, flush: flush, rc: http.NewResponseController(w)}
	if refusal := l.open(); refusal != nil {
		refusal.write(w)
		return
	}
	defer s.out.free(l.st)
	if h.replica != nil {
		if refusal := h.replica.take(r.Context(), l); refusal != nil {
			refusal.write(w)
			return
		}
		defer h.replica.leave(l)
	}
	if l.st != s.out.standalone {
		// The listener ends with its stream or session, so there is nothing to cancel.
		c := new(call)
		h.life.Hold(c)
		defer h.life.End(c)
	}
	l.sendHead()
	l.run()
	if !l.broken {
		clearWriteDeadline(l.rc, r)
	}
}

// A listener is the GET that writes a stream of a session. It is handed new messages, and reads those
// that it missed from the event store, so a slow client does not block anything. If the store has
// dropped messages that the client needs, the listener disconnects it.
type listener struct {
	h     *Handler
	w     http.ResponseWriter
	r     *http.Request
	s     *session
	flush func() error
	rc    *http.ResponseController

	st     *stream
	wake   chan struct{}
	left   chan struct{} // closed when another replica writes the stream; nil outside of a fleet
	seq    uint64        // of the last message written
	spare  []event       // memory for messages of the stream
	ended  bool          // the last message of the stream was written
	fresh  bool          // the client has not seen this stream before
	broken bool          // the client has disconnected

	wrote       time.Time   // the last write began
	deadlineSet time.Time   // when the deadline of writes was set
	alive       *time.Timer // sets silent; nil without keep-alive
	silent      atomic.Bool // nothing may have been written for Options.KeepAlive
}

// open finds the stream and takes it, or returns why it cannot.
func (l *listener) open() *refusal {
	o := &l.s.out
	wait := time.Duration(0)
	if last := field(l.r.Header, headerLastEventID); last != "" {
		st, seq, err := o.find(last)
		if err != nil {
			return refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "Last-Event-ID: %v", err)
		}
		l.st, l.seq, wait = st, seq, l.h.resumeWait
	} else {
		l.st, l.seq, l.fresh = o.standalone, o.lastSent(o.standalone), true
	}
	if !l.take(wait) {
		return refuse(http.StatusConflict, jsonrpc.CodeInvalidRequest, "the stream is open on another connection")
	}
	if o.isDone(l.st) {
		events, err := l.after()
		if err != nil || len(events) == 0 {
			o.free(l.st)
			return refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "Last-Event-ID: the messages of that stream are no longer stored; send the request again")
		}
	}
	return nil
}

// take makes l the writer of its stream. The previous connection may be dead without the server
// knowing yet, so a client that resumes waits for a moment.
func (l *listener) take(wait time.Duration) bool {
	var patience <-chan time.Time
	for {
		wake, left, freed := l.s.out.take(l.st)
		if freed == nil {
			l.wake, l.left = wake, left
			return true
		}
		if wait == 0 {
			return false
		}
		if patience == nil {
			patience = time.After(wait)
		}
		select {
		case <-freed:
		case <-patience:
			return false
		case <-l.r.Context().Done():
			return false
		case <-l.s.done:
			return false
		}
	}
}

// sendHead sends the head of the reply, with the event that makes the stream resumable.
func (l *listener) sendHead() {
	// The read deadline of a server with a ReadTimeout would look like a disconnect.
	_ = l.rc.SetReadDeadline(time.Time{})
	header := l.w.Header()
	header["Content-Type"] = contentTypeStream
	header["Cache-Control"] = noStore
	header["X-Accel-Buffering"] = noBuffering
	l.w.WriteHeader(http.StatusOK)
	var head []byte
	if l.st == l.s.out.standalone && l.s.canPoll() {
		head = sse.AppendPriming(nil, primingID(l.st, l.seq), l.h.opts.Retry)
	}
	l.write(head)
}

// run writes the stream until it ends, the client disconnects, or the server closes it.
func (l *listener) run() {
	closing := l.h.life.Draining()
	if l.st != l.s.out.standalone {
		closing = nil // a call in flight may finish and respond
	}
	authentic, cancel := oauth.WithExpiry(context.WithoutCancel(l.r.Context()))
	defer cancel()
	// What rarely happens wakes the listener as a message does: it wakes for each message of each
	// client, and waiting for another channel costs as much as storing the message.
	defer context.AfterFunc(l.r.Context(), l.poke)()
	defer context.AfterFunc(authentic, l.poke)()
	if l.h.opts.KeepAlive > 0 {
		l.alive = time.AfterFunc(l.h.opts.KeepAlive, func() {
			l.silent.Store(true)
			l.poke()
		})
		defer l.alive.Stop()
	}
	look, stop := l.h.replica.look(l)
	defer stop()
	live := false
	if l.h.replica != nil && l.st != l.s.out.standalone && !l.h.replica.check(l) {
		return // the replica that ran the request has ended
	}
	for !l.broken {
		// Read done before the messages: a message appended later wakes the loop again.
		events, done, closed := l.s.out.next(l.st, l.seq, l.spare)
		if closed || !l.writeNew(events, live) || done || l.ended {
			return
		}
		live = true
		if events != nil {
			clear(events)
			l.spare = events[:0]
		}
		l.keepAlive()
		select {
		case <-l.wake:
		case <-look:
			if !l.h.replica.check(l) {
				return
			}
		case <-l.left:
			return
		case <-closing:
			return
		}
		if authentic.Err() != nil {
			return // the client resumes the stream with another token
		}
		l.broken = l.broken || l.r.Context().Err() != nil
	}
}

// poke wakes run.
func (l *listener) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// keepAlive writes a comment if nothing was written for Options.KeepAlive.
func (l *listener) keepAlive() {
	if l.broken || !l.silent.CompareAndSwap(true, false) {
		return
	}
	rest := l.h.opts.KeepAlive - time.Since(l.wrote)
	if rest <= 0 {
		l.write([]byte(sse.KeepAlive))
		rest = l.h.opts.KeepAlive
	}
	l.alive.Reset(rest)
}

// writeNew writes events, or if there are none, what the store has more. It returns false if the
// stream cannot continue.
func (l *listener) writeNew(events []event, live bool) bool {
	if len(events) == 0 {
		var err error
		if events, err = l.after(); err != nil {
			l.h.opts.Logger.ErrorContext(l.r.Context(), "streamable: event store failed", "err", err)
			return false
		}
		if len(events) == 0 {
			return true
		}
	}
	// A client that resumes gets what is still stored. A live stream must not skip messages
	// silently.
	if live && events[0].seq != l.seq+1 {
		l.h.opts.Logger.WarnContext(l.r.Context(), "streamable: client reads too slowly; closing its stream")
		return false
	}
	var frame []byte
	for _, ev := range events {
		if len(ev.data) > 0 {
			id := appendEventID(make([]byte, 0, 40), l.st, ev.seq)
			frame = sse.AppendEvent(frame[:0], string(id), ev.data)
			if !l.write(frame) {
				return false
			}
		}
		l.seq, l.ended = ev.seq, ev.last
		l.s.out.wrote(l.st, ev.seq)
	}
	return true
}

// writeLost writes a response that is not stored, in place of the one that was lost.
func (l *listener) writeLost(resp *jsonrpc.Response) {
	l.write(sse.AppendEvent(nil, "", jsonrpc.AppendResponse(nil, resp)))
}

func (l *listener) after() ([]event, error) {
	return l.h.events.after(context.WithoutCancel(l.r.Context()), l.s.ID(), l.st.name, l.seq)
}

// write writes and flushes frame. It returns false if the client has disconnected. It sets a
// deadline again when a quarter of writeTimeout is over.
func (l *listener) write(frame []byte) bool {
	l.wrote = time.Now()
	if l.wrote.Sub(l.deadlineSet) > writeTimeout/4 && l.rc.SetWriteDeadline(l.wrote.Add(writeTimeout)) == nil {
		l.deadlineSet = l.wrote
	}
	_, err := l.w.Write(frame)
	if err == nil {
		err = l.flush()
	}
	l.broken = err != nil
	return err == nil
}
