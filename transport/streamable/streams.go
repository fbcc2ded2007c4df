package streamable

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// streams are the event streams of one session: the standalone stream, which the client opens with
// GET, and one for each POST whose reply became a stream. A message is on exactly one stream, and in
// an event store before it is sent, for clients that resume a stream. The standalone stream is kept
// in memory alone.
//
// They are also the link of the session: the client can be reached outside of its requests.
type streams struct {
	s   *legacySession
	tag string // begins the names of streams; no other session has it

	mu         sync.Mutex // not held while the store of a fleet works
	standalone stream
	open       map[string]*stream // by name: those that are not done, and those of other replicas
	count      uint64
	listened   bool // the client has opened the standalone stream here, and not elsewhere since
	closed     bool
}

// A stream is one of the streams of a session. streams.mu guards its fields below order.
type stream struct {
	name    string
	store   eventStore // keeps the messages
	request string     // JSON of the id of its request; "" for none
	order   sync.Mutex // held while a message is stored

	last   uint64  // number of the last message appended
	sent   uint64  // number of the last message written by a GET
	done   bool    // the response was appended: nothing follows
	reader *reader // nil for none
}

// A reader writes a stream to a client: a POST or a GET. It leaves when the stream has another reader,
// or none.
type reader struct {
	wake  chan struct{} // holds one token when there may be more to read, or the reader has left
	since int64         // when it took the stream, in Unix nanoseconds
}

const (
	tagSize        = 8   // random characters of a tag
	standaloneName = "0" // after the tag
)

func (o *streams) init(s *legacySession) {
	o.s = s
	o.tag = s.h.replicaName + strings.ToLower(rand.Text()[:tagSize]) + "_"
	o.standalone.name, o.standalone.store = o.tag+standaloneName, s.h.memory
	o.open = map[string]*stream{o.standalone.name: &o.standalone}
}

// create returns a new stream for a POST with this request, which reads it.
func (o *streams) create(request string) (*stream, *reader) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count++
	st := &stream{name: o.tag + strconv.FormatUint(o.count, 10), store: o.s.h.events, request: request}
	o.open[st.name] = st
	return st, o.take(st)
}

// take makes a new reader of st, in place of the one that it has. The caller holds mu.
func (o *streams) take(st *stream) *reader {
	o.wake(st)
	st.reader = &reader{make(chan struct{}, 1), time.Now().UnixNano()}
	return st.reader
}

// free undoes take, unless another reader has taken st. Nothing is kept of a stream of another
// replica that no client reads here.
func (o *streams) free(st *stream, r *reader) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if st.reader == r {
		o.wake(st)
		st.reader = nil
	}
	if st.reader == nil && !strings.HasPrefix(st.name, o.tag) {
		delete(o.open, st.name)
	}
}

// wake wakes the reader of st. The caller holds mu.
func (o *streams) wake(st *stream) {
	if st.reader != nil && len(st.reader.wake) == 0 {
		st.reader.wake <- struct{}{}
	}
}

// readerOf returns the reader of st, or nil.
func (o *streams) readerOf(st *stream) *reader {
	o.mu.Lock()
	defer o.mu.Unlock()
	return st.reader
}

// used reports whether the client may resume a stream or opens them.
func (o *streams) used() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.listened || o.count > 0
}

// listening reports whether a client reads the standalone stream.
func (o *streams) listening() bool { return o.readerOf(&o.standalone) != nil }

// Notify sends n on the standalone stream, or keeps it until the client opens that again. Before the
// client has opened it here, n is dropped. It does not wait for the client.
func (o *streams) Notify(ctx context.Context, n *jsonrpc.Request) error {
	o.mu.Lock()
	unheard := !o.listened && !o.closed
	o.mu.Unlock()
	if unheard {
		return nil
	}
	_, err := o.append(ctx, &o.standalone, jsonrpc.AppendRequest(nil, n), false)
	return err
}

// Change calls f and, in a fleet, stores what it changed. It implements [transport.StoringLink].
func (o *streams) Change(ctx context.Context, f func()) error {
	return o.s.h.replica.change(ctx, o.s, f)
}

// append stores data as the next message of st, and wakes its reader. Nothing follows the last
// message. Without data, that is a mark for readers, also if it cannot be stored.
func (o *streams) append(ctx context.Context, st *stream, data []byte, last bool) (seq uint64, err error) {
	st.order.Lock()
	defer st.order.Unlock()
	o.mu.Lock()
	if o.closed || st.done {
		o.mu.Unlock()
		return 0, transport.ErrClosed
	}
	st.last++
	e := event{stream: st.name, seq: st.last, data: data, request: st.request, last: last}
	o.mu.Unlock()
	// Also if the client has disconnected: it may resume the stream.
	err = st.store.append(context.WithoutCancel(ctx), o.s, e)
	if err != nil && !errors.Is(err, errTooLarge) {
		o.s.h.opts.Logger.ErrorContext(ctx, "streamable: event store did not keep a message", "err", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if errors.Is(err, errTooLarge) {
		st.last--
	}
	if o.closed { // meanwhile
		o.s.h.memory.forget(o.s)
	}
	if last && (err == nil || len(data) == 0) {
		st.done = true
		delete(o.open, st.name)
	}
	o.wake(st)
	if st.reader == nil && st.request != "" {
		o.s.h.replica.tell("", o.s, message{About: aboutStream, Stream: st.name})
	}
	return e.seq, err
}

// next returns the messages of st after seq, and whether more may follow for r.
func (o *streams) next(ctx context.Context, st *stream, r *reader, seq uint64) (events []event, more bool, err error) {
	o.mu.Lock()
	left := o.closed || st.reader != r
	more = !st.done // a message that is appended after this wakes r
	o.mu.Unlock()
	if left {
		return nil, false, nil
	}
	events, err = st.store.after(context.WithoutCancel(ctx), o.s, st.name, seq)
	return events, more && err == nil, err
}

// wrote records that a GET has written st up to seq.
func (o *streams) wrote(st *stream, seq uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	st.sent = seq
}

// resume finds the stream that l reads, from the message after that with an event ID; "" is the
// standalone stream, from what was not sent. If it is the standalone stream of another process, the
// client gets that of this one, and may have missed messages. done means that the response was
// appended.
func (o *streams) resume(l *listener, last string) (done bool, err error) {
	name, seq, valid := parseEventID(last)
	o.mu.Lock()
	defer o.mu.Unlock()
	own, st := strings.HasPrefix(name, o.tag), o.open[name]
	switch {
	case last == "", valid && !own && strings.HasSuffix(name, "_"+standaloneName):
		st, seq, l.missed = &o.standalone, o.standalone.sent, last != ""
	case valid && st == nil && o.s.h.replica.ranElsewhere(name):
		st = &stream{name: name, store: o.s.h.events, last: seq}
		o.open[name] = st
	case valid && st == nil: // its response is in the store, or nowhere
		st = &stream{name: name, store: o.s.h.events, last: seq, done: true}
	}
	if st == nil || own && seq > st.last {
		return false, fmt.Errorf("%+.100q is not an event ID of this session", last)
	}
	o.listened = o.listened || st == &o.standalone
	l.st, l.reader, l.seq = st, o.take(st), seq
	return st.done, nil
}

// elsewhere hears from another replica that a stream has more, or that a client reads it there since
// a time, if that is not 0. The standalone stream has another name there.
func (o *streams) elsewhere(name string, since int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	st := o.open[name]
	if strings.HasSuffix(name, "_"+standaloneName) {
		st = &o.standalone
	}
	if st == nil {
		return
	}
	o.wake(st)
	if since > 0 && (st.reader == nil || st.reader.since <= since) {
		o.listened = o.listened && st != &o.standalone
		st.reader = nil
	}
}

// close ends all streams; later messages are dropped. Other replicas go on with what is in the store
// of a fleet.
func (o *streams) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	for _, st := range o.open {
		o.wake(st)
	}
	o.s.h.memory.forget(o.s)
}

// eventID returns the ID of message seq of st. It names the stream and is unique in the session.
func eventID(st *stream, seq uint64) string { return st.name + "-" + strconv.FormatUint(seq, 10) }

// primingID returns the ID of an event that begins a connection of the standalone stream and
// says what the client has received. No two are equal: there are clients that give up a session if
// its stream breaks five times in a row without an event whose ID is new to them.
func primingID(st *stream, seq uint64) string {
	return eventID(st, seq) + "-" + rand.Text()[:10] // 50 random bits
}

// eventIDs are those of eventID and primingID.
var eventIDs = regexp.MustCompile(`^([a-z0-9_]{9,60})-([0-9]+)(-[A-Z2-7]{10})?$`)

// parseEventID parses an ID of eventID or primingID.
func parseEventID(s string) (name string, seq uint64, ok bool) {
	m := eventIDs.FindStringSubmatch(s)
	if m == nil {
		return "", 0, false
	}
	seq, err := strconv.ParseUint(m[2], 10, 64)
	return m[1], seq, err == nil
}
