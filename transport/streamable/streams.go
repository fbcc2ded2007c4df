package streamable

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/transport"
)

// streams are the event streams of one session: the standalone stream, which the client opens with
// GET, and one for each POST whose reply became a stream. A message is on exactly one stream, and in
// an event store before it is sent, for clients that resume a stream. The standalone stream is kept
// in memory alone.
type streams struct {
	s *legacySession

	mu         sync.Mutex // not held while the store of a fleet works
	tag        string     // begins the names of streams; no other session has it; set by begin
	standalone stream
	open       map[string]*stream // by name: those without a response yet, and those of other replicas
	count      uint64
	listened   bool // the client has opened the standalone stream here, and not elsewhere since
	closed     bool
}

// A stream is one of the streams of a session. streams.mu guards its fields below name and request.
type stream struct {
	name    string
	request string // JSON of the id of its request; "" for none

	last   uint64  // number of the last message appended
	sent   uint64  // number of the last message written by a GET
	done   bool    // the response was appended: nothing follows
	moved  bool    // a client reads the stream at another replica
	reader *reader // nil for none
}

// A reader writes a stream to a client: a POST or a GET.
type reader struct {
	wake  chan struct{} // holds one token when there may be more to read
	left  chan struct{} // closed when another reader has taken the stream
	since int64         // when it took the stream, in Unix nanoseconds
}

// hasLeft reports whether another reader has taken the stream.
func (r *reader) hasLeft() bool {
	select {
	case <-r.left:
		return true
	default:
		return false
	}
}

const (
	tagSize        = 8   // random characters of a tag
	standaloneName = "0" // after the tag
)

// begin sets the tag when a client uses streams. The caller holds mu.
func (o *streams) begin() {
	if o.tag == "" {
		o.tag = o.s.h.replica.name() + strings.ToLower(rand.Text()[:tagSize]) + "_"
		o.standalone.name = o.tag + standaloneName
	}
}

// create returns a new stream for a POST with this request, which reads it.
func (o *streams) create(request string) (*stream, *reader) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begin()
	o.count++
	st := &stream{name: o.tag + strconv.FormatUint(o.count, 10), request: request}
	o.add(st)
	return st, o.take(st)
}

// add adds a stream that may get more messages. The caller holds mu.
func (o *streams) add(st *stream) {
	if o.open == nil {
		o.open = map[string]*stream{}
	}
	o.open[st.name] = st
}

// take makes a new reader of st, in place of the one that it has. The caller holds mu.
func (o *streams) take(st *stream) *reader {
	if st.reader != nil {
		close(st.reader.left)
	}
	st.reader = &reader{make(chan struct{}, 1), make(chan struct{}), time.Now().UnixNano()}
	return st.reader
}

// free undoes take, unless another reader has taken st. Nothing is kept of a stream of another
// replica that no client reads here.
func (o *streams) free(st *stream, r *reader) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if st.reader == r {
		st.reader = nil
	}
	if st.reader == nil && !strings.HasPrefix(st.name, o.tag) {
		delete(o.open, st.name)
	}
}

// used reports whether the client may resume a stream or opens them.
func (o *streams) used() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.listened || o.count > 0
}

// notify appends data to the standalone stream.
func (o *streams) notify(data []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return transport.ErrClosed
	case !o.listened:
		return nil
	}
	st := &o.standalone
	st.last++
	err := o.s.h.memory.append(context.Background(), o.s.Digest(), st.name, event{seq: st.last, data: data})
	o.wake(st)
	return err
}

// append stores data as the next message of the stream of a POST, and as its last one if it is the
// response. It wakes a GET that reads st. Appends to one stream never run at the same time.
func (o *streams) append(ctx context.Context, st *stream, data []byte, response bool) (seq uint64, err error) {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return 0, transport.ErrClosed
	}
	st.last++
	e := event{seq: st.last, data: data, request: st.request, last: response}
	o.mu.Unlock()
	// Also if the client has disconnected: it may resume the stream.
	err = o.s.h.events.append(context.WithoutCancel(ctx), o.s.Digest(), st.name, e)
	if err != nil && !errors.Is(err, errTooLarge) {
		o.s.h.opts.Logger.ErrorContext(ctx, "streamable: event store did not keep a message", "err", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if errors.Is(err, errTooLarge) {
		st.last--
	}
	if response && err == nil {
		o.finish(st)
	}
	o.wake(st)
	if st.moved {
		o.s.h.replica.wake(o.s, st)
	}
	return e.seq, err
}

// end records that nothing follows on st.
func (o *streams) end(ctx context.Context, st *stream) {
	o.mu.Lock()
	done := st.done
	o.finish(st)
	o.wake(st)
	o.mu.Unlock()
	if !done && o.s.h.replica != nil {
		_, _ = o.append(ctx, st, nil, true) // a client at another replica must not wait for more
	}
}

func (o *streams) finish(st *stream) {
	st.done = true
	delete(o.open, st.name)
}

func (o *streams) wake(st *stream) {
	if st.reader == nil {
		return
	}
	select {
	case st.reader.wake <- struct{}{}:
	default:
	}
}

// listening reports whether a client reads the standalone stream.
func (o *streams) listening() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.standalone.reader != nil
}

// isClosed reports whether the session has ended.
func (o *streams) isClosed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed
}

// state returns whether st is complete, and whether the session has ended.
func (o *streams) state(st *stream) (done, closed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return st.done, o.closed
}

// wrote records that a GET has written st up to seq.
func (o *streams) wrote(st *stream, seq uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	st.sent = seq
}

// listen returns the standalone stream and its new reader, and the number of the last message that
// was written.
func (o *streams) listen() (*stream, *reader, uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begin()
	o.listened = true
	return &o.standalone, o.take(&o.standalone), o.standalone.sent
}

// resume returns the stream that an event ID names, its new reader, and the number of the message.
// missed means that it is the standalone stream of another process, in whose place the client gets
// that of this one.
func (o *streams) resume(eventID string) (st *stream, r *reader, seq uint64, missed bool, err error) {
	bad := fmt.Errorf("%+.100q is not an event ID of this session", eventID)
	name, seq, ok := parseEventID(eventID)
	if !ok {
		return nil, nil, 0, false, bad
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begin()
	digits, own := strings.CutPrefix(name, o.tag)
	if !own && strings.HasSuffix(name, "_"+standaloneName) {
		o.listened = true
		return &o.standalone, o.take(&o.standalone), o.standalone.sent, true, nil
	}
	switch n, err := strconv.ParseUint(digits, 10, 64); {
	case own && digits == standaloneName:
		st = &o.standalone
		o.listened = true
	case o.open[name] != nil:
		st = o.open[name]
	case own && (err != nil || n > o.count):
		return nil, nil, 0, false, bad
	case own, !o.s.h.replica.ranElsewhere(name):
		st = &stream{name: name, last: seq, done: true} // its response is in the store, or nowhere
	default:
		st = &stream{name: name, last: seq}
		o.add(st)
	}
	if own && seq > st.last {
		return nil, nil, 0, false, bad
	}
	return st, o.take(st), seq, false, nil
}

// wakeNamed wakes the GET that reads a stream of another replica.
func (o *streams) wakeNamed(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if st := o.open[name]; st != nil {
		o.wake(st)
	}
}

// leave ends the reader of a stream, unless it took the stream later than the client began to read it
// at another replica. "" is the standalone stream.
func (o *streams) leave(name string, since int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	st := o.open[name]
	if name == "" {
		st = &o.standalone
	}
	if st == nil || st.reader != nil && st.reader.since > since {
		return
	}
	if st == &o.standalone {
		o.listened = false
	}
	st.moved = name != ""
	if st.reader != nil {
		close(st.reader.left)
		st.reader = nil
	}
}

// close ends all streams; later messages are dropped. Other replicas go on with what is in the store
// of a fleet.
func (o *streams) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.wake(&o.standalone)
	for _, st := range o.open {
		o.wake(st)
	}
	o.s.h.memory.forget(o.s.Digest())
}

// eventID returns the ID of message seq of st. It names the stream and is unique in the session.
func eventID(st *stream, seq uint64) string { return st.name + "-" + strconv.FormatUint(seq, 10) }

// primingID returns the ID of an event that begins a connection of the standalone stream and
// says what the client has received. No two are equal: there are clients that give up a session if
// its stream breaks five times in a row without an event whose ID is new to them.
func primingID(st *stream, seq uint64) string {
	return eventID(st, seq) + "-" + rand.Text()[:primingLen]
}

const primingLen = 10 // 50 random bits

// parseEventID parses an ID of eventID or primingID.
func parseEventID(s string) (name string, seq uint64, ok bool) {
	name, right, _ := strings.Cut(s, "-")
	right, unique, primes := strings.Cut(right, "-")
	if primes && (!strings.HasSuffix(name, "_"+standaloneName) || len(unique) != primingLen) {
		return "", 0, false
	}
	named := len(name) > tagSize && len(name) <= 60 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
	seq, err := strconv.ParseUint(right, 10, 64)
	return name, seq, named && err == nil
}
