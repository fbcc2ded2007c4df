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

const (
	// fullAt is how many bytes may wait for the wire before who adds more has to wait.
	fullAt = 1 << 20
	// keptAt is how large a buffer may be for being kept.
	keptAt = 64 << 10
)

// output gathers messages for the wire. Whoever adds one to an output that nobody writes, writes it, and whatever others
// add meanwhile; so a single message costs one write and no other goroutine, and many cost
// few writes. No lock is held while the wire writes.
type output struct {
	wire   Wire
	failed chan struct{} // closed when the wire failed, or by close
	stall  stall
	room   int64        // see fits
	sent   atomic.Int64 // bytes that were added so far; written with mu held
	read   atomic.Int64 // how many of them the peer is known to have read

	mu      sync.Mutex
	buf     []byte        // whole lines that wait; guarded by mu
	spare   []byte        // the buffer for the next lines; guarded by mu
	writing bool          // one goroutine writes; guarded by mu
	err     error         // why nothing can be written any more; guarded by mu
	changed chan struct{} // closed when room was made or the writer is done; nil when nobody waits; guarded by mu
}

// everything is room for whatever there is to write.
const everything = math.MaxInt64

func (o *output) start(w Wire, timeout time.Duration, room int64) {
	o.wire, o.room = w, room
	o.stall.start(timeout, o.stalled)
	o.failed = make(chan struct{})
}

// gone reports whether err says that the peer is not there any more, which is no failure of ours.
func gone(err error) bool {
	return err == nil || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, transport.ErrClosed)
}

// add appends a line with the message that write appends, and sends it unless it may wait for the flush that
// is sure to come. It waits for room until ctx ends.
func (o *output) add(ctx context.Context, later bool, write func([]byte) []byte) error {
	o.mu.Lock()
	for len(o.buf) > fullAt && o.err == nil {
		if err := o.wait(ctx); err != nil {
			o.mu.Unlock()
			return err
		}
	}
	if o.err != nil {
		o.mu.Unlock()
		return transport.ErrClosed
	}
	o.line(write)
	if later && len(o.buf) < keptAt/2 {
		o.mu.Unlock()
		return nil
	}
	o.sendOwn()
	o.mu.Unlock()
	return nil
}

// line appends one line. The caller holds mu.
func (o *output) line(write func([]byte) []byte) {
	start := len(o.buf)
	o.buf = write(o.buf)
	oneLine(o.buf[start:])
	o.buf = append(o.buf, '\n')
	o.sent.Add(int64(len(o.buf) - start))
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
	if len(o.buf) > 0 {
		// Ends when all that waits is written or the wire failed.
		go o.flush()
	}
}

// fits reports whether the wire takes what waits even if the peer reads nothing of it. The caller holds mu.
func (o *output) fits() bool { return o.sent.Load()-o.read.Load() <= o.room }

// writeAll writes until nothing waits. The caller holds mu and has set writing.
func (o *output) writeAll() { o.writeWhile(func() bool { return true }) }

// writeWhile writes as long as something waits and may be written. The caller holds mu and has set writing.
func (o *output) writeWhile(may func() bool) {
	for len(o.buf) > 0 && o.err == nil && may() {
		lines := o.buf
		o.buf, o.spare = o.spare[:0], nil
		o.mu.Unlock()
		err := o.write(lines)
		o.mu.Lock()
		if cap(lines) <= keptAt {
			o.spare = lines[:0]
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
	o.err, o.buf, o.spare = err, nil, nil
	close(o.failed)
	o.stall.stop()
	o.signal()
}

// flush sends what add kept for later.
func (o *output) flush() {
	o.mu.Lock()
	o.send()
	o.mu.Unlock()
}

// response sends r to the request id.
func (o *output) response(ctx context.Context, later bool, id jsonrpc.ID, r *jsonrpc.Response) error {
	out := *r
	out.ID = id
	return o.add(ctx, later, func(dst []byte) []byte { return jsonrpc.AppendResponse(dst, &out) })
}

// request sends a request or a notification.
func (o *output) request(ctx context.Context, r *jsonrpc.Request) error {
	return o.add(ctx, false, func(dst []byte) []byte { return jsonrpc.AppendRequest(dst, r) })
}

// ask sends a request. Where others are under way as well, those about to be sent may join it: one write then carries them all.
func (o *output) ask(ctx context.Context, r *jsonrpc.Request, alone bool) error {
	if alone {
		return o.request(ctx, r)
	}
	if err := o.add(ctx, true, func(dst []byte) []byte { return jsonrpc.AppendRequest(dst, r) }); err != nil {
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
	case len(o.buf) > fullAt:
		return errors.New("duplex: dropped, since the peer does not read what waits for it")
	}
	o.line(func(dst []byte) []byte { return jsonrpc.AppendRequest(dst, n) })
	if !o.writing {
		// Ends when all that waits is written or the wire failed.
		go o.flush()
	}
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
		waiting := o.buf
		o.buf = []byte{'\n'} // the end of the line that was streamed
		if w.err != nil {
			o.fail(w.err)
		} else if err != nil {
			if d, ok := o.wire.(DroppingWire); ok && d.Drop() {
				o.buf = o.buf[:0]
			}
			// The line is broken: the peer skips it, and hears in another that there is no result.
			o.line(func(dst []byte) []byte {
				return jsonrpc.AppendResponse(dst, &jsonrpc.Response{ID: r.ID, Error: r.Broken(err)})
			})
		}
		if o.err == nil {
			o.buf = append(o.buf, waiting...)
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
	for o.err == nil && (o.writing || len(o.buf) > 0) {
		if !o.writing {
			// Ends when all that waits is written or the wire failed.
			go o.flush()
		}
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
