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
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// chunkSize is how much is written at a time, so that a peer that reads slowly is told from one that
// does not read. Messages are gathered in chunks of about that size.
const chunkSize = 64 << 10

// output gathers messages for the wire. Whoever adds one to an output that nobody writes, writes it, and whatever others
// add meanwhile; so a single message costs one write and no other goroutine, and many cost
// few writes. No lock is held while the wire writes.
//
// Responses never wait for room, so that a finished call holds nothing but its place in the queue.
// They are owed until they are written; while too much is owed, nothing more is read.
type output struct {
	wire      Wire
	failed    chan struct{} // closed when the wire failed, or by close
	stall     stall
	room      int64        // see fits
	maxUnsent int64        // of owed
	sent      atomic.Int64 // bytes that were added so far; written with mu held
	read      atomic.Int64 // how many of them the peer is known to have read
	more      atomic.Bool  // the next message of the peer is there already

	mu        sync.Mutex
	queue     []chunk       // whole lines that wait, the oldest first; guarded by mu
	waiting   int           // bytes of the queue; guarded by mu
	owed      int64         // bytes of responses that are not written; guarded by mu
	spare     []byte        // for the next chunk; guarded by mu
	writing   bool          // one goroutine writes; guarded by mu
	gathering bool          // one goroutine is about to write; guarded by mu
	err       error         // why nothing can be written any more; guarded by mu
	changed   chan struct{} // closed when room was made or the writer is done; nil when nobody waits; guarded by mu
}

// A chunk is some lines.
type chunk struct {
	lines []byte
	owed  int64 // bytes of them that are responses
}

// everything is room for whatever there is to write.
const everything = math.MaxInt64

func (o *output) start(w Wire, opts *Options, room int64) {
	o.wire, o.room, o.maxUnsent = w, room, opts.MaxUnsentBytes
	o.stall.start(opts.WriteTimeout, o.stalled)
	o.failed = make(chan struct{})
}

// gone reports whether err says that the peer is not there any more, which is no failure of ours.
func gone(err error) bool {
	return err == nil || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, transport.ErrClosed)
}

// add appends a line with the message that write appends, and sends it unless it may wait for another that
// is sure to come. It waits for room until ctx ends.
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

// line appends one line of about so many bytes. The caller holds mu.
func (o *output) line(size int, owed bool, write func([]byte) []byte) {
	last := len(o.queue) - 1
	if last < 0 || len(o.queue[last].lines)+size > chunkSize {
		lines := o.spare
		o.spare = nil
		if cap(lines) < size {
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

// oneLine replaces line breaks, which in JSON can only be white space, by spaces. Results of handlers may hold
// them, where they were made from a user's json.RawMessage.
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

// wait unlocks mu until something changed or ctx ended.
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

// signal wakes who waits. The caller holds mu.
func (o *output) signal() {
	if o.changed != nil {
		close(o.changed)
		o.changed = nil
	}
}

// send writes what waits, unless another goroutine does. The caller holds mu.
func (o *output) send() {
	if o.writing {
		return
	}
	o.writing = true
	o.writeAll()
	o.writing = false
	o.signal()
}

// sendOwn is send for who has a context, whose end has to count: what may have to wait for the peer is written by another goroutine. The
// caller holds mu.
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

// fits reports whether the wire takes what waits even if the peer reads nothing of it. The caller holds mu.
func (o *output) fits() bool { return o.sent.Load()-o.read.Load() <= o.room }

// writeAll writes until nothing waits. The caller holds mu and has set writing.
func (o *output) writeAll() { o.writeWhile(func() bool { return true }) }

// writeWhile writes as long as something waits and may be written. The caller holds mu and has set writing.
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

// flush sends what waits.
func (o *output) flush() {
	o.mu.Lock()
	o.send()
	o.mu.Unlock()
}

// flushSoon has another goroutine send what waits. The caller holds mu.
func (o *output) flushSoon() {
	if !o.writing {
		// Ends when all that waits is written or the wire failed.
		go o.flush()
	}
}

// respond sends r, unless end, which ends the call, says that it is not wanted. It does not wait for
// room: where too much waits already, an error takes the place of r.
// Alone says that no other call is in flight.
func (o *output) respond(r *jsonrpc.Response, alone bool, end func() (wanted bool)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	// The peer may use the ID again as soon as it has the response. A drain that waits for
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
	if !alone || o.more.Load() {
		// Calls that are about to be done may join: one write then carries all their responses.
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

// refuse sends r from another goroutine: the caller reads.
func (o *output) refuse(r *jsonrpc.Response) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.line(size(r), true, func(dst []byte) []byte { return jsonrpc.AppendResponse(dst, r) })
		o.flushSoon()
	}
}

// array sends the responses of a batch, for which so many bytes are reserved, and calls end.
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

// put queues text, which it may keep. The caller holds mu.
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

// count counts bytes that were added to c. The caller holds mu.
func (o *output) count(c *chunk, added int, owed bool) {
	o.waiting += added
	o.sent.Add(int64(added))
	if owed {
		c.owed += int64(added)
		o.owed += int64(added)
	}
}

// reserve counts bytes of a response that is to be sent with others, unless there are too many: then it returns an error for its
// place.
func (o *output) reserve(bytes int64) *jsonrpc.Error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.tooMuch(bytes); err != nil {
		return err
	}
	o.owed += bytes
	return nil
}

// unreserve takes back what was reserved for a response that is not sent.
func (o *output) unreserve(bytes int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.owed -= bytes
}

// tooMuch is the error that takes the place of a response that would make too much wait. The caller holds mu.
func (o *output) tooMuch(bytes int64) *jsonrpc.Error {
	if o.owed == 0 || o.owed+bytes <= o.maxUnsent || bytes < 1<<10 {
		return nil
	}
	return jsonrpc.Errorf(jsonrpc.CodeInternalError, "busy: responses of %d bytes wait to be read", o.owed)
}

// size is about how many bytes r has on the wire.
func size(r *jsonrpc.Response) int {
	const envelope = 64
	n := envelope + len(r.ID.String()) + len(r.Result)
	if r.Error != nil {
		n += len(r.Error.Message) + len(r.Error.Data)
	}
	return n
}

// awaitReader waits until so little is owed to the peer that more may be read from it. It reports
// false when nothing can be written any more.
func (o *output) awaitReader() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.owed > StopReadingAt && o.err == nil {
		_ = o.wait(context.Background())
	}
	return o.err == nil
}

// wasRead notes that the peer has read what had been sent when sent was so much.
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

// ask sends a request. Where others are under way as well, those about to be sent may join it: one write then carries them all.
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

// offer queues n and never waits: where there is no room, the error says that n was dropped.
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

// stream writes a response part by part. Meanwhile other messages wait: so quiet is called when the response gives nothing for as long as
// the peer may read nothing, and has to end it. Done is called when all but the end of the line was written.
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
			end = []byte(givenUp + "\n") // the peer skips that line, and hears in another that there is no result
			if d, ok := o.wire.(DroppingWire); ok && d.Drop() {
				end = nil
			}
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

// streamWriter passes the parts of one line on. It remembers the wire's error, which is not the stream's.
type streamWriter struct {
	out   *output
	buf   []byte
	err   error
	timer *time.Timer // runs while nothing is written; nil for none
}

func (w *streamWriter) watch(quiet func(time.Duration)) {
	if timeout := w.out.stall.timeout; timeout > 0 {
		// Runs once at most; unwatch stops it.
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
		defer w.timer.Reset(w.out.stall.timeout)
	}
	w.buf = append(w.buf[:0], p...)
	oneLine(w.buf)
	if err := w.out.write(w.buf); err != nil {
		w.err = err
		return 0, err
	}
	return len(p), nil
}

// drain waits until everything is written, the wire failed, or the time is over.
func (o *output) drain(limit <-chan time.Time) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	// Ends with this function, or when the limit does.
	go func() {
		select {
		case <-limit:
			cancel()
		case <-ctx.Done():
		}
	}()
	o.drainUntil(ctx)
}

// drainUntil is drain with a context for a limit.
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

// failure is why nothing can be written any more; nil while it can.
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
