// Package sse writes and reads event streams as Streamable HTTP uses them.
//
// The grammar is that of the HTML standard, section 9.2 (server-sent events). What an event means, and when
// to come back for more, is the business of those who read it.
package sse

import (
	"bytes"
	"strconv"
	"time"
)

// ContentType is the media type of an event stream.
const ContentType = "text/event-stream"

// AppendEvent appends an event of the type "message" to dst; an empty id is left out.
// A line break in data, which in JSON can only be white space between tokens, starts another data line.
func AppendEvent(dst []byte, id string, data []byte) []byte {
	dst = AppendHead(dst, id)
	dst = AppendData(dst, data)
	return append(dst, "\n\n"...)
}

// AppendHead appends the beginning of an event of the type "message" up to where its data starts.
func AppendHead(dst []byte, id string) []byte {
	dst = append(dst, "event: message\n"...)
	if id != "" {
		dst = append(dst, "id: "...)
		dst = append(dst, id...)
		dst = append(dst, '\n')
	}
	return append(dst, "data: "...)
}

// AppendData appends data inside a data line, continued by as many lines as it takes.
func AppendData(dst, data []byte) []byte {
	for {
		i := lineEnd(data)
		if i < 0 {
			return append(dst, data...)
		}
		dst = append(dst, data[:i]...)
		dst = append(dst, "\ndata: "...)
		if data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n' {
			i++
		}
		data = data[i+1:]
	}
}

// AppendPriming appends an event without a message: it tells the client the id to come back with, and when
// retry is positive how long to wait before it does.
func AppendPriming(dst []byte, id string, retry time.Duration) []byte {
	dst = append(dst, "id: "...)
	dst = append(dst, id...)
	dst = append(dst, '\n')
	if retry > 0 {
		dst = appendRetry(dst, retry)
	}
	return append(dst, "data: \n\n"...)
}

// AppendRetry appends an event that only says how long to wait before coming back, in whole milliseconds.
func AppendRetry(dst []byte, retry time.Duration) []byte {
	return append(appendRetry(dst, retry), '\n')
}

func appendRetry(dst []byte, retry time.Duration) []byte {
	dst = append(dst, "retry: "...)
	dst = strconv.AppendInt(dst, max(0, retry.Milliseconds()), 10)
	return append(dst, '\n')
}

// KeepAlive is a comment: readers ignore it, and what lies between sees that the stream is alive.
const KeepAlive = ": keep-alive\n\n"

// lineEnd returns the index of the first CR or LF of b, and -1 where there is none.
func lineEnd(b []byte) int {
	i := bytes.IndexByte(b, '\n')
	head := b
	if i >= 0 {
		head = b[:i]
	}
	if j := bytes.IndexByte(head, '\r'); j >= 0 {
		return j
	}
	return i
}
