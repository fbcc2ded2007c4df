package duplex

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/buffers"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// chunkSize is the most that one write sends, so that a slow peer can be distinguished from one
// that does not read. Messages are gathered in chunks of about this size.
const chunkSize = 64 << 10

// An output gathers messages for the wire. If no goroutine is writing, the goroutine that adds a
// message writes it, and everything that others add meanwhile. So a single message costs one write
// and no goroutine switch, and many messages cost few writes. No lock is held during a write.
//
// Responses never wait for room, so a finished call holds nothing but its place in the queue. Their
// bytes are owed until they are written. While too many bytes are owed, nothing is read.
type output struct {
	wire      Wire
	failed    chan struct{} // closed when the wire failed, or by close
	stall     watch
	room      int64        // see fits
	maxUnsent int64        // of owed
	sent      atomic.Int64 // bytes added so far; written with mu held
	read      atomic.Int64 // how many of them the peer has read, as far as known
	more      atomic.Bool  // the next message of the peer is buffered

	mu        sync.Mutex
	queue     []chunk       // waiting lines, oldest first; guarded by mu
	waiting   int           // bytes of the queue; guarded by mu
	owed      int64         // bytes of unwritten responses; guarded by mu
	spare     []byte        // for the next chunk; guarded by mu
	writing   bool          // one goroutine writes; guarded by mu
	gathering bool          // one goroutine is about to write; guarded by mu
	holding   bool          // the leader is about to run another request or to write; guarded by mu
	held      bool          // the queue has a response that was not sent because of that; guarded by mu
	heldSince time.Duration // when holding began, on the leader's clock; guarded by mu
	err       error         // why writing failed; guarded by mu
	changed   chan struct{} // closed when there is room or the writer is done; nil if nobody waits; guarded by mu
}

// A chunk is one or more lines.
type chunk struct {
	lines []byte
	owed  int64 // bytes of them that are responses
}

// everything is unlimited room.
const everything = math.MaxInt64

func (o *output) start(w Wire, opts *Options, room int64) {
	o.wire, o.room, o.maxUnsent = w, room, opts.MaxUnsentBytes
	o.stall.start(opts.WriteTimeout, opts.WriteTimeout, o.stalled)
	o.failed = make(chan struct{})
}

// gone reports whether err means that the peer has disconnected, which is not a failure.
func gone(err error) bool {
	return err == nil || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, transport.ErrClosed)
}

// add queues the message that write appends, and sends it unless later is set and another message
// is sure to follow. It waits for room until ctx ends.
func (o *output) add(ctx context.Context, size int, later bool, write func([]byte) []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.waiting > StopReadingAt && o.err == nil {
		if err := o.wait(ctx); err != nil {
			return err
		}
	}
	if o.err != nil {
		return transport.ErrClosed
	}
	o.line(size, false, write)
	if !later || o.waiting >= chunkSize/2 {
		o.sendOwn()
	}
	return nil
}

// line queues one line of about size bytes. The caller holds mu.
func (o *output) line(size int, owed bool, write func([]byte) []byte) {
	last := len(o.queue) - 1
	if last < 0 || len(o.queue[last].lines)+size > chunkSize {
		lines := o.spare
		o.spare = nil
		switch {
		case size > 2*chunkSize:
			lines = slices.Grow(*buffers.Get(size), size)
		case cap(lines) < size:
			lines = make([]byte, 0, size)
		}
		o.queue = append(o.queue, chunk{lines: lines})
		last++
	}
	c := &o.queue[last]
	start := len(c.lines)
	c.lines = write(c.lines)
	oneLine(c.lines[start:])
	c.lines = append(c.lines, '\n')
	o.count(c, len(c.lines)-start, owed)
}

// oneLine replaces line breaks by spaces. In JSON they can only be white space. They occur in
// results from a user's json.RawMessage.
func oneLine(message []byte) {
	if bytes.IndexByte(message, '\n') < 0 && bytes.IndexByte(message, '\r') < 0 {
		return
	}
	for i, c := range message {
		if c == '\n' || c == '\r' {
			message[i] = ' '
		}
	}
}

// wait waits, with mu unlocked, until something changes or ctx ends.
func (o *output) wait(ctx context.Context) error {
	if o.changed == nil {
		o.changed = make(chan struct{})
	}
	changed := o.changed
	o.mu.Unlock()
	defer o.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// signal wakes the goroutines in wait. The caller holds mu.
func (o *output) signal() {
	if o.changed != nil {
		close(o.changed)
		o.changed = nil
	}
}

// send writes the queue, unless another goroutine does. The caller holds mu.
func (o *output) send() {
	if o.writing {
		return
	}
	o.held = false
	o.writing = true
	o.writeAll()
	o.writing = false
	o.signal()
}

// sendOwn is like send, but does not block: if the wire may block, another goroutine writes the
// rest. So the caller can observe its context. The caller holds mu.
func (o *output) sendOwn() {
	if o.writing {
		return
	}
	o.writing = true
	o.writeWhile(o.fits)
	o.writing = false
	o.signal()
	if len(o.queue) > 0 {
		o.flushSoon()
	}
}

// fits reports whether the wire accepts the queue even if the peer reads nothing. The caller holds
// mu.
func (o *output) fits() bool { return o.sent.Load()-o.read.Load() <= o.room }

// writeAll writes the whole queue. The caller holds mu and has set writing.
func (o *output) writeAll() { o.writeWhile(func() bool { return true }) }

// writeWhile writes the queue while may returns true. The caller holds mu and has set writing.
func (o *output) writeWhile(may func() bool) {
	for len(o.queue) > 0 && o.err == nil && may() {
		c := o.queue[0]
		o.queue[0] = chunk{}
		if o.queue = o.queue[1:]; len(o.queue) == 0 {
			o.queue = nil
		}
		o.waiting -= len(c.lines)
		o.mu.Unlock()
		err := o.write(c.lines)
		o.mu.Lock()
		o.owed -= c.owed
		if cap(c.lines) <= 2*chunkSize {
			o.spare = c.lines[:0]
		} else {
			buffers.Put(&c.lines)
		}
		if err != nil {
			o.fail(err)
		}
		o.signal()
	}
}

// fail ends all output. The caller holds mu.
func (o *output) fail(err error) {
	if o.err != nil {
		return
	}
	o.err, o.queue, o.waiting, o.spare = err, nil, 0, nil
	close(o.failed)
	o.stall.stop()
	o.signal()
}

// flush writes the queue.
func (o *output) flush() {
	o.mu.Lock()
	o.send()
	o.mu.Unlock()
}

// flushSoon writes the queue in another goroutine. The caller holds mu.
func (o *output) flushSoon() {
	if !o.writing {
		// Ends when the queue is written or writing fails.
		go o.flush()
	}
}

// respond calls end, which ends the call, and sends r if end returns true. It does not wait for
// room: if too much waits, an error replaces r. gather means that other calls may be about to finish.
func (o *output) respond(r *jsonrpc.Response, gather bool, end func() (wanted bool)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	// The peer may reuse the ID once it has the response. A drain that waits for
	// the last call to end must find its response here.
	if !end() || o.err != nil {
		return
	}
	if err := o.tooMuch(int64(size(r))); err != nil {
		r = &jsonrpc.Response{ID: r.ID, Error: err}
	}
	o.line(size(r), true, func(dst []byte) []byte { return jsonrpc.AppendResponse(dst, r) })
	if o.gathering || o.writing {
		return
	}
	if o.holding && o.waiting < chunkSize/2 {
		o.held = true
		return
	}
	if gather {
		// Calls that finish now may join: one write then carries all their responses.
		o.gathering = true
		for waiting := 0; waiting < o.waiting && waiting < chunkSize; {
			waiting = o.waiting
			o.mu.Unlock()
			runtime.Gosched()
			o.mu.Lock()
		}
		o.gathering = false
	}
	o.send()
}

// refuse sends r from another goroutine, since the caller is the reader.
func (o *output) refuse(r *jsonrpc.Response) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.line(size(r), true, func(dst []byte) []byte { return jsonrpc.AppendResponse(dst, r) })
		o.flushSoon()
	}
}

// array sends the responses of a batch, whose bytes are reserved, and calls end.
func (o *output) array(parts [][]byte, reserved int64, end func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.owed -= reserved
	end()
	if len(parts) == 0 || o.err != nil {
		return
	}
	for i, part := range parts {
		between := ","
		if i == 0 {
			between = "["
		}
		o.put([]byte(between), true)
		oneLine(part)
		o.put(part, true)
	}
	o.put([]byte("]\n"), true)
	o.flushSoon()
}

// put queues text and may keep it. The caller holds mu.
func (o *output) put(text []byte, owed bool) {
	last := len(o.queue) - 1
	if last >= 0 && len(o.queue[last].lines)+len(text) <= chunkSize {
		o.queue[last].lines = append(o.queue[last].lines, text...)
	} else {
		o.queue = append(o.queue, chunk{lines: text})
		last++
	}
	o.count(&o.queue[last], len(text), owed)
}

// count counts bytes added to c. The caller holds mu.
func (o *output) count(c *chunk, added int, owed bool) {
	o.waiting += added
	o.sent.Add(int64(added))
	if owed {
		c.owed += int64(added)
		o.owed += int64(added)
	}
}

// reserve counts bytes of a response that is sent later with others. If there are too many, it
// returns an error that replaces the response.
func (o *output) reserve(bytes int64) *jsonrpc.Error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.tooMuch(bytes); err != nil {
		return err
	}
	o.owed += bytes
	return nil
}

// unreserve undoes reserve for a response that is not sent.
func (o *output) unreserve(bytes int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.owed -= bytes
}

// tooMuch returns an error that replaces a response of so many bytes if too much would wait, or
// else nil. The caller holds mu.
func (o *output) tooMuch(bytes int64) *jsonrpc.Error {
	if o.owed == 0 || o.owed+bytes <= o.maxUnsent || bytes < 1<<10 {
		return nil
	}
	return jsonrpc.Errorf(jsonrpc.CodeInternalError, "busy: responses of %d bytes wait to be read", o.owed)
}

// size returns the approximate length of r on the wire.
func size(r *jsonrpc.Response) int {
	const envelope = 64
	n := envelope + len(r.ID.String()) + len(r.Result)
	if r.Error != nil {
		n += len(r.Error.Message) + len(r.Error.Data)
	}
	return n
}

// hold keeps responses back for at most holdFor if the leader has more requests to run: one write then
// carries them all. now is the time on the leader's clock.
func (o *output) hold(more bool, now time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if more && !o.holding {
		o.heldSince = now
	}
	o.holding = more && now-o.heldSince < holdFor
}

// release sends responses that were held, from another goroutine. The caller holds mu.
func (o *output) release() {
	o.holding = false
	if o.held {
		o.flushSoon()
	}
}

// awaitReader waits until few enough bytes are owed to read more from the peer. It returns false if
// writing has failed. Unless hold is set, it releases the responses that were held.
func (o *output) awaitReader(hold bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !hold {
		o.release()
	}
	for o.owed > StopReadingAt && o.err == nil {
		_ = o.wait(context.Background())
	}
	return o.err == nil
}

// wasRead records that the peer has read the first so many bytes sent.
func (o *output) wasRead(sent int64) {
	for {
		read := o.read.Load()
		if read >= sent || o.read.CompareAndSwap(read, sent) {
			return
		}
	}
}

// request sends a request or a notification.
func (o *output) request(ctx context.Context, r *jsonrpc.Request) error {
	return o.add(ctx, len(r.Params), false, func(dst []byte) []byte { return jsonrpc.AppendRequest(dst, r) })
}

// ask sends a request of ours. Other requests that are sent at the same time may join it: one write
// then carries them all.
func (o *output) ask(ctx context.Context, r *jsonrpc.Request, alone bool) error {
	if alone {
		return o.request(ctx, r)
	}
	if err := o.add(ctx, len(r.Params), true, func(dst []byte) []byte { return jsonrpc.AppendRequest(dst, r) }); err != nil {
		return err
	}
	runtime.Gosched()
	o.mu.Lock()
	o.sendOwn()
	o.mu.Unlock()
	return nil
}

// offer queues n without waiting. If there is no room, it drops n and returns an error.
func (o *output) offer(n *jsonrpc.Request) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.err != nil:
		return transport.ErrClosed
	case o.waiting > StopReadingAt:
		return errors.New("duplex: dropped, since the peer does not read what waits for it")
	}
	o.line(len(n.Params), false, func(dst []byte) []byte { return jsonrpc.AppendRequest(dst, n) })
	o.flushSoon()
	return nil
}

// stream writes a response part by part. Other messages wait meanwhile, so quiet is called, and
// must end the response, if it produces nothing for the write timeout. done is called when
// everything but the end of the line is written.
func (o *output) stream(ctx context.Context, r *jsonrpc.Response, quiet func(time.Duration), done func()) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.writing && o.err == nil {
		if err := o.wait(ctx); err != nil {
			return err
		}
	}
	o.writing = true
	o.writeAll()
	if o.err == nil {
		o.mu.Unlock()
		w := streamWriter{out: o}
		w.watch(quiet)
		err := writeStream(&w, r)
		w.unwatch()
		done()
		o.mu.Lock()
		end := []byte{'\n'} // of the line that was streamed
		if w.err != nil {
			o.fail(w.err)
		} else if err != nil {
			end = []byte(givenUp + "\n") // the peer skips that line; another one has the error
			end = jsonrpc.AppendResponse(end, &jsonrpc.Response{ID: r.ID, Error: r.Broken(err)})
			end = append(end, '\n')
		}
		if o.err == nil {
			o.queue = append([]chunk{{lines: end}}, o.queue...)
			o.waiting += len(end)
		}
		o.writeAll()
	}
	o.writing = false
	o.signal()
	return nil
}

// A streamWriter writes the parts of one line. It keeps errors of the wire apart from errors of the
// stream.
type streamWriter struct {
	out   *output
	buf   []byte
	err   error
	timer *time.Timer // runs while nothing is written; nil without a timeout
}

func (w *streamWriter) watch(quiet func(time.Duration)) {
	if timeout := w.out.stall.limit; timeout > 0 {
		// Runs at most once; unwatch stops it.
		w.timer = time.AfterFunc(timeout, func() { quiet(timeout) })
	}
}

func (w *streamWriter) unwatch() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

func (w *streamWriter) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.timer != nil {
		w.timer.Stop()
		defer w.timer.Reset(w.out.stall.limit)
	}
	w.buf = append(w.buf[:0], p...)
	oneLine(w.buf)
	if err := w.out.write(w.buf); err != nil {
		w.err = err
		return 0, err
	}
	return len(p), nil
}

// drain waits until everything is written, writing fails, or limit fires.
func (o *output) drain(limit <-chan time.Time) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	// Ends with this function, or when limit fires.
	go func() {
		select {
		case <-limit:
			cancel()
		case <-ctx.Done():
		}
	}()
	o.drainUntil(ctx)
}

// drainUntil is like drain until ctx ends.
func (o *output) drainUntil(ctx context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil && (o.writing || len(o.queue) > 0) {
		o.flushSoon()
		if o.wait(ctx) != nil {
			return
		}
	}
}

// failure returns why writing failed, or nil.
func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// close refuses further messages.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fail(transport.ErrClosed)
}
