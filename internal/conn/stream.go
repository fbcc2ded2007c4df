package conn

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
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
	TooLarge        string // the format of the error for messages with more than MaxMessageBytes

	// Borrowed keeps the streams open when the wire is closed.
	Borrowed bool
}

// A Stream is a [Wire] on byte streams.
type Stream struct {
	in      io.Reader
	out     io.Writer
	read    *bufio.Reader // of in
	o       StreamOptions
	framing atomic.Int32 // [AnyFraming] until the peer has sent something
	part    []byte       // of an incomplete line; used only by Write
}

// NewStream returns a wire that reads from r and writes to w, which may be the same.
func NewStream(r io.Reader, w io.Writer, o StreamOptions) *Stream {
	s := &Stream{in: r, out: w, read: bufio.NewReaderSize(r, 16<<10), o: o}
	s.framing.Store(int32(o.Framing))
	return s
}

// CloseRead makes a waiting Read return. If the input has no deadlines, it closes the input.
func (s *Stream) CloseRead() error {
	if d, ok := s.in.(interface{ SetReadDeadline(time.Time) error }); ok && d.SetReadDeadline(time.Unix(1, 0)) == nil {
		return nil
	}
	return s.closeOwn(s.in)
}

// Close closes the streams that are io.Closers.
func (s *Stream) Close() error {
	return errors.Join(s.closeOwn(s.in), s.closeOwn(s.out))
}

func (s *Stream) closeOwn(stream any) error {
	if c, ok := stream.(io.Closer); ok && !s.o.Borrowed {
		return c.Close()
	}
	return nil
}

// Read returns the next message.
func (s *Stream) Read() ([]byte, error) {
	if Framing(s.framing.Load()) == AnyFraming {
		framing := Lines
		if first, _ := s.read.Peek(1); len(first) > 0 && first[0]|0x20 == 'c' { // no JSON begins like the name of a field
			framing = ContentLength
		}
		s.framing.Store(int32(framing))
	}
	for {
		read := s.readLine
		if Framing(s.framing.Load()) == ContentLength {
			read = s.readFrame
		}
		if message, err := read(); err != nil || len(message) > 0 {
			return message, err
		}
	}
}

// headBytes is how many bytes of a message that is too large are kept, to find its ID.
const headBytes = 1 << 10

func (s *Stream) tooLarge(head []byte) error {
	text := fmt.Sprintf(s.o.TooLarge, s.o.MaxMessageBytes)
	return &BadMessageError{Text: text, Head: head[:min(len(head), headBytes)]}
}

// readLine reads a line without the white space around it. At the end of the input, the line break
// may be missing.
func (s *Stream) readLine() ([]byte, error) {
	var line []byte
	large := false
	for {
		part, err := s.read.ReadSlice('\n')
		if !large {
			line = bytes.TrimLeft(append(line, part...), " \t\r\n")
			if large = len(bytes.TrimRight(line, "\r\n")) > s.o.MaxMessageBytes; large {
				line = bytes.Clone(line[:min(len(line), headBytes)])
			}
		}
		switch {
		case err == bufio.ErrBufferFull:
		case err != nil && (err != io.EOF || len(line) == 0):
			return nil, err
		case large:
			return nil, s.tooLarge(line)
		default:
			return bytes.TrimRight(line, "\r\n"), nil
		}
	}
}

// readFrame reads a message behind its header.
func (s *Stream) readFrame() ([]byte, error) {
	size, err := s.readHeader()
	if err != nil {
		return nil, err
	}
	large := size > s.o.MaxMessageBytes
	message := make([]byte, min(size, s.o.MaxMessageBytes))
	_, err = io.ReadFull(s.read, message)
	if err == nil && large {
		_, err = s.read.Discard(size - len(message))
	}
	switch {
	case err == io.EOF && size > 0:
		return nil, io.ErrUnexpectedEOF
	case err == nil && large:
		return nil, s.tooLarge(message)
	}
	return message, err
}

// readHeader reads the header fields of a message and the empty line behind them, and returns the
// length of the message.
func (s *Stream) readHeader() (int, error) {
	length := int64(-1)
	for range 20 {
		line, err := s.read.ReadSlice('\n') // of at most the buffer
		field := strings.TrimSpace(string(line))
		name, value, ok := strings.Cut(field, ":")
		switch {
		case err == io.EOF && field == "" && length < 0:
			return 0, err
		case err == nil && field == "" && length >= 0:
			return int(length), nil
		case strings.EqualFold(name, "Content-Length"):
			length, err = strconv.ParseInt(strings.TrimSpace(value), 10, 32)
			ok = length >= 0
		}
		if err != nil || field != "" && !ok {
			return 0, fmt.Errorf("the header of a message has the line %.60q; want a field like Content-Length: 17", field)
		}
	}
	return 0, fmt.Errorf("the header of a message has too many lines, or no Content-Length")
}

// Write writes lines in the selected framing.
func (s *Stream) Write(lines []byte) (int, error) {
	if Framing(s.framing.Load()) != ContentLength {
		return s.out.Write(lines)
	}
	var frames []byte
	for line := range bytes.Lines(lines) {
		s.part = append(s.part, line...)
		if text, ended := bytes.CutSuffix(s.part, []byte("\n")); ended {
			frames = fmt.Appendf(frames, "Content-Length: %d\r\n\r\n%s", len(text), text)
			s.part = nil
		}
	}
	if len(frames) == 0 {
		return len(lines), nil
	}
	_, err := s.out.Write(frames)
	return len(lines), err
}
