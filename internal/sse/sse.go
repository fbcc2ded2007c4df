// Package sse writes and reads event streams as Streamable HTTP uses them.
//
// The grammar is that of the HTML standard, section 9.2 (server-sent events). The caller interprets
// the events and resumes streams.
package sse

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ContentType is the media type of an event stream.
const ContentType = "text/event-stream"

// AppendEvent appends an event of the type "message" to dst, without an ID if id is empty. A line
// break in data, which in JSON is only white space between tokens, starts another data line.
func AppendEvent(dst []byte, id string, data []byte) []byte {
	return slices.Concat(AppendHead(dst, id), Data(data), []byte("\n\n"))
}

// AppendHead appends the beginning of an event of the type "message", up to its data.
func AppendHead(dst []byte, id string) []byte {
	dst = append(dst, "event: message\n"...)
	if id != "" {
		dst = append(append(append(dst, "id: "...), id...), '\n')
	}
	return append(dst, "data: "...)
}

var lineBreaks = strings.NewReplacer("\r\n", "\ndata: ", "\r", "\ndata: ", "\n", "\ndata: ")

// Data returns data as the inside of as many data lines as necessary.
func Data(data []byte) []byte {
	if bytes.ContainsAny(data, "\r\n") {
		return []byte(lineBreaks.Replace(string(data)))
	}
	return data
}

// AppendPriming appends an event without a message. It tells the client the ID to resume from.
func AppendPriming(dst []byte, id string) []byte { return fmt.Appendf(dst, "id: %s\ndata: \n\n", id) }

// AppendRetry appends an event that only tells the client how long to wait before it resumes the
// stream, in whole milliseconds.
func AppendRetry(dst []byte, retry time.Duration) []byte {
	return fmt.Appendf(dst, "retry: %d\n\n", max(0, retry.Milliseconds()))
}

// KeepAlive is a comment. Readers ignore it; proxies see that the stream is alive.
const KeepAlive = ": keep-alive\n\n"
