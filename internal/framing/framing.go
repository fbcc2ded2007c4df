// Package framing separates messages in byte streams: by lines, as in MCP, or by header fields, as
// in the Language Server Protocol. Servers and clients share it.
package framing

import (
	"bufio"
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
	framed *bufio.Reader // in place of in, with header framing; used only by the reader
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
	if w.framed != nil {
		return w.nextFrame()
	}
	return w.in.next()
}

// Buffered reports whether the buffer holds a whole message. With header framing it is false.
func (w *Wire) Buffered() bool { return w.framed == nil && w.in.buffered() }

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
	if w.frames.on.Load() {
		w.framed = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(w.in.buf[w.in.start:w.in.end]), w.in.r), maxHeaderPart)
		w.in.buf = nil
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
func (w *Wire) nextFrame() ([]byte, error) {
	length, err := w.readHead()
	if err != nil {
		return nil, err
	}
	keep := length
	if length > w.o.MaxMessageBytes {
		keep = headSize
	}
	var message bytes.Buffer
	message.Grow(min(keep, bufferSize) + bytes.MinRead) // it grows further as the message arrives
	_, err = io.CopyN(&message, w.framed, int64(keep))
	if err == nil {
		_, err = io.CopyN(io.Discard, w.framed, int64(length-keep))
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil, io.ErrUnexpectedEOF
	case err != nil:
		return nil, err
	case length > w.o.MaxMessageBytes:
		return nil, tooLong(w.o.MaxMessageBytes, w.o.Raise, message.Bytes())
	}
	return message.Bytes(), nil
}

// readHead reads the header fields of a message and the empty line behind them. It skips blank lines
// before, and returns the length of the message.
func (w *Wire) readHead() (length int, err error) {
	length = -1
	for size := 0; ; {
		line, err := w.framed.ReadSlice('\n')
		size += len(line)
		switch {
		case size > maxHeaderPart || errors.Is(err, bufio.ErrBufferFull):
			return 0, fmt.Errorf("the header of a message is larger than %d bytes", maxHeaderPart)
		case errors.Is(err, io.EOF) && size-len(line)+len(bytes.TrimSpace(line)) > 0:
			return 0, io.ErrUnexpectedEOF
		case err != nil:
			return 0, err
		}
		line = bytes.TrimSuffix(line[:len(line)-1], []byte{'\r'})
		if len(line) > 0 {
			if length, err = parseField(line, length); err != nil {
				return 0, err
			}
			continue
		}
		if length >= 0 {
			return length, nil
		}
		if size > len("\r\n") {
			return 0, errors.New("the header of a message has no Content-Length")
		}
		size = 0
	}
}

// parseField returns the length in a header field, or length if it is another field.
func parseField(line []byte, length int) (int, error) {
	name, value, isField := bytes.Cut(line, []byte{':'})
	if !isField {
		return 0, fmt.Errorf("the header of a message has the line %.60q; want a field like Content-Length: 17", line)
	}
	if !bytes.EqualFold(bytes.TrimSpace(name), []byte("Content-Length")) {
		return length, nil
	}
	n, ok := parseLength(bytes.TrimSpace(value))
	if !ok || length >= 0 && length != n {
		return 0, fmt.Errorf("the header of a message has the Content-Length %.60q", bytes.TrimSpace(value))
	}
	return n, nil
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
