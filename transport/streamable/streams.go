package streamable

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/httpguard"
	"github.com/mcpkit/mcpkit-go/transport"
)

// streams are the event streams of one session: the standalone stream, which the client opens with
// GET, and one for each POST whose reply became a stream. Each message is on exactly one stream,
// and is in the event store before it is sent. The GET that writes a stream is handed new messages.
// For others the store is the queue: a connection that resumes, or falls behind, reads from it.
type streams struct {
	s *session

	mu         sync.Mutex // not held while the event store works
	standalone *stream
	open       map[string]*stream // by name: streams without a response yet, except standalone
	count      uint64
	away       map[string]*stream // streams of other replicas that are written here
	tag        string             // begins the names of streams in a fleet; "" outside of one
	closed     bool
	draining   bool // a goroutine stores what is pending

	pending      [][]byte // notifications for the standalone stream that wait for the store
	pendingBytes int
}

// Limits for messages that wait for a slow event store.
const (
	maxPending      = 1024    // notifications of a session outside requests
	maxPendingBytes = 1 << 20 // of these notifications
)

var errPending = errors.New("streamable: dropped, since the event store is too slow")

// A stream is one of the streams of a session. streams.mu guards all its fields.
type stream struct {
	name    string // unique in the session; standaloneName for the standalone stream
	request string // JSON of the id of its request; "" for none
	last    uint64 // number of the last message appended
	sent    uint64 // number of the last message written by a GET
	done    bool   // the response was appended: nothing follows

	taken bool          // a connection writes the stream
	moved bool          // a client reads the stream at another replica
	freed chan struct{} // closed when that connection ends; nil while no connection waits for that
	get   *reading      // of the GET that writes the stream; nil if a POST writes it
}

// A reading is a stream that a GET writes. streams.mu guards its fields.
type reading struct {
	wake  chan struct{} // wakes the GET
	leave chan struct{} // closed when it must leave the stream to another replica; nil outside of a fleet
	live  []event       // messages that it has not taken; others are in the store alone
}

const standaloneName = "0"

// plausible is more messages than a stream ever has.
const plausible = 1 << 62

func (o *streams) init(s *session) {
	o.s = s
	o.standalone = &stream{name: standaloneName}
	if s.h.replica != nil {
		o.tag = s.h.replica.streamTag()
	}
}

// create returns a new stream for a POST with this request, which writes it from now on.
func (o *streams) create(request string) *stream {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count++
	st := &stream{name: o.tag + strconv.FormatUint(o.count, 10), request: request, taken: true}
	if o.open == nil {
		o.open = make(map[string]*stream)
	}
	o.open[st.name] = st
	return st
}

// notify appends data to the standalone stream. It calls the store of a fleet on a goroutine of the
// session, since a notification may go to many sessions and must not wait for that of one.
func (o *streams) notify(data []byte) error {
	if o.instant() {
		_, err := o.append(context.Background(), o.standalone, data, false)
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return transport.ErrClosed
	case len(o.pending) >= maxPending || len(o.pending) > 0 && o.pendingBytes+len(data) > maxPendingBytes:
		return errPending
	}
	o.pending = append(o.pending, data)
	o.pendingBytes += len(data)
	if !o.draining {
		o.draining = true
		// Ends when nothing is pending. The fleet limits the time of its operations.
		go o.storePending()
	}
	return nil
}

// storePending stores the pending notifications, in order.
func (o *streams) storePending() {
	for {
		o.mu.Lock()
		if len(o.pending) == 0 || o.closed {
			o.pending, o.pendingBytes, o.draining = nil, 0, false
			o.mu.Unlock()
			return
		}
		data := o.pending[0]
		o.pending = o.pending[1:]
		o.pendingBytes -= len(data)
		o.mu.Unlock()
		_, _ = o.append(context.Background(), o.standalone, data, false) // append logs the error
	}
}

// instant reports whether the store is a [memoryStore], which never blocks.
func (o *streams) instant() bool {
	_, own := o.s.h.events.(*memoryStore)
	return own
}

// append stores data as the next message of st, and as its last one if it is the response. It wakes
// the GET that writes st. Appends to one stream never run at the same time.
func (o *streams) append(ctx context.Context, st *stream, data []byte, answer bool) (seq uint64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return 0, transport.ErrClosed
	}
	e := event{seq: st.last + 1, data: data, request: st.request, last: answer}
	if o.instant() {
		err = o.s.h.events.append(ctx, o.s.ID(), st.name, e)
	} else {
		// Store the message even if the client has disconnected: it may resume the stream.
		err = o.store(context.WithoutCancel(ctx), st, &e)
	}
	return o.appended(ctx, st, e, err)
}

// store calls the store of a fleet. The caller holds mu, which is not held meanwhile. Other replicas
// may append to the standalone stream, too: then the message gets a larger number.
func (o *streams) store(ctx context.Context, st *stream, e *event) error {
	o.mu.Unlock()
	defer o.mu.Lock()
	for range conflictsInARow {
		err := o.s.h.events.append(ctx, o.s.ID(), st.name, *e)
		switch {
		case !errors.Is(err, fleet.ErrConflict):
			return err
		case st != o.standalone:
			return nil // only this replica appends to it: it was stored, and the answer was lost
		}
		last, err := o.s.h.replica.last(ctx, o.s, st.name)
		if err != nil {
			return err
		}
		e.seq = last + 1
	}
	return fleet.ErrConflict
}

// A GET that is further behind, or misses larger messages, reads the store.
const (
	liveEvents = 8       // messages that it is handed
	liveBytes  = 4 << 10 // of one of them
)

// appended handles the result of an append. The caller holds mu.
func (o *streams) appended(ctx context.Context, st *stream, e event, err error) (uint64, error) {
	if err == nil {
		st.last = max(st.last, e.seq)
		if st.get != nil && len(st.get.live) < liveEvents && len(e.data) <= liveBytes {
			st.get.live = append(st.get.live, e)
		}
	}
	if e.last && err == nil {
		o.markDoneLocked(st)
	}
	if err != nil && !errors.Is(err, errTooLarge) {
		o.s.h.opts.Logger.ErrorContext(ctx, "streamable: event store did not keep a message", "err", err)
	}
	o.wakeLocked(st)
	if o.s.h.replica != nil && err == nil {
		o.s.h.replica.wakeOthers(o.s, st)
	}
	return st.last, err
}

// markDone records that nothing follows on st.
func (o *streams) markDone(st *stream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.s.h.replica != nil && !st.done {
		// A client that resumes it at another replica must not wait for more. Ends when the fleet
		// has stored that.
		go func() { _, _ = o.append(context.Background(), st, nil, true) }()
	}
	o.markDoneLocked(st)
	o.wakeLocked(st)
}

func (o *streams) markDoneLocked(st *stream) {
	st.done = true
	delete(o.open, st.name)
}

func (o *streams) wakeLocked(st *stream) {
	if st.get == nil {
		return
	}
	select {
	case st.get.wake <- struct{}{}:
	default:
	}
}

// free records that the connection that wrote st has ended.
func (o *streams) free(st *stream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	st.taken, st.get = false, nil
	delete(o.away, st.name)
	if st.freed != nil {
		close(st.freed)
		st.freed = nil
	}
}

// take makes the caller the writer of st. If another connection writes it, take returns a channel
// that is closed when that connection ends. It never takes a stream away: otherwise anyone who
// learned the session ID could disconnect the client. left is closed when another replica takes it.
func (o *streams) take(st *stream) (wake, left, freed chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if st.taken {
		if st.freed == nil {
			st.freed = make(chan struct{})
		}
		return nil, nil, st.freed
	}
	st.taken = true
	st.get = &reading{wake: make(chan struct{}, 1)}
	if o.tag != "" {
		st.get.leave = make(chan struct{})
	}
	return st.get.wake, st.get.leave, nil
}

// isDone reports whether st is complete.
func (o *streams) isDone(st *stream) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return st.done
}

// next returns the messages of st after seq, if the GET need not read them from the store, whether
// st is complete, and whether the session has ended. spare is memory for further messages.
func (o *streams) next(st *stream, seq uint64, spare []event) (live []event, done, closed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	g := st.get
	if n := len(g.live); n > 0 && g.live[0].seq == seq+1 && g.live[n-1].seq == st.last {
		live, g.live = g.live, spare
	} else {
		clear(g.live)
		g.live = g.live[:0]
	}
	return live, st.done, o.closed
}

// listening reports whether a client reads the standalone stream.
func (o *streams) listening() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.standalone.taken
}

// wrote records that st was written up to seq.
func (o *streams) wrote(st *stream, seq uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	st.sent = seq
}

// reached records that a client has the messages of st up to seq, which other replicas may have stored in
// a log that has expired since. The next one gets a larger number.
func (o *streams) reached(st *stream, seq uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if seq < plausible { // otherwise the client has made the number up
		st.last = max(st.last, seq)
	}
}

// lastSent returns the number of the last message of st that a GET wrote.
func (o *streams) lastSent(st *stream) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return st.sent
}

// find returns the stream and the message number that an event ID names.
func (o *streams) find(eventID string) (st *stream, seq uint64, err error) {
	name, seq, ok := parseEventID(eventID)
	o.mu.Lock()
	defer o.mu.Unlock()
	count, own := o.number(name)
	switch {
	case !ok || !own && !o.s.h.replica.isStream(name) || own && count > o.count:
		return nil, 0, fmt.Errorf("%s is not an event ID of this session", httpguard.Quote(eventID))
	case name == standaloneName:
		st = o.standalone
	case o.open[name] != nil:
		st = o.open[name]
	case !own:
		if st = o.away[name]; st == nil {
			st = &stream{name: name, last: seq}
			if o.away == nil {
				o.away = make(map[string]*stream)
			}
			o.away[name] = st
		}
		return st, seq, nil
	default:
		// Its response is in the store, or nowhere.
		return &stream{name: name, last: seq, done: true}, seq, nil
	}
	if seq > st.last && o.tag == "" { // other replicas may have sent more
		return nil, 0, fmt.Errorf("%s is not an event ID of this session", httpguard.Quote(eventID))
	}
	return st, seq, nil
}

// number returns the number in the name of a stream of this session object.
func (o *streams) number(name string) (n uint64, own bool) {
	if name == standaloneName {
		return 0, true
	}
	digits, own := strings.CutPrefix(name, o.tag)
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, own && err == nil && strconv.FormatUint(n, 10) == digits
}

// wakeNamed wakes the GET that writes a stream.
func (o *streams) wakeNamed(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if st := o.named(name); st != nil {
		o.wakeLocked(st)
	}
}

// leave ends the GET that writes a stream, which a client now reads at another replica. It reports
// whether messages of the stream came from here.
func (o *streams) leave(name string) (wrote bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	st := o.named(name)
	if st == nil {
		return false
	}
	st.moved = true
	if st.get != nil && st.get.leave != nil {
		close(st.get.leave)
		st.get.leave = nil
	}
	return st.last > 0
}

// named returns a stream that messages may still come for, or nil. The caller holds mu.
func (o *streams) named(name string) *stream {
	if name == standaloneName {
		return o.standalone
	}
	if st := o.open[name]; st != nil {
		return st
	}
	return o.away[name]
}

// close ends all streams; later messages are dropped. Other replicas go on with what is in the store
// of a fleet, or have dropped it.
func (o *streams) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.wakeLocked(o.standalone)
	for _, some := range []map[string]*stream{o.open, o.away} {
		for _, st := range some {
			o.wakeLocked(st)
		}
	}
	if m, own := o.s.h.events.(*memoryStore); own {
		m.forget(o.s.ID())
	}
}

// appendEventID appends the ID of message seq of st. It names the stream and is unique in the
// session.
func appendEventID(dst []byte, st *stream, seq uint64) []byte {
	dst = append(dst, st.name...)
	dst = append(dst, '-')
	return strconv.AppendUint(dst, seq, 10)
}

// primingID returns the ID of an event that begins a connection of the standalone stream and
// says what the client has received. No two are equal: there are clients that give up a session if
// its stream breaks five times in a row without an event whose ID is new to them.
func primingID(st *stream, seq uint64) string {
	return string(appendEventID(nil, st, seq)) + "-" + rand.Text()[:primingLen]
}

const primingLen = 10 // 50 random bits

func parseEventID(s string) (name string, seq uint64, ok bool) {
	name, right, ok := strings.Cut(s, "-")
	if !ok {
		return "", 0, false
	}
	right, unique, primes := strings.Cut(right, "-")
	if primes && (name != standaloneName || len(unique) != primingLen) {
		return "", 0, false
	}
	seq, err := strconv.ParseUint(right, 10, 64)
	return name, seq, err == nil
}
