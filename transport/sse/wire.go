package sse

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/internal/sse"
)

// A posted message is the body of a POST and where it came from.
type posted struct {
	body   []byte
	origin conn.Origin
}

// A wire reads messages from POSTs and writes events to the stream.
type wire struct {
	in     chan posted
	closed context.Context // ends when the stream has ended
	shut   context.CancelFunc
	ended  context.Context // ends when no more messages are read
	end    context.CancelFunc
	origin conn.Origin // of the message that Read returned last

	timeout time.Duration
	flush   func() error
	rc      *http.ResponseController
	writing atomic.Bool

	mu     sync.Mutex          // held while the stream is written
	w      http.ResponseWriter // nil after the request has ended; guarded by mu
	part   bool                // an event is written in part; guarded by mu
	last   time.Time           // time of the last write; guarded by mu
	broken bool                // writing failed; guarded by mu
}

func newWire(w http.ResponseWriter, flush func() error, timeout time.Duration) *wire {
	x := &wire{in: make(chan posted), timeout: timeout, flush: flush, rc: http.NewResponseController(w), w: w}
	x.closed, x.shut = context.WithCancel(context.Background())
	x.ended, x.end = context.WithCancel(x.closed)
	return x
}

// open begins the stream with the endpoint event.
func (x *wire) open(endpoint string) error {
	// The read deadline of a server with a ReadTimeout would look like a disconnect.
	_ = x.rc.SetReadDeadline(time.Time{})
	x.mu.Lock()
	defer x.mu.Unlock()
	header := x.w.Header()
	header.Set("Content-Type", sse.ContentType)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no")
	x.w.WriteHeader(http.StatusOK)
	return x.put([]byte("event: endpoint\ndata: " + endpoint + "\n\n"))
}

// Read returns the next message.
func (x *wire) Read() ([]byte, error) {
	select {
	case m := <-x.in:
		x.origin = m.origin
		return m.body, nil
	case <-x.ended.Done():
		if x.closed.Err() != nil {
			return nil, io.ErrClosedPipe
		}
		return nil, io.EOF
	}
}

// Origin returns the origin of the message that Read returned last.
func (x *wire) Origin() conn.Origin { return x.origin }

// Write sends each line as an event.
func (x *wire) Write(lines []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var buf []byte
	for rest := lines; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte{'\n'})
		rest = after
		if !x.part {
			buf = sse.AppendHead(buf, "")
		}
		buf = append(buf, line...)
		if ended {
			buf = append(buf, "\n\n"...)
		}
		x.part = !ended
	}
	if err := x.put(buf); err != nil {
		return 0, err
	}
	return len(lines), nil
}

// put writes and flushes text. The caller holds mu.
func (x *wire) put(text []byte) error {
	if x.w == nil {
		return io.ErrClosedPipe
	}
	x.writing.Store(true)
	defer x.writing.Store(false)
	x.last = time.Now()
	var deadline time.Time
	if x.timeout >= 0 {
		deadline = x.last.Add(x.timeout + time.Second) // the link gives up a little earlier
	}
	_ = x.rc.SetWriteDeadline(deadline)
	if x.closed.Err() != nil {
		return io.ErrClosedPipe
	}
	_, err := x.w.Write(text)
	if err == nil {
		err = x.flush()
	}
	x.broken = x.broken || err != nil
	return err
}

// keepAlive sends comments while the stream is silent, until it ends.
func (x *wire) keepAlive(interval time.Duration) {
	tick := time.NewTicker(max(interval/2, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			x.comment(interval)
		case <-x.closed.Done():
			return
		}
	}
}

// comment sends a keep-alive comment, unless a write is running or ended within the last half of
// the interval.
func (x *wire) comment(interval time.Duration) {
	if !x.mu.TryLock() {
		return
	}
	defer x.mu.Unlock()
	if x.part || x.w == nil || time.Since(x.last) < interval/2 {
		return
	}
	if x.put([]byte(sse.KeepAlive)) != nil {
		_ = x.Close()
	}
}

// CloseRead refuses further messages.
func (x *wire) CloseRead() error {
	x.end()
	return nil
}

// Close ends both directions and a blocked write.
func (x *wire) Close() error {
	x.shut()
	if x.writing.Load() {
		_ = x.rc.SetWriteDeadline(time.Unix(1, 0))
	}
	return nil
}

// leave releases the response writer after the last write.
func (x *wire) leave() {
	x.shut()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.w = nil
	if !x.broken {
		_ = x.rc.SetWriteDeadline(time.Time{}) // the connection may carry other requests
	}
}
