package conn

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
)

// headers converts between messages with header fields, on the stream, and lines.
type headers struct {
	in      *bufio.Reader
	out     io.Writer
	framing atomic.Int32 // [AnyFraming] until the peer has sent something
	left    int          // bytes of the message and its line break that are not read yet
	part    []byte       // of an incomplete line; used only by Write
}

// Read reads lines. The line breaks within a message, where JSON has white space, become blanks.
func (h *headers) Read(p []byte) (int, error) {
	if h.left == 1 {
		h.left = 0
		return copy(p, "\n"), nil
	}
	if h.framing.Load() == int32(AnyFraming) {
		h.framing.Store(int32(Lines))
		if first, _ := h.in.Peek(1); len(first) > 0 && first[0]|0x20 == 'c' { // no JSON begins like the name of a field
			h.framing.Store(int32(ContentLength))
		}
	}
	if h.framing.Load() == int32(Lines) {
		return h.in.Read(p)
	}
	if h.left == 0 {
		if err := h.readHeader(); err != nil {
			return 0, err
		}
	}
	n, err := h.in.Read(p[:min(len(p), h.left-1)])
	copy(p, bytes.ReplaceAll(p[:n], []byte("\n"), []byte(" ")))
	h.left -= n
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// readHeader reads the header fields of a message and the empty line behind them, and sets left.
func (h *headers) readHeader() error {
	length := int64(-1)
	for range 20 {
		line, err := h.in.ReadSlice('\n') // of at most the buffer
		field := strings.TrimSpace(string(line))
		name, value, ok := strings.Cut(field, ":")
		switch {
		case err == io.EOF && field == "" && length < 0:
			return err
		case err == nil && field == "" && length >= 0:
			h.left = int(length) + 1
			return nil
		case strings.EqualFold(name, "Content-Length"):
			length, err = strconv.ParseInt(strings.TrimSpace(value), 10, 32)
			ok = length >= 0
		}
		if err != nil || field != "" && !ok {
			return fmt.Errorf("the header of a message has the line %.60q; want a field like Content-Length: 17", field)
		}
	}
	return fmt.Errorf("the header of a message has too many lines, or no Content-Length")
}

// Write writes lines in the selected framing.
func (h *headers) Write(lines []byte) (int, error) {
	if h.framing.Load() != int32(ContentLength) {
		return h.out.Write(lines)
	}
	var frames []byte
	for line := range bytes.Lines(lines) {
		h.part = append(h.part, line...)
		if text, ended := bytes.CutSuffix(h.part, []byte("\n")); ended {
			frames = fmt.Appendf(frames, "Content-Length: %d\r\n\r\n%s", len(text), text)
			h.part = nil
		}
	}
	if len(frames) == 0 {
		return len(lines), nil
	}
	_, err := h.out.Write(frames)
	return len(lines), err
}
