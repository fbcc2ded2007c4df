package mcpkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// source reads what a method returned on its own goroutine: a Read that blocks delays neither the
// end of its call nor other calls on the connection. Only one goroutine at a time may ask it for
// blocks.
type source struct {
	call  *Call
	limit *timeLimit
	buf   []byte

	ask   chan []byte // to be filled
	got   chan block
	over  chan struct{} // closed by close
	close func()        // closes the reader; may be called often
	state atomic.Int32  // sourceIdle, sourceReads or sourceOverdue
}

const (
	sourceIdle int32 = iota
	sourceReads
	sourceOverdue // a Read has not returned although the source is closed
)

// A block is what was read: a part, or everything if last.
type block struct {
	n    int
	last bool
	err  error
}

// readError is an error of the reader or the call, not of the connection.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

const (
	// gathering is how long small reads are collected into one block.
	gathering = 100 * time.Millisecond
	// lastRead is how long a Read may take when the time is up. A faster reader is still sent to
	// its end.
	lastRead = time.Second
	// emptyReads is how often in a row a reader may return no bytes and no error.
	emptyReads = 100
)

func newSource(call *Call, r io.Reader) *source {
	s := &source{call: call, limit: &call.limit, ask: make(chan []byte), got: make(chan block, 1), over: make(chan struct{})}
	closer, _ := r.(io.Closer)
	s.close = sync.OnceFunc(func() {
		close(s.over)
		if closer != nil {
			s.closeReader(closer)
		}
		if s.state.Load() == sourceReads {
			time.AfterFunc(grace, s.leave)
		}
	})
	// Closing may end a Read that blocks. A response that is never sent is never read.
	context.AfterFunc(s.limit.parent, s.close)
	s.limit.onEnd(s.close)
	// Ends after close, when the current Read has returned.
	go s.serve(r)
	return s
}

// closeReader closes the reader. Its error does not matter for what was read; its panic is logged.
func (s *source) closeReader(c io.Closer) {
	defer func() {
		if v := recover(); v != nil {
			s.call.server.config.logger.ErrorContext(s.call.ctx, "mcpkit: closing a reader panicked",
				"ref", s.call.Ref(), "method", s.call.row.method, "uri", s.call.name, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
	}()
	_ = c.Close()
}

// leave counts and logs a Read that has not returned although the reader is closed.
func (s *source) leave() {
	if !s.state.CompareAndSwap(sourceReads, sourceOverdue) {
		return
	}
	n := s.call.overdue().begin()
	s.call.server.overdue.Add(1)
	s.call.server.config.logger.WarnContext(s.call.ctx, "mcpkit: a reader did not return although its call is over",
		"ref", s.call.Ref(), "method", s.call.row.method, "uri", s.call.name, "overdue", n)
}

// returned notes that a Read has returned.
func (s *source) returned() {
	if s.state.Swap(sourceIdle) == sourceOverdue {
		s.call.overdue().end()
		s.call.server.overdue.Add(-1)
	}
}

// serve reads until the reader ends.
func (s *source) serve(r io.Reader) {
	got := block{err: errEndedGoroutine}
	defer func() {
		if s.state.Load() != sourceIdle {
			s.returned()
			s.got <- got
		}
	}()
	for {
		select {
		case b := <-s.ask:
			s.state.Store(sourceReads)
			select {
			case <-s.over: // close did not see the Read
				got.err = context.Canceled
				return
			default:
			}
			read := fill(r, b)
			s.returned()
			s.got <- read
			if read.last || read.err != nil {
				return
			}
		case <-s.over:
			return
		}
	}
}

// errEndedGoroutine is the error of a Read that called runtime.Goexit, as testing.T.FailNow does.
var errEndedGoroutine = errors.New("the reader ended its goroutine")

// fill reads into b until it is full, the reader ends, or small reads were collected for long
// enough.
func fill(r io.Reader, b []byte) (got block) {
	defer recoverAs(&got.err)
	begun, empty := time.Now(), 0
	for got.n < len(b) {
		n, err := r.Read(b[got.n:])
		if n < 0 || n > len(b)-got.n {
			return block{err: fmt.Errorf("%T.Read returned the count %d for a buffer of %d bytes", r, n, len(b)-got.n)}
		}
		got.n += n
		switch {
		case err == io.EOF:
			got.last = true
			return got
		case err != nil:
			got.err = err
			return got
		case n > 0:
			empty = 0
		default:
			if empty++; empty == emptyReads {
				got.err = io.ErrNoProgress
				return got
			}
		}
		if got.n > 0 && time.Since(begun) >= gathering {
			return got
		}
	}
	return got
}

// begin reads the first block and reports whether it is everything. The error is that of the
// reader, or of ctx.
func (s *source) begin(ctx context.Context) (first []byte, whole bool, err error) {
	size := 4 << 10 // most are small
	s.buf = make([]byte, size)
	n := 0
	for n < firstBlock {
		if n == len(s.buf) {
			grown := make([]byte, min(4*len(s.buf), firstBlock))
			copy(grown, s.buf)
			s.buf = grown
		}
		select {
		case s.ask <- s.buf[n:]:
		case <-s.over:
			return nil, false, s.ended()
		}
		select {
		case got := <-s.got:
			n += got.n
			if got.err != nil || got.last {
				return s.buf[:n], got.last, got.err
			}
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
	return s.buf[:n], false, nil
}

// next reads another block and puts it after kept, the rest of the last one. The error is a
// *readError.
func (s *source) next(kept []byte) (b []byte, last bool, err error) {
	n := copy(s.buf, kept)
	select {
	case s.ask <- s.buf[n:]:
	case <-s.over:
		return nil, false, &readError{s.ended()}
	}
	gone, late := s.limit.parent.Done(), s.limit.Done()
	var enough <-chan time.Time
	for {
		select {
		case got := <-s.got:
			if got.err != nil {
				return nil, false, &readError{got.err}
			}
			return s.buf[:n+got.n], got.last, nil
		case <-gone:
			return nil, false, &readError{s.ended()}
		case <-late:
			late = nil
			enough = time.After(lastRead)
		case <-enough:
			return nil, false, &readError{s.limit.late()}
		}
	}
}

// ended returns why the call's context ended.
func (s *source) ended() error {
	if cause := context.Cause(s.limit.parent); errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return context.Canceled
}
