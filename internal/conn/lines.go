package conn

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

const (
	// bufferSize is the size of the read buffer, which grows for a longer line.
	bufferSize = 16 << 10
	// bigLine is the length from which a line is returned in its read buffer instead of copied.
	bigLine = bufferSize / 2
)

// A reader splits a stream into lines. It skips blank lines.
type reader struct {
	r     io.Reader
	most  int    // limit of a line, in bytes
	raise string // name of the option for most

	buf        []byte // buf[start:end] is read and not used yet
	start, end int
	seen       int    // no line ends in buf[start:seen]
	skipping   bool   // a line that is too long is being skipped
	head       []byte // of that line
	err        error
}

// next returns the next line, which belongs to the caller.
func (r *reader) next() ([]byte, error) {
	for {
		if from, to, ok := r.find(); ok {
			if r.skipping || r.isLong(from, to) {
				r.skip(r.buf[from:to])
				r.skipping = false
				r.start, r.seen = to+1, to+1
				return nil, r.tooLong()
			}
			return r.take(from, to), nil
		}
		if r.err != nil {
			return r.last()
		}
		if r.end-r.start > r.most+1 {
			r.skip(r.buf[r.start:r.end])
		}
		if r.skipping {
			r.start, r.seen = r.end, r.end
		}
		r.fill()
	}
}

// isLong reports whether the line buf[from:to] is too long, not counting its CR.
func (r *reader) isLong(from, to int) bool {
	if to > from && r.buf[to-1] == '\r' {
		to--
	}
	return to-from > r.most
}

// headSize is how many bytes of a message that is too long are kept, to find its ID.
const headSize = 1 << 10

// skip starts skipping a line, and keeps its head.
func (r *reader) skip(line []byte) {
	if !r.skipping {
		r.skipping, r.head = true, bytes.Clone(line[:min(len(line), headSize)])
	}
}

func (r *reader) tooLong() error {
	head := r.head
	r.head = nil
	return &BadMessageError{Text: fmt.Sprintf("message is larger than %d bytes; raise %s", r.most, r.raise), Head: head}
}

// last returns the text after the last line break, once, and then the reason for the end.
func (r *reader) last() ([]byte, error) {
	from, to := r.start, r.end
	r.start, r.seen = r.end, r.end
	switch {
	case r.skipping:
		r.skipping = false
		return nil, r.tooLong()
	case errors.Is(r.err, io.EOF) && from < to:
		return bytes.Clone(r.buf[from:to]), nil
	}
	return nil, r.err
}

// find returns the position of the next line without its end, and drops blank lines before it.
func (r *reader) find() (from, to int, ok bool) {
	for {
		n := bytes.IndexByte(r.buf[r.seen:r.end], '\n')
		if n < 0 {
			r.seen = r.end
			r.trim(r.end)
			return 0, 0, false
		}
		to = r.seen + n
		r.trim(to)
		if r.start == to && !r.skipping {
			r.start, r.seen = to+1, to+1
			continue
		}
		r.seen = to
		return r.start, to, true
	}
}

// trim drops white space at the beginning of a line that extends at least to the index to. So it
// does not count toward the length, and a line of white space is blank, however long.
func (r *reader) trim(to int) {
	if r.skipping {
		return
	}
	for r.start < to {
		switch r.buf[r.start] {
		case ' ', '\t', '\r':
			r.start++
		default:
			return
		}
	}
}

// take returns the line buf[from:to]. JSON treats a CR at its end as white space.
func (r *reader) take(from, to int) []byte {
	line := r.buf[from:to:to]
	rest := r.buf[to+1 : r.end]
	if len(line) < bigLine {
		line = bytes.Clone(line)
		r.start, r.seen = to+1, to+1
		return line
	}
	r.buf = make([]byte, max(bufferSize, len(rest)+bufferSize/2))
	r.start, r.seen, r.end = 0, 0, copy(r.buf, rest)
	return line
}

// fill reads more bytes into the buffer.
func (r *reader) fill() {
	if r.start == r.end {
		r.start, r.end, r.seen = 0, 0, 0
		if len(r.buf) > 4*bufferSize {
			r.buf = nil // it grew for a line that was skipped
		}
	}
	if r.end == len(r.buf) {
		r.makeRoom()
	}
	n, err := r.r.Read(r.buf[r.end:])
	r.end += n
	r.err = err
}

func (r *reader) makeRoom() {
	buf := r.buf // no returned line is in it
	if r.start <= len(buf)/2 {
		buf = make([]byte, max(2*len(buf), bufferSize))
	}
	r.end = copy(buf, r.buf[r.start:r.end])
	r.seen -= r.start
	r.start, r.buf = 0, buf
}
