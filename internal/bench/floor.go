package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/bench/work"
)

// A floor is the lower bound of the comparison. It assumes that messages are well-formed, finds the
// values that it needs in one pass, and answers in one write, of parts that were made before.
type floor struct {
	list string // the result of tools/list

	mu      sync.Mutex
	streams map[http.ResponseWriter]bool // guarded by mu
}

func newFloor(tools int) program {
	var list strings.Builder
	list.WriteString(four)
	for i := range tools - 4 {
		list.WriteString(`,{"name":"tool` + strconv.Itoa(i) + `","inputSchema":` + work.SearchSchema +
			`,"outputSchema":` + work.SearchOutSchema + `}`)
	}
	f := &floor{list: list.String() + "]", streams: map[http.ResponseWriter]bool{}}
	return program{
		memory: func() answer { return func(dst, msg []byte) []byte { return f.answer(dst, msg, false) } },
		stdio:  func() error { return f.stdio(os.Stdin, os.Stdout) },
		http:   func() http.Handler { return f },
		notify: f.notify,
	}
}

// An exchange is a request and its response.
type exchange struct{ in, out []byte }

var exchanges = sync.Pool{New: func() any { return &exchange{in: make([]byte, 0, 4096), out: make([]byte, 0, 4096)} }}

// The values of headers.
var (
	typeJSON   = []string{"application/json"}
	typeStream = []string{"text/event-stream"}
	session    = []string{"floor"}
)

var updated = []byte("event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\"," +
	"\"params\":{\"uri\":\"" + work.URI + "\"}}\n\n")

// notify writes a notification to each stream.
func (f *floor) notify() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.streams {
		_, _ = w.Write(updated)
		w.(http.Flusher).Flush()
	}
}

func (f *floor) listen(w http.ResponseWriter, r *http.Request) {
	w.Header()["Content-Type"] = typeStream
	f.mu.Lock()
	f.streams[w] = true
	w.(http.Flusher).Flush() // the client counts on notifications from now on
	f.mu.Unlock()
	<-r.Context().Done()
	f.mu.Lock()
	delete(f.streams, w)
	f.mu.Unlock()
}

func (f *floor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		f.listen(w, r)
		return
	}
	x := exchanges.Get().(*exchange)
	defer exchanges.Put(x)
	if n := int(r.ContentLength); cap(x.in) < n {
		x.in = make([]byte, n)
	} else {
		x.in = x.in[:max(n, 0)]
	}
	if _, err := io.ReadFull(r.Body, x.in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	version := r.Header["Mcp-Protocol-Version"]
	x.out = f.answer(x.out[:0], x.in, len(version) > 0 && version[0] == modern)
	if len(x.out) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	header := w.Header()
	if version == nil {
		header["Mcp-Session-Id"] = session
	}
	header["Content-Type"] = typeJSON
	if len(x.out) > 2048 { // net/http counts shorter ones itself
		header["Content-Length"] = []string{strconv.Itoa(len(x.out))}
	}
	_, _ = w.Write(x.out)
}

// modernMeta occurs in every request of 2026-07-28.
var modernMeta = []byte(`"io.modelcontextprotocol/protocolVersion"`)

// stdio responds to lines. It writes when no further line has arrived.
func (f *floor) stdio(in io.Reader, out io.Writer) error {
	r := bufio.NewReaderSize(in, 64<<10)
	var b []byte
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		before := len(b)
		if b = f.answer(b, line, bytes.Contains(line, modernMeta)); len(b) > before {
			b = append(b, '\n')
		}
		if len(b) > 0 && (r.Buffered() == 0 || len(b) > 64<<10) {
			if _, err := out.Write(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
}

// answer appends the response to msg. For a notification it appends nothing.
func (f *floor) answer(b, msg []byte, isModern bool) []byte {
	var id, method, params []byte
	for i := 0; ; {
		var name, value []byte
		if name, value, i = member(msg, i); name == nil {
			break
		}
		switch string(name) {
		case "id":
			id = value
		case "method":
			method = value
		case "params":
			params = value
		}
	}
	if id == nil {
		return b
	}
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	b = append(b, `,"result":{`...)
	switch string(method) {
	case `"initialize"`:
		b = append(b, `"protocolVersion":"2025-11-25","capabilities":{"tools":{}},`+
			`"serverInfo":{"name":"floor","version":"1"}`...)
	case `"server/discover"`:
		b = append(b, `"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"`...)
	case `"tools/list"`:
		b = append(b, f.list...)
	case `"tools/call"`:
		b = call(b, params)
	}
	if isModern {
		b = append(b, `,"resultType":"complete",`+
			`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"floor","version":"1"}}`...)
	}
	return append(b, "}}"...)
}

const four = `"tools":[{"name":"add","inputSchema":` + work.AddSchema + `,"outputSchema":` + work.AddOutSchema +
	`},{"name":"blob","inputSchema":` + work.BlobSchema + `},{"name":"echo","inputSchema":` + work.EchoSchema +
	`},{"name":"search","inputSchema":` + work.SearchSchema + `,"outputSchema":` + work.SearchOutSchema + `}`

func call(b, params []byte) []byte {
	var tool, args []byte
	for i := 0; ; {
		var name, value []byte
		if name, value, i = member(params, i); name == nil {
			break
		}
		switch string(name) {
		case "name":
			tool = value
		case "arguments":
			args = value
		}
	}
	switch string(tool) {
	case `"add"`:
		_, x, i := member(args, 0)
		_, y, _ := member(args, i)
		sum := work.Add(work.AddInput{A: number(x), B: number(y)}).Sum
		b = append(b, `"content":[{"type":"text","text":"{\"sum\":`...)
		b = strconv.AppendInt(b, int64(sum), 10)
		b = append(b, `}"}],"structuredContent":{"sum":`...)
		b = strconv.AppendInt(b, int64(sum), 10)
		return append(b, '}')
	case `"echo"`:
		_, text, _ := member(args, 0)
		b = append(b, `"content":[{"type":"text","text":`...)
		b = append(b, text...)
		return append(b, "}]"...)
	case `"blob"`:
		_, n, _ := member(args, 0)
		b = append(b, `"content":[{"type":"text","text":"`...)
		b = append(b, work.Blob(work.BlobInput{N: number(n)})...) // nothing in it is escaped
		return append(b, `"}]`...)
	case `"search"`:
		n := len(work.Search(searchInput(args)).Hits)
		b = append(b, `"content":[{"type":"text","text":"{\"hits\":[`...)
		for _, h := range hits[:n] {
			b = append(b, h.text...)
		}
		b = b[:len(b)-1] // the comma
		b = append(b, `]}"}],"structuredContent":{"hits":[`...)
		for _, h := range hits[:n] {
			b = append(b, h.json...)
		}
		return append(b[:len(b)-1], "]}"...)
	}
	return b
}

func searchInput(args []byte) work.SearchInput {
	in := work.SearchInput{Limit: 10}
	for i := 0; ; {
		var name, value []byte
		if name, value, i = member(args, i); name == nil {
			return in
		}
		switch string(name) {
		case "query":
			in.Query = unquote(value)
		case "limit":
			in.Limit = number(value)
		case "tags":
			for i := space(value, 1); value[i] == '"'; {
				end := skip(value, i)
				in.Tags = append(in.Tags, unquote(value[i:end]))
				if i = space(value, end); value[i] == ',' {
					i = space(value, i+1)
				}
			}
		case "filter":
			in.Filter = &work.Filter{}
			for i := 0; ; {
				var name, field []byte
				if name, field, i = member(value, i); name == nil {
					break
				}
				switch string(name) {
				case "field":
					in.Filter.Field = unquote(field)
				case "op":
					in.Filter.Op = unquote(field)
				case "value":
					in.Filter.Value = unquote(field)
				}
			}
		}
	}
}

// hits are the results of search as JSON, and as JSON in a string, each with a comma.
var hits = func() (all []struct{ json, text string }) {
	for _, h := range work.Search(work.SearchInput{Limit: 100}).Hits {
		b, _ := json.Marshal(h)
		text, _ := json.Marshal(string(b))
		all = append(all, struct{ json, text string }{string(b) + ",", string(text[1:len(text)-1]) + ","})
	}
	return all
}()

func number(raw []byte) int {
	n, _ := strconv.Atoi(string(raw))
	return n
}

func unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

// member returns a member of a JSON object and where the next begins. The first begins at 0. After the
// last, the name is nil.
func member(obj []byte, i int) (name, value []byte, next int) {
	if i == 0 {
		i = space(obj, 0) + 1
	}
	if i = space(obj, i); i >= len(obj) || obj[i] != '"' {
		return nil, nil, i
	}
	end := quoted(obj, i)
	name = obj[i+1 : end-1]
	i = space(obj, space(obj, end)+1)
	end = skip(obj, i)
	value = obj[i:end]
	if i = space(obj, end); i < len(obj) && obj[i] == ',' {
		i++
	}
	return name, value, i
}

func space(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' {
		i++
	}
	return i
}

// quoted returns the index after the string at i.
func quoted(b []byte, i int) int {
	for i++; ; i++ {
		n := bytes.IndexByte(b[i:], '"')
		escape := bytes.IndexByte(b[i:i+n], '\\')
		if escape < 0 {
			return i + n + 1
		}
		i += escape + 1
	}
}

// skip returns the index after the value at i.
func skip(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			i = quoted(b, i)
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth <= 0 {
				return i + 1 + depth // a number ends before the bracket
			}
		case ',', ' ', '\n':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return i
}
