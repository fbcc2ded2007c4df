package conn

import (
	"context"
	"errors"
	"fmt"
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

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// chunkSize is the most that one write sends, so that a slow peer can be distinguished from one
// that does not read.
const chunkSize = 64 << 10

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
	writeTimeout time.Duration
	maxUnsent    int64        // of owed and reserved together
	used         atomic.Int64 // when a message was read or added, as nanoseconds since 1970

	mu       sync.Mutex
	lines    []byte        // whole lines to write; guarded by mu
	owed     int64         // bytes of responses that are not written; guarded by mu
	reserved int64         // bytes of responses that are not added yet; guarded by mu
	unsent   int           // bytes that are not written; guarded by mu
	share    Share         // of the memory of all connections, for unsent and what calls have; guarded by mu
	writing  bool          // a goroutine writes; guarded by mu
	err      error         // why writing failed; guarded by mu
	changed  chan struct{} // closed when there is more room, or nothing left to write; nil if nobody waits; guarded by mu
}

func (o *output) start(w Wire, opts *Options) {
	o.wire, o.maxUnsent, o.writeTimeout = w, opts.MaxUnsentBytes, opts.WriteTimeout
	if o.writeTimeout < 0 {
		o.writeTimeout = math.MaxInt64
	}
	o.share = Share{All: opts.Memory, Free: chunkSize}
	o.failed = make(chan struct{})
	o.touch()
}

// touch remembers that a message was read or added.
func (o *output) touch() { o.used.Store(time.Now().UnixNano()) }

// gone reports whether err means that the peer has disconnected, which is not a failure.
func gone(err error) bool {
	return err == nil || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, transport.ErrClosed)
}

// add adds a message, and sees to it that it is written. The caller holds mu, and err is nil.
func (o *output) add(message []byte, owed bool) {
	o.touch()
	o.lines = append(append(o.lines, oneLine(message)...), '\n')
	added := len(message) + 1
	o.unsent += added
	o.share.Add(int64(added))
	if owed {
		o.owed += int64(added)
	}
	if !o.writing {
		o.writing = true
		// Ends when everything is written, or writing fails.
		go o.write()
	}
}

// oneLine replaces line breaks by spaces, in place. In JSON they can only be white space. They occur in
// results from a user's json.RawMessage.
func oneLine(message []byte) []byte {
	for i, c := range message {
		if c == '\n' || c == '\r' {
			message[i] = ' '
		}
	}
	return message
}

// write writes all lines.
func (o *output) write() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.lines) > 0 && o.err == nil {
		o.mu.Unlock()
		runtime.Gosched() // calls that are about to end add their responses to the same write
		o.mu.Lock()
		lines, owed := o.lines, o.owed
		o.lines = nil
		o.mu.Unlock()
		err := o.writeLines(lines)
		o.mu.Lock()
		o.unsent -= len(lines)
		o.share.Add(-int64(len(lines)))
		o.owed -= owed
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
	timer := time.AfterFunc(o.writeTimeout, o.stalled)
	defer timer.Stop()
	for part := range slices.Chunk(lines, chunkSize) {
		timer.Reset(o.writeTimeout)
		if _, err := o.wire.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// stalled closes the connection, so that goroutines that wait for room or for a Write continue.
func (o *output) stalled() {
	o.close(fmt.Errorf("closed, since the peer read nothing for %v", o.writeTimeout))
	_ = o.wire.Close()
}

// fail ends all output. The caller holds mu.
func (o *output) fail(err error) {
	if o.err != nil {
		return
	}
	o.share.Add(-int64(len(o.lines)))
	o.err, o.lines = err, nil
	close(o.failed)
	o.signal()
}

// await waits, with mu unlocked meanwhile, until done returns true, writing fails, or ctx ends.
func (o *output) await(ctx context.Context, done func() bool) error {
	for o.err == nil && !done() {
		if o.changed == nil {
			o.changed = make(chan struct{})
		}
		changed := o.changed
		o.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		o.mu.Lock()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// signal wakes the goroutines in await. The caller holds mu.
func (o *output) signal() {
	if o.changed != nil {
		close(o.changed)
		o.changed = nil
	}
}

// enough is how many bytes may wait before senders wait and nothing more is read.
func (o *output) enough() int {
	if o.share.All.full() {
		return chunkSize
	}
	return StopReadingAt
}

// request adds a request or a notification. It waits for room until ctx ends.
func (o *output) request(ctx context.Context, r *jsonrpc.Request) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.await(ctx, func() bool { return o.unsent <= o.enough() }); err != nil {
		return err
	}
	if o.err != nil {
		return transport.ErrClosed
	}
	o.add(jsonrpc.AppendRequest(nil, r), false)
	return nil
}

// offer is like request but does not wait: if there is no room, it drops n and returns an error.
func (o *output) offer(n *jsonrpc.Request) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.err != nil:
		return transport.ErrClosed
	case o.unsent > o.enough():
		return errors.New("conn: dropped, since the peer does not read what waits for it")
	}
	o.add(jsonrpc.AppendRequest(nil, n), false)
	return nil
}

// send ends calls, gives back what is reserved for them, and adds their response. It adds nothing if
// that is nil, or the peer has cancelled the call. It does not wait.
func (o *output) send(message []byte, calls ...*call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, k := range calls {
		o.reserved -= k.room
		o.share.Add(-k.memory)
		// The peer may reuse the ID once it has the response. A drain that waits for
		// the last call to end must find its response here.
		if !k.entry.End() && k.batch == nil {
			message = nil
		}
	}
	if message != nil && o.err == nil {
		o.add(message, true)
	}
}

// reserve makes room what is reserved for the response of k, and memory, or more, what k has of the
// memory of all connections beside its request; a single response may be larger than the limit. If
// too much would wait, it returns an error that replaces the response.
func (o *output) reserve(k *call, room, memory int64) *jsonrpc.Error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if others := o.owed + o.reserved - k.room; room > k.room && others > 0 && others+room > o.maxUnsent {
		return jsonrpc.Errorf(jsonrpc.CodeInternalError, "busy: responses of %d bytes wait to be read", others)
	}
	memory = k.entry.bytes + max(memory, 2*room) // a result is in memory twice while it is encoded
	if !o.share.Take(memory - k.memory) {
		return ErrNoRoom
	}
	o.reserved += room - k.room
	k.room, k.memory = room, memory
	return nil
}

// awaitReader waits until few enough bytes are owed to read more from the peer. It returns false if
// writing has failed.
func (o *output) awaitReader() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = o.await(context.Background(), func() bool { return o.owed <= int64(o.enough()) })
	return o.err == nil
}

// drain waits until everything is written, writing fails, or ctx ends.
func (o *output) drain(ctx context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = o.await(ctx, func() bool { return !o.writing })
}

// failure returns why writing failed, or nil.
func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// close refuses further messages, unless writing has failed already.
func (o *output) close(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fail(err)
}
