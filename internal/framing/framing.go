// Package framing separates messages in byte streams: by lines, as in MCP, or by header fields, as
// in the Language Server Protocol. Servers and clients share it.
package framing

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/duplex"
)

// A Framing is the way messages are separated.
type Framing int

// Framings.
const (
	Lines         Framing = iota // one message a line
	ContentLength                // header fields before each message (LSP base protocol, header part)
	Any                          // the first byte from the peer decides, for both directions; until then, lines are written
)

// Options configures a [Wire].
type Options struct {
	Framing         Framing
	MaxMessageBytes int    // must be positive
	Raise           string // the name of the caller's option for MaxMessageBytes, for errors

	// Borrowed keeps the streams open when the wire is closed.
	Borrowed bool
	// WriteTimeout limits one Write if the stream has deadlines. Zero means no limit.
	WriteTimeout time.Duration
}

// New returns a wire that reads from r and writes to w, which may be the same.
func New(r io.Reader, w io.Writer, o Options) *Wire {
	wire := &Wire{in: r, out: w, lines: reader{r: r, most: o.MaxMessageBytes, raise: o.Raise}, to: w, o: o}
	if o.Framing != Lines {
		h := &headers{in: bufio.NewReader(r), out: w}
		h.framing.Store(int32(o.Framing))
		wire.lines.r, wire.to = h, h
	}
	return wire
}

// A Wire is a [duplex.Wire] on byte streams.
type Wire struct {
	in    io.Reader
	out   io.Writer
	lines reader
	to    io.Writer // out, or what adds headers
	o     Options
}

// room is the least that an operating system buffers for a pipe or socket: one page.
const room = 4 << 10

// Room implements [duplex.RoomyWire].
func (w *Wire) Room() int64 {
	if _, ok := w.out.(syscall.Conn); ok {
		return room
	}
	return 0 // it may be a net.Pipe
}

// CloseRead makes a waiting Read return. If the input has no deadlines, it closes the input.
func (w *Wire) CloseRead() error {
	if d, ok := w.in.(interface{ SetReadDeadline(time.Time) error }); ok {
		if err := d.SetReadDeadline(time.Unix(1, 0)); err == nil {
			return nil
		}
	}
	return w.closeOwn(w.in)
}

// Close closes the streams that are io.Closers. A stream that is already closed is not an error.
func (w *Wire) Close() error {
	return errors.Join(w.closeOwn(w.in), w.closeOwn(w.out))
}

func (w *Wire) closeOwn(stream any) error {
	c, ok := stream.(io.Closer)
	if !ok || w.o.Borrowed {
		return nil
	}
	if err := c.Close(); !errors.Is(err, os.ErrClosed) && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Read returns the next message.
func (w *Wire) Read() ([]byte, error) { return w.lines.next() }

// Buffered reports whether the buffer holds a whole message.
func (w *Wire) Buffered() bool { return w.lines.buffered() }

// Write writes lines in the selected framing.
func (w *Wire) Write(lines []byte) (int, error) {
	if d, ok := w.out.(interface{ SetWriteDeadline(time.Time) error }); ok && w.o.WriteTimeout > 0 {
		_ = d.SetWriteDeadline(time.Now().Add(w.o.WriteTimeout)) // without deadlines, a write may block
	}
	return w.to.Write(lines)
}

var _ duplex.RoomyWire = (*Wire)(nil)
