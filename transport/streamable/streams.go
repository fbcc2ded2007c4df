package streamable

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/mcpkit/mcpkit-go/transport"
)

// streams are the event streams of one session: the standalone one, which the client opens by GET, and one
// for each POST whose reply became a stream. Each message is on exactly one of them, and every
// message is in the event store before it goes out, so that the store is the queue as well: a
// connection that comes back, or falls behind, reads on from there.
type streams struct {
	s *session

	mu         sync.Mutex
	standalone *stream
	open       map[uint64]*stream // those whose answer is not there yet, but for the standalone one
	count      uint64
	closed     bool
	stored     bool // something of the session is in the store
}

// A stream is one of the streams of a session. streams.mu guards all of it.
type stream struct {
	id   uint64
	name string // id, in decimal
	last uint64 // number of the message appended last
	sent uint64 // of the one written last by a GET
	done bool   // the answer was appended: nothing follows

	taken bool          // a connection writes the stream
	freed chan struct{} // closed when that one is gone; nil while nobody waits for it
	wake  chan struct{} // tells the GET that writes the stream of new messages; nil where a POST does
}

func newStream(id uint64) *stream { return &stream{id: id, name: strconv.FormatUint(id, 10)} }

func (o *streams) init(s *session) {
	o.s = s
	o.standalone = newStream(0)
}

// create returns a new stream for the POST that calls, which writes it from now on.
func (o *streams) create() *stream {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count++
	st := newStream(o.count)
	st.taken = true
	if o.open == nil {
		o.open = make(map[uint64]*stream)
	}
	o.open[st.id] = st
	return st
}

// append keeps data as the next message of st, and as its last one when it is the answer. It wakes the GET that
// writes st.
func (o *streams) append(ctx context.Context, st *stream, data []byte, answer bool) (seq uint64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return 0, transport.ErrClosed
	}
	o.stored = true
	// A client that went away is no reason not to keep what it can come back for.
	err = o.s.h.opts.EventStore.Append(context.WithoutCancel(ctx), o.s.ID(), st.name, st.last+1, data)
	if err == nil {
		st.last++
	}
	if answer && err == nil {
		o.finishLocked(st)
	}
	if err != nil && !errors.Is(err, ErrTooLarge) {
		o.s.h.opts.Logger.ErrorContext(ctx, "streamable: event store did not keep a message", "err", err)
	}
	o.wakeLocked(st)
	return st.last, err
}

// finish says that nothing follows on st.
func (o *streams) finish(st *stream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.finishLocked(st)
	o.wakeLocked(st)
}

func (o *streams) finishLocked(st *stream) {
	st.done = true
	delete(o.open, st.id)
}

func (o *streams) wakeLocked(st *stream) {
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

// free says that the connection that wrote st is gone.
func (o *streams) free(st *stream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	st.taken, st.wake = false, nil
	if st.freed != nil {
		close(st.freed)
		st.freed = nil
	}
}

// take makes the caller the one who writes st. Where another one does it returns a channel that is
// closed when that one is gone. It never takes a stream away: somebody who
// learned the session id would cut its client off.
func (o *streams) take(st *stream) (wake, freed chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if st.taken {
		if st.freed == nil {
			st.freed = make(chan struct{})
		}
		return nil, st.freed
	}
	st.taken = true
	st.wake = make(chan struct{}, 1)
	return st.wake, nil
}

// state returns how far st is.
func (o *streams) state(st *stream) (last uint64, done bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return st.last, st.done
}

// listening reports whether a client reads the standalone stream.
func (o *streams) listening() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.standalone.taken
}

// wrote notes that st was written up to seq.
func (o *streams) wrote(st *stream, seq uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	st.sent = seq
}

// unsent returns the number of the last message of st that a GET wrote.
func (o *streams) unsent(st *stream) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return st.sent
}

// find returns the stream and the message that an event id names.
func (o *streams) find(eventID string) (st *stream, seq uint64, err error) {
	id, seq, ok := parseEventID(eventID)
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case !ok || id > o.count:
		return nil, 0, fmt.Errorf("%s is no event id of this session", quote(eventID))
	case id == 0:
		st = o.standalone
	case o.open[id] != nil:
		st = o.open[id]
	default:
		// Its answer is in the store, if it is anywhere.
		st = newStream(id)
		st.last, st.done = seq, true
		return st, seq, nil
	}
	if seq > st.last {
		return nil, 0, fmt.Errorf("%s is no event id of this session", quote(eventID))
	}
	return st, seq, nil
}

// close ends all streams; what is appended later is dropped.
func (o *streams) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	if !o.stored {
		return
	}
	if err := o.s.h.opts.EventStore.Forget(context.Background(), o.s.ID()); err != nil {
		o.s.h.opts.Logger.Warn("streamable: event store did not forget a session", "err", err)
	}
}

// appendEventID appends the id of message seq of st: unique in the session, and it says the stream.
func appendEventID(dst []byte, st *stream, seq uint64) []byte {
	dst = append(dst, st.name...)
	dst = append(dst, '-')
	return strconv.AppendUint(dst, seq, 10)
}

func parseEventID(s string) (id, seq uint64, ok bool) {
	left, right, ok := strings.Cut(s, "-")
	if !ok {
		return 0, 0, false
	}
	id, err1 := strconv.ParseUint(left, 10, 64)
	seq, err2 := strconv.ParseUint(right, 10, 64)
	return id, seq, err1 == nil && err2 == nil
}
