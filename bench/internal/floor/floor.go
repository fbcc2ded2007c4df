// Package floor is a minimal server and client of the benchmark's tools, the lower bound of the
// comparison. The server assumes that messages are well-formed, searches them for the values that
// it needs, and writes responses by hand. It validates nothing.
package floor

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/mcpkit/mcpkit-go/bench/internal/work"
)

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 4096); return &b }}

// HTTP responds to POST requests with JSON, or at the path /sse with a stream of one event.
func HTTP() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body := make([]byte, max(r.ContentLength, 0))
		if _, err := io.ReadFull(r.Body, body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		b := buffers.Get().(*[]byte)
		defer buffers.Put(b)
		stream := r.URL.Path == "/sse"
		out := (*b)[:0]
		if stream {
			out = append(out, "event: message\ndata: "...)
		}
		before := len(out)
		out = Answer(out, body, r.Header.Get("Mcp-Protocol-Version") == "2026-07-28")
		*b = out
		if len(out) == before {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header()["Mcp-Session-Id"] = []string{"floor"}
		w.Header()["Content-Type"] = []string{"application/json"}
		if stream {
			out = append(out, "\n\n"...)
			*b = out
			w.Header()["Content-Type"] = []string{"text/event-stream"}
			_, _ = w.Write(out)
			_ = http.NewResponseController(w).Flush() // like servers that do not know the length of the stream
			return
		}
		w.Header()["Content-Length"] = []string{strconv.Itoa(len(out))}
		_, _ = w.Write(out)
	})
}

// modernMeta occurs in every request of 2026-07-28.
var modernMeta = []byte(`"io.modelcontextprotocol/protocolVersion"`)

// Stdio responds to lines.
func Stdio(in io.Reader, out io.Writer) error {
	r := bufio.NewReaderSize(in, 64<<10)
	var b []byte
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if b = Answer(b[:0], line, bytes.Contains(line, modernMeta)); len(b) == 0 {
			continue
		}
		if _, err := out.Write(append(b, '\n')); err != nil {
			return err
		}
	}
}

// Answer appends the response to msg. For a notification it appends nothing.
func Answer(b, msg []byte, modern bool) []byte {
	id, method, params := member(msg, "id"), member(msg, "method"), member(msg, "params")
	if id == nil {
		return b
	}
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	b = append(b, `,"result":{`...)
	switch string(method) {
	case `"initialize"`:
		b = append(b, `"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"floor","version":"1"}`...)
	case `"server/discover"`:
		b = append(b, `"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"`...)
	case `"tools/list"`:
		b = append(b, list...)
	case `"tools/call"`:
		b = call(b, string(member(params, "name")), member(params, "arguments"))
	}
	if modern {
		b = append(b, `,"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"floor","version":"1"}}`...)
	}
	return append(b, "}}"...)
}

var list = `"tools":[{"name":"add","inputSchema":` + work.AddSchema + `,"outputSchema":` + work.AddOutSchema +
	`},{"name":"blob","inputSchema":` + work.BlobSchema + `},{"name":"echo","inputSchema":` + work.EchoSchema +
	`},{"name":"search","inputSchema":` + work.SearchSchema + `,"outputSchema":` + work.SearchOutSchema + `}]`

func call(b []byte, name string, args []byte) []byte {
	switch name {
	case `"add"`:
		sum := work.Add(work.AddInput{A: number(member(args, "a")), B: number(member(args, "b"))}).Sum
		b = append(b, `"content":[{"type":"text","text":"{\"sum\":`...)
		b = strconv.AppendInt(b, int64(sum), 10)
		b = append(b, `}"}],"structuredContent":{"sum":`...)
		b = strconv.AppendInt(b, int64(sum), 10)
		return append(b, '}')
	case `"echo"`:
		b = append(b, `"content":[{"type":"text","text":`...)
		b = append(b, member(args, "text")...)
		return append(b, "}]"...)
	case `"blob"`:
		b = append(b, `"content":[{"type":"text","text":`...)
		b = quote(b, work.Blob(work.BlobInput{N: number(member(args, "n"))}), `"`)
		return append(b, "}]"...)
	case `"search"`:
		out := work.Search(searchInput(args))
		b = append(b, `"content":[{"type":"text","text":"`...)
		b = hits(b, out, `\"`)
		b = append(b, `"}],"structuredContent":`...)
		return hits(b, out, `"`)
	}
	return b
}

func searchInput(args []byte) work.SearchInput {
	in := work.SearchInput{Query: text(member(args, "query")), Limit: 10}
	if n := member(args, "limit"); n != nil {
		in.Limit = number(n)
	}
	if tags := member(args, "tags"); tags != nil {
		for i := space(tags, 1); tags[i] == '"'; {
			end := skip(tags, i)
			in.Tags = append(in.Tags, text(tags[i:end]))
			if i = space(tags, end); tags[i] == ',' {
				i = space(tags, i+1)
			}
		}
	}
	if f := member(args, "filter"); f != nil {
		in.Filter = &work.Filter{Field: text(member(f, "field")), Op: text(member(f, "op")), Value: text(member(f, "value"))}
	}
	return in
}

// hits appends out as JSON with q as the quote, which is escaped for JSON in a string.
func hits(b []byte, out work.SearchOutput, q string) []byte {
	name := func(s string) { b = append(append(append(append(b, q...), s...), q...), ':') }
	b = append(b, '{')
	name("hits")
	b = append(b, '[')
	for i := range out.Hits {
		h := &out.Hits[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		name("id")
		b = strconv.AppendInt(b, int64(h.ID), 10)
		b = append(b, ',')
		name("title")
		b = quote(b, h.Title, q)
		b = append(b, ',')
		name("url")
		b = quote(b, h.URL, q)
		b = append(b, ',')
		name("score")
		b = strconv.AppendFloat(b, h.Score, 'f', -1, 64)
		b = append(b, ',')
		name("tags")
		b = append(b, '[')
		for j, tag := range h.Tags {
			if j > 0 {
				b = append(b, ',')
			}
			b = quote(b, tag, q)
		}
		b = append(b, "],"...)
		name("snippet")
		b = quote(b, h.Snippet, q)
		b = append(b, '}')
	}
	return append(b, "]}"...)
}

// quote appends s as a JSON string.
func quote(b []byte, s, q string) []byte {
	b = append(b, q...)
	start := 0
	for i := range len(s) {
		if c := s[i]; c == '"' || c == '\\' || c < 0x20 {
			b = append(b, s[start:i]...)
			start = i + 1
			if q != `"` {
				b = append(b, `\\\`...)
			} else {
				b = append(b, '\\')
			}
			b = append(b, c)
		}
	}
	b = append(b, s[start:]...)
	return append(b, q...)
}

func number(raw []byte) int {
	n, _ := strconv.Atoi(string(raw))
	return n
}

func text(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

// member returns the raw value of a member of a JSON object.
func member(obj []byte, name string) []byte {
	i := space(obj, 0)
	if i >= len(obj) || obj[i] != '{' {
		return nil
	}
	for i = space(obj, i+1); i < len(obj) && obj[i] == '"'; {
		end := skip(obj, i)
		found := string(obj[i+1:end-1]) == name
		i = space(obj, space(obj, end)+1)
		end = skip(obj, i)
		if found {
			return obj[i:end]
		}
		if i = space(obj, end); i < len(obj) && obj[i] == ',' {
			i = space(obj, i+1)
		}
	}
	return nil
}

func space(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' {
		i++
	}
	return i
}

// skip returns the index after the value at i.
func skip(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',', ' ', '\n':
			if depth == 0 {
				return i
			}
		}
		i++
		if depth == 0 && i < len(b) && (b[i-1] == '"' || b[i-1] == '}' || b[i-1] == ']' || b[i] == '}' || b[i] == ']') {
			return i
		}
	}
	return i
}
