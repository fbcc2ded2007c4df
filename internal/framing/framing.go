// Package framing separates messages in byte streams: by lines, as in MCP, or by header fields, as
// in the Language Server Protocol. Servers and clients share it.
package framing

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync/atomic"
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
	Any                          // the first bytes from the peer decide, for both directions; until then, lines are written
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
	return &Wire{in: reader{r: r, most: o.MaxMessageBytes, raise: o.Raise}, out: w, o: o}
}

// A Wire is a [duplex.Wire] on byte streams.
type Wire struct {
	in     reader
	out    io.Writer
	o      Options
	frames frames
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
	if d, ok := w.in.r.(interface{ SetReadDeadline(time.Time) error }); ok {
		if err := d.SetReadDeadline(time.Unix(1, 0)); err == nil {
			return nil
		}
	}
	return w.closeOwn(w.in.r)
}

// Close closes the streams that are io.Closers. A stream that is already closed is not an error.
func (w *Wire) Close() error {
	return errors.Join(w.closeOwn(w.in.r), w.closeOwn(w.out))
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

// frames is the state of header framing.
type frames struct {
	on   atomic.Bool // messages have headers
	told bool        // on is decided; used only by the reader

	// Used only by the writer.
	part []byte // of an incomplete message
	buf  []byte
}

// maxHeaderPart limits the bytes of the header fields before a message.
const maxHeaderPart = 4 << 10

// Read returns the next message.
func (w *Wire) Read() ([]byte, error) {
	if !w.frames.told {
		if err := w.tell(); err != nil {
			return nil, err
		}
	}
	if w.frames.on.Load() {
		return w.in.nextFrame()
	}
	return w.in.next()
}

// Buffered reports whether the buffer holds a whole message.
func (w *Wire) Buffered() bool {
	if w.frames.on.Load() {
		return w.in.frameBuffered()
	}
	return w.in.buffered()
}

// tell selects the framing. No JSON begins like the name of a header field.
func (w *Wire) tell() error {
	switch w.o.Framing {
	case ContentLength:
		w.frames.on.Store(true)
	case Any:
		first, err := w.in.peek()
		if err != nil {
			return err
		}
		w.frames.on.Store(first == 'C' || first == 'c')
	}
	w.frames.told = true
	return nil
}

// Write writes lines in the selected framing.
func (w *Wire) Write(lines []byte) (int, error) {
	if d, ok := w.out.(interface{ SetWriteDeadline(time.Time) error }); ok && w.o.WriteTimeout > 0 {
		_ = d.SetWriteDeadline(time.Now().Add(w.o.WriteTimeout)) // without deadlines, a write may block
	}
	if w.lines() {
		return w.out.Write(lines)
	}
	f := &w.frames
	f.buf = f.buf[:0]
	for rest := lines; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte{'\n'})
		rest = after
		if !ended {
			f.part = append(f.part, line...)
			break
		}
		size := len(f.part) + len(line)
		if size == 0 {
			continue
		}
		f.buf = append(f.buf, "Content-Length: "...)
		f.buf = strconv.AppendInt(f.buf, int64(size), 10)
		f.buf = append(f.buf, "\r\n\r\n"...)
		f.buf = append(append(f.buf, f.part...), line...)
		f.part = f.part[:0]
	}
	if len(f.buf) == 0 {
		return len(lines), nil
	}
	if _, err := w.out.Write(f.buf); err != nil {
		return 0, err
	}
	if cap(f.buf) > 4*bufferSize {
		f.buf = nil
	}
	if cap(f.part) > 4*bufferSize && len(f.part) == 0 {
		f.part = nil
	}
	return len(lines), nil
}

// lines reports whether lines are written unchanged.
func (w *Wire) lines() bool {
	return w.o.Framing == Lines || w.o.Framing == Any && !w.frames.on.Load()
}

// Drop drops an incomplete message and returns true, unless a part of it is already written.
func (w *Wire) Drop() bool {
	if w.lines() {
		return false
	}
	w.frames.part = nil
	return true
}

// peek returns the first byte that is not white space, without consuming it.
func (r *reader) peek() (byte, error) {
	for {
		for r.start < r.end {
			switch c := r.buf[r.start]; c {
			case ' ', '\t', '\r', '\n':
				r.start++
				r.seen = r.start
			default:
				return c, nil
			}
		}
		if r.err != nil {
			return 0, r.err
		}
		r.fill()
	}
}

// nextFrame returns the next message after its header, which belongs to the caller. A header
// without a length ends the stream, since the beginning of the next message is unknown.
func (r *reader) nextFrame() ([]byte, error) {
	for {
		head, length, err := parseHead(r.buf[r.start:r.end])
		switch {
		case err != nil:
			return nil, err
		case head > 0:
			r.start += head
			return r.body(length)
		case r.end-r.start > maxHeaderPart:
			return nil, fmt.Errorf("the header of a message is larger than %d bytes", maxHeaderPart)
		case errors.Is(r.err, io.EOF) && len(bytes.TrimSpace(r.buf[r.start:r.end])) > 0:
			return nil, io.ErrUnexpectedEOF
		case r.err != nil:
			return nil, r.err
		}
		r.fill()
		r.seen = r.start
	}
}

// body reads a message of n bytes.
func (r *reader) body(n int) ([]byte, error) {
	keep := n
	if n > r.most {
		keep = headSize
	}
	var message []byte
	for left := n; ; {
		part := min(left, r.end-r.start)
		message = append(message, r.buf[r.start:r.start+min(part, keep-len(message))]...)
		left -= part
		r.start += part
		r.seen = r.start
		switch {
		case left == 0 && n > r.most:
			return nil, tooLong(r.most, r.raise, message)
		case left == 0:
			return message, nil
		case errors.Is(r.err, io.EOF):
			return nil, io.ErrUnexpectedEOF
		case r.err != nil:
			return nil, r.err
		}
		r.fill()
	}
}

// frameBuffered reports whether the buffer holds a whole message with its header.
func (r *reader) frameBuffered() bool {
	head, length, err := parseHead(r.buf[r.start:r.end])
	return err == nil && head > 0 && length <= r.end-r.start-head
}

// parseHead parses the header fields of a message. It returns the length of the header including
// the empty line, or 0 if it is incomplete, and the length of the message.
func parseHead(buf []byte) (head, length int, err error) {
	length = -1
	for rest := buf; ; {
		line, after, ended := bytes.Cut(rest, []byte{'\n'})
		if !ended {
			return 0, 0, nil
		}
		line = bytes.TrimSuffix(line, []byte{'\r'})
		rest = after
		if len(line) == 0 {
			if length < 0 {
				if len(bytes.TrimSpace(buf[:len(buf)-len(rest)])) == 0 {
					continue // blank lines between messages
				}
				return 0, 0, errors.New("the header of a message has no Content-Length")
			}
			return len(buf) - len(rest), length, nil
		}
		name, value, isField := bytes.Cut(line, []byte{':'})
		if !isField {
			return 0, 0, fmt.Errorf("the header of a message has the line %.60q; want a field like Content-Length: 17", line)
		}
		if !bytes.EqualFold(bytes.TrimSpace(name), []byte("Content-Length")) {
			continue
		}
		n, ok := parseLength(bytes.TrimSpace(value))
		if !ok || length >= 0 && length != n {
			return 0, 0, fmt.Errorf("the header of a message has the Content-Length %.60q", bytes.TrimSpace(value))
		}
		length = n
	}
}

// parseLength parses decimal digits up to the largest int32. No limit allows longer messages.
func parseLength(text []byte) (int, bool) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(string(text), 10, 32)
	return int(n), err == nil
}

var _ duplex.DroppingWire = (*Wire)(nil)
