package sse

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

// DefaultMaxEvent is how many bytes an event may have when [NewReader] is told nothing.
const DefaultMaxEvent = 4 << 20

// firstBuffer is how much a reader has room for at first.
const firstBuffer = 4 << 10

// firstBuffers are buffers of that size.
var firstBuffers = sync.Pool{New: func() any { return new([firstBuffer]byte) }}

// lentAt is how long a data line is that is handed on with the buffer that it was read into, and not copied.
const lentAt = 16 << 10

// An Event is one event of a stream.
type Event struct {
	// ID is the last event id that the stream named, in this event or before; it stays until another is named.
	ID string
	// Type is what the event field said; "" means "message".
	Type string
	// Data holds the data lines, joined by line feeds. It is nil where the event had none, and belongs to
	// the caller.
	Data []byte
	// Retry is how long to wait before coming back, when HasRetry; whole milliseconds.
	Retry    time.Duration
	HasRetry bool
}

// A SizeError says that an event is larger than the reader allows. The stream cannot be read on.
type SizeError struct{ Max int }

// Error names the limit.
func (e *SizeError) Error() string {
	return fmt.Sprintf("sse: event is larger than %d bytes", e.Max)
}

// A Reader reads the events of a stream. It is not safe for concurrent use.
type Reader struct {
	src io.Reader
	max int

	buf        []byte
	start, end int  // what is read and not used yet
	lent       bool // a part of buf before start is an event's, and buf must not be written to
	begun      bool // the byte order mark is behind us
	afterCR    bool // a line feed that comes next belongs to the line before

	id string // the last one named
}

// NewReader returns a reader of the events of src that refuses events of more than max bytes; zero or less
// means [DefaultMaxEvent]. It holds one event in memory at a time.
func NewReader(src io.Reader, max int) *Reader {
	if max <= 0 {
		max = DefaultMaxEvent
	}
	return &Reader{src: src, max: max}
}

// Free gives up what the reader holds, which must not be used any more. The events stay. Nobody needs to call it, but most streams of a
// call are one short event, and those that are to come begin with the same memory.
func (r *Reader) Free() {
	if len(r.buf) == firstBuffer && !r.lent {
		firstBuffers.Put((*[firstBuffer]byte)(r.buf))
	}
	r.buf, r.start, r.end = nil, 0, 0
}

// Next returns the next event that has data, an id or a retry time. Comments and unknown fields are passed
// over. At the end of the stream the error is io.EOF; an event that the end cut short is dropped, as the
// standard says. An event that is too large is a [*SizeError]; any other error is that of the source.
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

// field keeps what line says in ev and reports whether that makes ev worth returning.
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

// digits reads a number of ASCII digits; one that is too large for a waiting time becomes a day.
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

// line returns the next line without its end, valid until the next call. A line that the end of the stream
// cut short is not returned.
func (r *Reader) line() ([]byte, error) {
	scanned := 0
	for {
		if r.skipMarks() {
			scanned = 0
		}
		if i := lineEnd(r.buf[r.start+scanned : r.end]); i >= 0 {
			line := r.buf[r.start : r.start+scanned+i]
			// A CR ends the line at once: whether a LF follows may be known only much later.
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

// skipMarks passes over the byte order mark at the beginning of the stream and the second half of a CRLF.
// It reports whether it did.
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

// growth is by how much the buffer is to grow. What is long already is often much longer, and each step copies it.
func (r *Reader) growth() int {
	n := len(r.buf)
	if n >= 16<<10 {
		n *= 3
	}
	return max(min(n, r.max-len(r.buf)+firstBuffer), firstBuffer)
}

// fill reads more behind what is not used yet.
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
