package streamable

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/httpguard"
	"github.com/mcpkit/mcpkit-go/transport"
)

// streams are the event streams of one session: the standalone stream, which the client opens with
// GET, and one for each POST whose reply became a stream. Each message is on exactly one stream,
// and is in the event store before it is sent. So the store is also the queue: a connection that
// resumes, or falls behind, reads from the store.
type streams struct {
	s *session

	mu         sync.Mutex // not held while the event store works
	standalone *stream
	open       map[uint64]*stream // streams without a response yet, except standalone
	count      uint64
	closed     bool
	stored     bool          // a message of the session is in the store
	storing    int           // calls of the store that have not returned
	forgotten  chan struct{} // closed when the store has forgotten the session; nil until closed

	pending      [][]byte // notifications for the standalone stream that wait for the store
	pendingBytes int
	draining     bool // a goroutine stores them
}

// Limits for messages that wait for a slow event store.
const (
	//limit:session notifications outside requests that wait for the event store | the notification is dropped
	maxPending = 1024 // notifications of a session outside requests
	//limit:session bytes of notifications that wait for the event store | the notification is dropped
	maxPendingBytes = 1 << 20 // of these notifications
	//limit:call time that a call of the event store may take | the message is sent but not stored
	storeTimeout = 10 * time.Second // of one call of the store
)

var (
	errPending   = errors.New("streamable: dropped, since the event store is too slow")
	errStoreLate = fmt.Errorf("the event store took longer than %v", storeTimeout)
)

// A stream is one of the streams of a session. streams.mu guards all its fields.
type stream struct {
	id   uint64
	name string // id, in decimal
	last uint64 // number of the last message appended
	sent uint64 // number of the last message written by a GET
	done bool   // the response was appended: nothing follows

	stuck bool          // the store has not returned from the last append
	taken bool          // a connection writes the stream
	freed chan struct{} // closed when that connection ends; nil while no connection waits for that
	wake  chan struct{} // wakes the GET that writes the stream; nil if a POST writes it
}

func newStream(id uint64) *stream { return &stream{id: id, name: strconv.FormatUint(id, 10)} }

func (o *streams) init(s *session) {
	o.s = s
	o.standalone = newStream(0)
}

// create returns a new stream for a POST, which writes it from now on.
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

// notify appends data to the standalone stream. It calls a custom store on a goroutine of the
// session, since a notification may go to many sessions and must not wait for the store of one.
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
		// Ends when nothing is pending. Each message takes at most storeTimeout.
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
	_, own := o.s.h.opts.EventStore.(*memoryStore)
	return own
}

// append stores data as the next message of st, and as its last one if it is the response. It wakes
// the GET that writes st. Appends to one stream never run at the same time.
func (o *streams) append(ctx context.Context, st *stream, data []byte, answer bool) (seq uint64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return 0, transport.ErrClosed
	case st.stuck:
		return 0, errStoreLate
	}
	o.stored = true
	// Store the message even if the client has disconnected: it may resume the stream.
	ctx = context.WithoutCancel(ctx)
	if o.instant() {
		return o.appended(ctx, st, answer, o.s.h.opts.EventStore.Append(ctx, o.s.ID(), st.name, st.last+1, data))
	}
	o.storing++
	st.stuck = true
	o.mu.Unlock()
	defer o.mu.Lock()
	return o.appendWithin(ctx, st, data, answer)
}

// appendWithin calls the store and waits up to storeTimeout.
func (o *streams) appendWithin(ctx context.Context, st *stream, data []byte, answer bool) (uint64, error) {
	type outcome struct {
		seq uint64
		err error
	}
	done := make(chan outcome, 1)
	// Ends when the store returns.
	go func() {
		ctx, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		err := guarded(func() error {
			return o.s.h.opts.EventStore.Append(ctx, o.s.ID(), st.name, st.last+1, data)
		})
		o.mu.Lock()
		defer o.mu.Unlock()
		st.stuck = false
		o.storing--
		seq, err := o.appended(ctx, st, answer, err)
		o.forgetLocked()
		done <- outcome{seq, err}
	}()
	late := time.NewTimer(storeTimeout + time.Second)
	defer late.Stop()
	select {
	case d := <-done:
		return d.seq, d.err
	case <-late.C:
		o.s.h.opts.Logger.ErrorContext(ctx, "streamable: event store did not keep a message", "err", errStoreLate)
		return 0, errStoreLate
	}
}

// guarded calls a custom store and turns its panics into errors.
func guarded(call func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the event store panicked: %v", v)
		}
	}()
	return call()
}

// appended handles the result of an append. The caller holds mu.
func (o *streams) appended(ctx context.Context, st *stream, answer bool, err error) (uint64, error) {
	if err == nil {
		st.last++
	}
	if answer && err == nil {
		o.markDoneLocked(st)
	}
	if err != nil && !errors.Is(err, ErrTooLarge) {
		o.s.h.opts.Logger.ErrorContext(ctx, "streamable: event store did not keep a message", "err", err)
	}
	o.wakeLocked(st)
	return st.last, err
}

// markDone records that nothing follows on st.
func (o *streams) markDone(st *stream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.markDoneLocked(st)
	o.wakeLocked(st)
}

func (o *streams) markDoneLocked(st *stream) {
	st.done = true
	delete(o.open, st.id)
}

func (o *streams) wakeLocked(st *stream) {
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

// free records that the connection that wrote st has ended.
func (o *streams) free(st *stream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	st.taken, st.wake = false, nil
	if st.freed != nil {
		close(st.freed)
		st.freed = nil
	}
}

// take makes the caller the writer of st. If another connection writes it, take returns a channel
// that is closed when that connection ends. It never takes a stream away: otherwise anyone who
// learned the session ID could disconnect the client.
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

// state returns the number of the last message of st, and whether it is complete.
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

// wrote records that st was written up to seq.
func (o *streams) wrote(st *stream, seq uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	st.sent = seq
}

// lastSent returns the number of the last message of st that a GET wrote.
func (o *streams) lastSent(st *stream) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return st.sent
}

// find returns the stream and the message number that an event ID names.
func (o *streams) find(eventID string) (st *stream, seq uint64, err error) {
	id, seq, ok := parseEventID(eventID)
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case !ok || id > o.count:
		return nil, 0, fmt.Errorf("%s is not an event ID of this session", httpguard.Quote(eventID))
	case id == 0:
		st = o.standalone
	case o.open[id] != nil:
		st = o.open[id]
	default:
		// Its response is in the store, or nowhere.
		st = newStream(id)
		st.last, st.done = seq, true
		return st, seq, nil
	}
	if seq > st.last {
		return nil, 0, fmt.Errorf("%s is not an event ID of this session", httpguard.Quote(eventID))
	}
	return st, seq, nil
}

// close ends all streams; later messages are dropped. The channel is closed when the store has
// forgotten the session; it is nil if nothing was stored.
func (o *streams) close() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	if !o.stored {
		return nil
	}
	o.forgotten = make(chan struct{})
	o.forgetLocked()
	return o.forgotten
}

// forgetLocked makes the store forget the session once it has ended and no append is running.
func (o *streams) forgetLocked() {
	if o.forgotten == nil || o.storing > 0 {
		return
	}
	if o.instant() {
		o.forget()
		return
	}
	// Ends when the store returns.
	go o.forget()
}

func (o *streams) forget() {
	defer close(o.forgotten)
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	if err := guarded(func() error { return o.s.h.opts.EventStore.Forget(ctx, o.s.ID()) }); err != nil {
		o.s.h.opts.Logger.Warn("streamable: event store did not forget a session", "err", err)
	}
}

// appendEventID appends the ID of message seq of st. It names the stream and is unique in the
// session.
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
