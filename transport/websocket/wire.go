package websocket

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/mcpkit/mcpkit-go/internal/conn"
)

var errNoSubprotocol = errors.New(`websocket: the server did not select the subprotocol "mcp"`)

// closeTimeout is how long the peer may take to respond to a close frame.
const closeTimeout = time.Second

// A wire carries one JSON message in each text message.
type wire struct {
	conn   *websocket.Conn
	origin conn.Origin
	most   int64

	timeout time.Duration // for reading a message after its first frame; not positive means no limit

	ctx  context.Context // of all reads and writes; its end closes the connection
	cut  context.CancelFunc
	done atomic.Bool // Close was called

	read    bufio.Reader   // reads messages, since each read from conn is expensive
	part    io.WriteCloser // the message that is written in parts; for Write alone
	writing atomic.Bool
	reading atomic.Bool
}

func newWire(conn *websocket.Conn, most int64, timeout time.Duration) *wire {
	w := &wire{conn: conn, most: most, timeout: timeout}
	w.ctx, w.cut = context.WithCancel(context.Background())
	conn.SetReadLimit(most)
	return w
}

// Origin returns the origin of the upgrade request, which all messages share.
func (w *wire) Origin() conn.Origin { return w.origin }

// Read returns the next message.
func (w *wire) Read() ([]byte, error) {
	w.reading.Store(true)
	defer w.reading.Store(false)
	kind, r, err := w.conn.Reader(w.ctx)
	if err != nil {
		return nil, w.ended(err)
	}
	if w.timeout > 0 {
		// Runs at most once.
		limit := time.AfterFunc(w.timeout, func() {
			_ = w.closeWith(websocket.StatusPolicyViolation, fmt.Sprintf("the message did not end within %v", w.timeout))
		})
		defer limit.Stop()
	}
	if kind != websocket.MessageText {
		_ = w.conn.Close(websocket.StatusUnsupportedData, "messages must be text")
		return nil, errors.New("the peer sent a binary message; JSON is text")
	}
	w.read.Reset(r)
	message, err := io.ReadAll(&w.read)
	if err != nil {
		return nil, w.ended(err)
	}
	if !utf8.Valid(message) { // RFC 6455, section 8.1
		_ = w.conn.Close(websocket.StatusInvalidFramePayloadData, "messages must be UTF-8")
		return nil, errors.New("the peer sent a message that is not UTF-8")
	}
	return message, nil
}

// ended translates an error of the connection. A peer that closed the connection, or whose
// connection broke, is gone.
func (w *wire) ended(err error) error {
	closed, isClosed := errors.AsType[websocket.CloseError](err)
	_, isNetwork := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, websocket.ErrMessageTooBig):
		err = fmt.Errorf("message is larger than %d bytes; raise Options.MaxMessageBytes", w.most)
	case isClosed && !slices.Contains(farewells, closed.Code):
		err = fmt.Errorf("the peer closed the connection with status %d: %.100q", closed.Code, closed.Reason)
	case isClosed, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), w.ctx.Err() != nil, w.done.Load():
		return io.ErrClosedPipe
	case !isNetwork && !errors.Is(err, net.ErrClosed):
		// A frame is invalid. In most cases the library has already sent this status.
		_ = w.closeWith(websocket.StatusProtocolError, "")
	}
	return err
}

// farewells are the statuses of peers that are just done.
var farewells = []websocket.StatusCode{websocket.StatusNormalClosure, websocket.StatusGoingAway, websocket.StatusNoStatusRcvd}

// Write sends each line as a message. A line without its end begins or continues a message.
func (w *wire) Write(lines []byte) (int, error) {
	w.writing.Store(true)
	defer w.writing.Store(false)
	for rest := lines; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte{'\n'})
		if err := w.write(line, ended); err != nil {
			return 0, w.ended(err)
		}
		rest = after
	}
	return len(lines), nil
}

func (w *wire) write(text []byte, ended bool) (err error) {
	if ended && w.part == nil {
		return w.conn.Write(w.ctx, websocket.MessageText, text)
	}
	if w.part == nil {
		if w.part, err = w.conn.Writer(w.ctx, websocket.MessageText); err != nil {
			return err
		}
	}
	if _, err := w.part.Write(text); err != nil || !ended {
		return err
	}
	part := w.part
	w.part = nil
	return part.Close()
}

// CloseRead does nothing: a WebSocket cannot close one direction alone.
func (w *wire) CloseRead() error { return nil }

// Close sends a close frame and waits up to closeTimeout for the response of the peer. It does not
// wait if a write is blocked.
func (w *wire) Close() error {
	if w.writing.Load() && !w.done.Load() {
		w.closeNow()
	}
	return w.closeWith(websocket.StatusNormalClosure, "")
}

// closeWith is Close with a status. It waits for a write that is running.
func (w *wire) closeWith(status websocket.StatusCode, reason string) error {
	if w.done.Swap(true) {
		return nil
	}
	timer := time.AfterFunc(closeTimeout, w.cut)
	defer timer.Stop()
	err := w.conn.Close(status, reason)
	w.cut()
	return err
}

// closeNow closes the connection without waiting.
func (w *wire) closeNow() {
	w.done.Store(true)
	w.cut()
	_ = w.conn.CloseNow()
}

// keepAlive pings the peer until the connection ends. It disconnects a peer that does not respond,
// unless the connection is being written, where the time limit of writes applies: a slow peer reads
// the ping late. Nor does a missing response count if nobody reads the connection.
func (w *wire) keepAlive(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-w.ctx.Done():
			return
		}
		if w.writing.Load() || w.answersPing(every) || w.writing.Load() || !w.reading.Load() {
			continue
		}
		if !w.done.Load() { // a ping also fails while Close waits for the peer
			w.closeNow()
		}
		return
	}
}

func (w *wire) answersPing(within time.Duration) bool {
	ctx, cancel := context.WithTimeout(w.ctx, within)
	defer cancel()
	return w.conn.Ping(ctx) == nil
}
