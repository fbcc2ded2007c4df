package conn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// chunkSize is the most that one write sends, so that a slow peer can be distinguished from one
// that does not read.
const chunkSize = 64 << 10

// A StalledError is returned if the connection was closed because the peer did not read for
// Timeout.
type StalledError struct{ Timeout time.Duration }

// Error names the timeout.
func (e *StalledError) Error() string {
	return fmt.Sprintf("closed, since the peer read nothing for %v", e.Timeout)
}

// An output collects messages for the wire. While there are any, one goroutine writes them; what is
// added meanwhile goes out with its next write.
//
// Responses never wait for room, so a finished call holds nothing but its bytes here. These are owed
// until they are written. While too many bytes are owed, nothing is read from the peer. Bytes of
// results that are still collected are reserved, which stops nothing: the peer may cancel their calls.
// Other messages wait for room before they are added.
type output struct {
	wire         Wire
	failed       chan struct{} // closed when the wire failed, or by close
	writeTimeout time.Duration // not positive: none
	maxUnsent    int64         // of owed and reserved together

	mu       sync.Mutex
	lines    []byte        // whole lines to write; guarded by mu
	unpaid   int64         // bytes of lines that are responses; guarded by mu
	owed     int64         // bytes of responses that are not written; guarded by mu
	reserved int64         // bytes of responses that are not added yet; guarded by mu
	unsent   int           // bytes that are not written; guarded by mu
	spare    []byte        // for the next lines; guarded by mu
	writing  bool          // a goroutine writes; guarded by mu
	err      error         // why writing failed; guarded by mu
	changed  chan struct{} // closed when there is more room, or nothing left to write; nil if nobody waits; guarded by mu
}

func (o *output) start(w Wire, opts *Options) {
	o.wire, o.maxUnsent, o.writeTimeout = w, opts.MaxUnsentBytes, opts.WriteTimeout
	o.failed = make(chan struct{})
}

// gone reports whether err means that the peer has disconnected, which is not a failure.
func gone(err error) bool {
	return err == nil || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, transport.ErrClosed)
}

// add adds the line that write appends, and sees to it that it is written. The caller holds mu, and
// err is nil.
func (o *output) add(owed bool, write func([]byte) []byte) {
	start := len(o.lines)
	o.lines = append(oneLine(write(o.lines), start), '\n')
	added := len(o.lines) - start
	o.unsent += added
	if owed {
		o.unpaid += int64(added)
		o.owed += int64(added)
	}
	if !o.writing {
		o.writing = true
		// Ends when everything is written, or writing fails.
		go o.write()
	}
}

// oneLine replaces the line breaks from start by spaces. In JSON they can only be white space. They
// occur in results from a user's json.RawMessage.
func oneLine(message []byte, start int) []byte {
	if rest := message[start:]; bytes.IndexByte(rest, '\n') >= 0 || bytes.IndexByte(rest, '\r') >= 0 {
		for i, b := range rest {
			if b == '\n' || b == '\r' {
				rest[i] = ' '
			}
		}
	}
	return message
}

// write writes all lines.
func (o *output) write() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.lines) > 0 && o.err == nil {
		lines, unpaid := o.lines, o.unpaid
		o.lines, o.unpaid, o.spare = o.spare[:0], 0, nil
		o.mu.Unlock()
		err := o.writeLines(lines)
		o.mu.Lock()
		o.unsent -= len(lines)
		o.owed -= unpaid
		if cap(lines) <= 2*chunkSize {
			o.spare = lines
		}
		if err != nil {
			o.fail(err)
		}
		o.signal()
	}
	o.writing = false
	o.signal()
}

// writeLines writes lines in parts. A part that takes longer than the timeout closes the connection.
func (o *output) writeLines(lines []byte) error {
	for len(lines) > 0 {
		part := lines[:min(len(lines), chunkSize)]
		if err := o.writePart(part); err != nil {
			return err
		}
		lines = lines[len(part):]
	}
	return nil
}

func (o *output) writePart(part []byte) error {
	if o.writeTimeout > 0 {
		defer time.AfterFunc(o.writeTimeout, o.stalled).Stop()
	}
	_, err := o.wire.Write(part)
	return err
}

// stalled closes the connection, so that goroutines that wait for room or for a Write continue.
func (o *output) stalled() {
	o.mu.Lock()
	o.fail(&StalledError{o.writeTimeout})
	o.mu.Unlock()
	_ = o.wire.Close()
}

// fail ends all output. The caller holds mu.
func (o *output) fail(err error) {
	if o.err != nil {
		return
	}
	o.err, o.lines, o.spare = err, nil, nil
	close(o.failed)
	o.signal()
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

// request adds a request or a notification. It waits for room until ctx ends.
func (o *output) request(ctx context.Context, r *jsonrpc.Request) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.unsent > StopReadingAt && o.err == nil {
		if err := o.wait(ctx); err != nil {
			return err
		}
	}
	if o.err != nil {
		return transport.ErrClosed
	}
	o.add(false, func(dst []byte) []byte { return jsonrpc.AppendRequest(dst, r) })
	return nil
}

// offer is like request but does not wait: if there is no room, it drops n and returns an error.
func (o *output) offer(n *jsonrpc.Request) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.err != nil:
		return transport.ErrClosed
	case o.unsent > StopReadingAt:
		return errors.New("conn: dropped, since the peer does not read what waits for it")
	}
	o.add(false, func(dst []byte) []byte { return jsonrpc.AppendRequest(dst, n) })
	return nil
}

// respond calls end, which ends the call, and adds r if end returns true. It does not wait for room:
// if too much waits, an error replaces r. So many bytes of r are reserved.
func (o *output) respond(r *jsonrpc.Response, reserved int64, end func() (wanted bool)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reserved -= reserved
	// The peer may reuse the ID once it has the response. A drain that waits for
	// the last call to end must find its response here.
	if !end() || o.err != nil {
		return
	}
	if err := o.tooMuch(size(r)); err != nil {
		r = &jsonrpc.Response{ID: r.ID, Error: err}
	}
	o.add(true, func(dst []byte) []byte { return jsonrpc.AppendResponse(dst, r) })
}

// refuse adds the error response r.
func (o *output) refuse(r *jsonrpc.Response) {
	o.respond(r, 0, func() bool { return true })
}

// array adds the responses of a batch, whose bytes are reserved, and calls end.
func (o *output) array(parts [][]byte, reserved int64, end func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reserved -= reserved
	end()
	if len(parts) == 0 || o.err != nil {
		return
	}
	o.add(true, func(dst []byte) []byte {
		dst = append(dst, '[')
		dst = append(dst, bytes.Join(parts, []byte{','})...)
		return append(dst, ']')
	})
}

// reserve counts bytes of a response that is sent later. If there are too many, it returns an error
// that replaces the response.
func (o *output) reserve(bytes int64) *jsonrpc.Error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.tooMuch(bytes); err != nil {
		return err
	}
	o.reserved += bytes
	return nil
}

// unreserve undoes reserve.
func (o *output) unreserve(bytes int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reserved -= bytes
}

// tooMuch returns an error that replaces a response of so many bytes if too much would wait, or
// else nil. The caller holds mu.
func (o *output) tooMuch(bytes int64) *jsonrpc.Error {
	waiting := o.owed + o.reserved
	if waiting == 0 || waiting+bytes <= o.maxUnsent || bytes < 1<<10 {
		return nil
	}
	return jsonrpc.Errorf(jsonrpc.CodeInternalError, "busy: responses of %d bytes wait to be read", waiting)
}

// size returns the approximate length of r on the wire.
func size(r *jsonrpc.Response) int64 {
	const envelope = 64
	n := envelope + len(r.ID.String()) + len(r.Result)
	if r.Error != nil {
		n += len(r.Error.Message) + len(r.Error.Data)
	}
	return int64(n)
}

// awaitReader waits until few enough bytes are owed to read more from the peer. It returns false if
// writing has failed.
func (o *output) awaitReader() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.owed > StopReadingAt && o.err == nil {
		_ = o.wait(context.Background())
	}
	return o.err == nil
}

// drain waits until everything is written, writing fails, or ctx ends.
func (o *output) drain(ctx context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil && o.writing {
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
