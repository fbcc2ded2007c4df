package conn

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// A Framing is the way messages are separated in a byte stream: by lines, as in MCP, or by header
// fields, as in the Language Server Protocol.
type Framing int

// Framings.
const (
	Lines         Framing = iota // one message a line
	ContentLength                // header fields before each message (LSP base protocol, header part)
	AnyFraming                   // the first byte from the peer decides, for both directions; until then, lines are written
)

// StreamOptions configures a [Stream].
type StreamOptions struct {
	Framing         Framing
	MaxMessageBytes int    // must be positive
	Raise           string // the name of the caller's option for MaxMessageBytes, for errors

	// Borrowed keeps the streams open when the wire is closed.
	Borrowed bool
	// WriteTimeout limits one Write if the stream has deadlines. Zero means no limit.
	WriteTimeout time.Duration
}

// NewStream returns a wire that reads from r and writes to w, which may be the same.
func NewStream(r io.Reader, w io.Writer, o StreamOptions) *Stream {
	stream := &Stream{in: r, out: w, lines: reader{r: r, most: o.MaxMessageBytes, raise: o.Raise}, to: w, o: o}
	if o.Framing != Lines {
		h := &headers{in: bufio.NewReader(r), out: w}
		h.framing.Store(int32(o.Framing))
		stream.lines.r, stream.to = h, h
	}
	return stream
}

// A Stream is a [Wire] on byte streams.
type Stream struct {
	in    io.Reader
	out   io.Writer
	lines reader
	to    io.Writer // out, or what adds headers
	o     StreamOptions
}

// CloseRead makes a waiting Read return. If the input has no deadlines, it closes the input.
func (w *Stream) CloseRead() error {
	if d, ok := w.in.(interface{ SetReadDeadline(time.Time) error }); ok {
		if err := d.SetReadDeadline(time.Unix(1, 0)); err == nil {
			return nil
		}
	}
	return w.closeOwn(w.in)
}

// Close closes the streams that are io.Closers. A stream that is already closed is not an error.
func (w *Stream) Close() error {
	return errors.Join(w.closeOwn(w.in), w.closeOwn(w.out))
}

func (w *Stream) closeOwn(stream any) error {
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
func (w *Stream) Read() ([]byte, error) { return w.lines.next() }

// Write writes lines in the selected framing.
func (w *Stream) Write(lines []byte) (int, error) {
	if d, ok := w.out.(interface{ SetWriteDeadline(time.Time) error }); ok && w.o.WriteTimeout > 0 {
		_ = d.SetWriteDeadline(time.Now().Add(w.o.WriteTimeout)) // without deadlines, a write may block
	}
	return w.to.Write(lines)
}
