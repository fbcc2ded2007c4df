package sse

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"time"
)

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
	src *bufio.Reader
	max int

	begun   bool // a byte order mark can no longer follow
	afterCR bool // the last line ended with CR, so a LF that follows belongs to it

	buf []byte // of a line
	id  string // the last event ID
}

// NewReader returns a reader of the events of src. It refuses events of more than max bytes. It holds
// one event in memory at a time.
func NewReader(src io.Reader, max int) *Reader {
	return &Reader{src: bufio.NewReader(src), max: max}
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
			ev.Data = append([]byte{}, value...)
		} else {
			ev.Data = append(append(ev.Data, '\n'), value...)
		}
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
		const day = uint64(24 * time.Hour / time.Millisecond) // a longer time would be a mistake
		if ms, err := strconv.ParseUint(string(value), 10, 64); err == nil {
			ev.Retry, ev.HasRetry = time.Duration(min(ms, day))*time.Millisecond, true
			return true
		}
	}
	return false
}

// line returns the next line without its end, which is valid until the next call. It does not return
// an incomplete line at the end of the stream.
func (r *Reader) line() ([]byte, error) {
	r.buf = r.buf[:0]
	for {
		c, err := r.src.ReadByte()
		if err != nil {
			return nil, err
		}
		after := r.afterCR
		// A CR ends the line at once: a LF may follow much later.
		r.afterCR = c == '\r'
		switch {
		case c == '\n' && after:
		case c == '\n' || c == '\r':
			line := r.buf
			if !r.begun {
				r.begun = true
				line = bytes.TrimPrefix(line, []byte(byteOrderMark))
			}
			return line, nil
		case len(r.buf) == r.max:
			return nil, &SizeError{r.max}
		default:
			r.buf = append(r.buf, c)
		}
	}
}

const byteOrderMark = "\ufeff"
