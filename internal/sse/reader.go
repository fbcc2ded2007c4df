package sse

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

// DefaultMaxEvent is the default limit of an event, in bytes.
const DefaultMaxEvent = 4 << 20

// firstBuffer is the size of the first buffer of a reader.
const firstBuffer = 4 << 10

// firstBuffers pools the first buffers.
var firstBuffers = sync.Pool{New: func() any { return new([firstBuffer]byte) }}

// lentAt is the length from which a data line is returned in its read buffer instead of copied.
const lentAt = 16 << 10

// An Event is one event of a stream.
type Event struct {
	// ID is the last event ID of the stream, from this event or an earlier one.
	ID string
	// Type is the value of the event field; "" means "message".
	Type string
	// Data holds the data lines, joined by line feeds. It is nil if there are none. It belongs to
	// the caller.
	Data []byte
	// Retry is how long to wait before resuming the stream, in whole milliseconds, if HasRetry.
	Retry    time.Duration
	HasRetry bool
}

// A SizeError is returned for an event that is larger than the limit. The stream cannot be read
// further.
type SizeError struct{ Max int }

// Error returns the limit in bytes.
func (e *SizeError) Error() string {
	return fmt.Sprintf("sse: event is larger than %d bytes", e.Max)
}

// A Reader reads the events of a stream. It is not safe for concurrent use.
type Reader struct {
	src io.Reader
	max int

	buf        []byte
	start, end int  // bytes that are read and not used yet
	lent       bool // an event holds a part of buf before start, so buf must not be written
	begun      bool // a byte order mark can no longer follow
	afterCR    bool // the last line ended with CR, so a LF that follows belongs to it

	id string // the last event ID
}

// NewReader returns a reader of the events of src. It refuses events of more than max bytes; if max
// is not positive, the limit is [DefaultMaxEvent]. It holds one event in memory at a time.
func NewReader(src io.Reader, max int) *Reader {
	if max <= 0 {
		max = DefaultMaxEvent
	}
	return &Reader{src: src, max: max}
}

// Free returns the buffer of r to a pool; r must not be used afterwards. The events stay valid.
// Calling Free is optional but saves memory, since most streams are one short event.
func (r *Reader) Free() {
	if len(r.buf) == firstBuffer && !r.lent {
		firstBuffers.Put((*[firstBuffer]byte)(r.buf))
	}
	r.buf, r.start, r.end = nil, 0, 0
}

// Next returns the next event that has data, an ID or a retry time, and skips comments and unknown
// fields. At the end of the stream it returns io.EOF and drops an incomplete event, as the standard
// requires. An event that is too large gives a [*SizeError]; any other error is that of the source.
func (r *Reader) Next() (Event, error) {
	var ev Event
	size, any := 0, false
	for {
		line, err := r.line()
		if err != nil {
			return Event{}, err
		}
		if len(line) == 0 {
			if any {
				ev.ID = r.id
				return ev, nil
			}
			ev, size = Event{}, 0
			continue
		}
		if line[0] == ':' {
			continue
		}
		if size += len(line) + 1; size > r.max {
			return Event{}, &SizeError{r.max}
		}
		if r.field(&ev, line) {
			any = true
		}
	}
}

// field stores the field of line in ev and reports whether Next must return ev for it.
func (r *Reader) field(ev *Event, line []byte) bool {
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(name) {
	case "data":
		if ev.Data == nil {
			if len(value) >= lentAt {
				ev.Data, r.lent = value[:len(value):len(value)], true
				return true
			}
			ev.Data = append(make([]byte, 0, len(value)), value...)
			return true
		}
		ev.Data = append(append(ev.Data, '\n'), value...)
		return true
	case "id":
		if bytes.IndexByte(value, 0) >= 0 {
			return false
		}
		r.id = string(value)
		return true
	case "event":
		ev.Type = string(value)
	case "retry":
		if ms, ok := digits(value); ok {
			ev.Retry, ev.HasRetry = time.Duration(ms)*time.Millisecond, true
			return true
		}
	}
	return false
}

// digits parses a number of ASCII digits. It limits the number to a day in milliseconds.
func digits(b []byte) (int64, bool) {
	const day = int64(24 * time.Hour / time.Millisecond)
	if len(b) == 0 {
		return 0, false
	}
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = min(n*10+int64(c-'0'), day)
	}
	return n, true
}

// line returns the next line without its end, valid until the next call. It does not return an
// incomplete line at the end of the stream.
func (r *Reader) line() ([]byte, error) {
	scanned := 0
	for {
		if r.skipMarks() {
			scanned = 0
		}
		if i := lineEnd(r.buf[r.start+scanned : r.end]); i >= 0 {
			line := r.buf[r.start : r.start+scanned+i]
			// A CR ends the line at once: a LF may follow much later.
			r.afterCR = r.buf[r.start+scanned+i] == '\r'
			r.start += scanned + i + 1
			r.begun = true
			return line, nil
		}
		scanned = r.end - r.start
		if scanned > r.max {
			return nil, &SizeError{r.max}
		}
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
}

// skipMarks skips the byte order mark at the beginning of the stream and the LF of a CRLF. It
// reports whether it skipped any.
func (r *Reader) skipMarks() (skipped bool) {
	if !r.begun && r.end-r.start >= len(byteOrderMark) {
		r.begun = true
		if string(r.buf[r.start:r.start+len(byteOrderMark)]) == byteOrderMark {
			r.start += len(byteOrderMark)
			skipped = true
		}
	}
	if r.afterCR && r.start < r.end {
		r.afterCR = false
		if r.buf[r.start] == '\n' {
			r.start++
			skipped = true
		}
	}
	return skipped
}

const byteOrderMark = "\ufeff"

// growth returns how many bytes to add to the buffer. A long event is often much longer, and each
// step copies it.
func (r *Reader) growth() int {
	n := len(r.buf)
	if n >= 16<<10 {
		n *= 3
	}
	return max(min(n, r.max-len(r.buf)+firstBuffer), firstBuffer)
}

// fill reads more bytes into the buffer.
func (r *Reader) fill() error {
	if r.lent {
		rest := r.buf[r.start:r.end]
		r.buf = make([]byte, max(firstBuffer, len(rest)))
		r.start, r.end, r.lent = 0, copy(r.buf, rest), false
	}
	if r.start == r.end {
		r.start, r.end = 0, 0
	}
	if r.end == len(r.buf) {
		if r.start > 0 {
			r.end = copy(r.buf, r.buf[r.start:r.end])
			r.start = 0
		} else if r.buf == nil {
			r.buf = firstBuffers.Get().(*[firstBuffer]byte)[:]
		} else {
			r.buf = append(r.buf, make([]byte, r.growth())...)
		}
	}
	for range 100 {
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}
