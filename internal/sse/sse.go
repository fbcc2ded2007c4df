// Package sse writes and reads event streams as Streamable HTTP uses them.
//
// The grammar is that of the HTML standard, section 9.2 (server-sent events). The caller interprets
// the events and resumes streams.
package sse

import (
	"bytes"
	"strconv"
	"time"
)

// ContentType is the media type of an event stream.
const ContentType = "text/event-stream"

// AppendEvent appends an event of the type "message" to dst, without an ID if id is empty. A line
// break in data, which in JSON is only white space between tokens, starts another data line.
func AppendEvent(dst []byte, id string, data []byte) []byte {
	dst = AppendHead(dst, id)
	dst = AppendData(dst, data)
	return append(dst, "\n\n"...)
}

// AppendHead appends the beginning of an event of the type "message", up to its data.
func AppendHead(dst []byte, id string) []byte {
	dst = append(dst, "event: message\n"...)
	if id != "" {
		dst = append(dst, "id: "...)
		dst = append(dst, id...)
		dst = append(dst, '\n')
	}
	return append(dst, "data: "...)
}

// AppendData appends data inside a data line, and continues it in as many lines as necessary.
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

// AppendPriming appends an event without a message. It tells the client the ID to resume from and,
// if retry is positive, how long to wait before it resumes the stream.
func AppendPriming(dst []byte, id string, retry time.Duration) []byte {
	dst = append(dst, "id: "...)
	dst = append(dst, id...)
	dst = append(dst, '\n')
	if retry > 0 {
		dst = appendRetry(dst, retry)
	}
	return append(dst, "data: \n\n"...)
}

// AppendRetry appends an event that only tells the client how long to wait before it resumes the
// stream, in whole milliseconds.
func AppendRetry(dst []byte, retry time.Duration) []byte {
	return append(appendRetry(dst, retry), '\n')
}

func appendRetry(dst []byte, retry time.Duration) []byte {
	dst = append(dst, "retry: "...)
	dst = strconv.AppendInt(dst, max(0, retry.Milliseconds()), 10)
	return append(dst, '\n')
}

// KeepAlive is a comment. Readers ignore it; proxies see that the stream is alive.
const KeepAlive = ": keep-alive\n\n"

// lineEnd returns the index of the first CR or LF in b, or -1.
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
