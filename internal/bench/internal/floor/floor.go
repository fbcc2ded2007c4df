// Package floor is a minimal server and client of the benchmark's tools, the lower bound of the
// comparison. The server assumes that messages are well-formed, finds the values that it needs in one
// pass, and answers in one write, of parts that were made before. It validates nothing.
package floor

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/bench/internal/work"
)

// A Server answers requests.
type Server struct{ list string }

// New returns a server with n tools. Those beyond the four of the benchmark are all alike.
func New(n int) *Server {
	var b strings.Builder
	b.WriteString(four)
	for i := len(work.Names); i < n; i++ {
		b.WriteString(`,{"name":"tool` + strconv.Itoa(i) + `","inputSchema":` + work.SearchSchema + `,"outputSchema":` + work.SearchOutSchema + `}`)
	}
	return &Server{b.String() + "]"}
}

// A message is a request and its response.
type message struct{ in, out []byte }

var messages = sync.Pool{New: func() any { return &message{in: make([]byte, 0, 4096), out: make([]byte, 0, 4096)} }}

// The values of headers.
var (
	typeJSON   = []string{"application/json"}
	typeStream = []string{"text/event-stream"}
	session    = []string{"floor"}
)

// A Handler responds to POST requests with JSON, or at the path /sse with a stream of one event. A
// GET, or subscriptions/listen, opens a stream of notifications.
type Handler struct {
	*Server

	mu      sync.Mutex
	streams map[http.ResponseWriter][]byte // the event of each; guarded by mu
}

var (
	updated    = []byte("event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\"params\":{\"uri\":\"" + work.URI + "\"}}\n\n")
	updated2   = bytes.Replace(updated, []byte(`"}}`), []byte(`",`+subscribed+`}}`), 1) // of subscription 2
	subscribed = `"_meta":{"io.modelcontextprotocol/subscriptionId":2}`
	accepted   = []byte("event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{" + subscribed + "}}\n\n")
	listening  = []string{"subscriptions/listen"}
)

// Notify writes a notification to each stream.
func (h *Handler) Notify() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w, event := range h.streams {
		_, _ = w.Write(event)
		w.(http.Flusher).Flush()
	}
}

func (h *Handler) listen(w http.ResponseWriter, r *http.Request, first, event []byte) {
	w.Header()["Content-Type"] = typeStream
	h.mu.Lock()
	if h.streams == nil {
		h.streams = map[http.ResponseWriter][]byte{}
	}
	h.streams[w] = event
	_, _ = w.Write(first)
	w.(http.Flusher).Flush() // the client counts on notifications from now on
	h.mu.Unlock()
	<-r.Context().Done()
	h.mu.Lock()
	delete(h.streams, w)
	h.mu.Unlock()
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		h.listen(w, r, nil, updated)
		return
	}
	if slices.Equal(r.Header["Mcp-Method"], listening) {
		_, _ = io.Copy(io.Discard, r.Body) // or net/http would not notice the end of the connection
		h.listen(w, r, accepted, updated2)
		return
	}
	m := messages.Get().(*message)
	defer messages.Put(m)
	if n := int(r.ContentLength); cap(m.in) < n {
		m.in = make([]byte, n)
	} else {
		m.in = m.in[:max(n, 0)]
	}
	if _, err := io.ReadFull(r.Body, m.in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	stream := r.URL.Path == "/sse"
	m.out = m.out[:0]
	if stream {
		m.out = append(m.out, "event: message\ndata: "...)
	}
	before := len(m.out)
	version := r.Header["Mcp-Protocol-Version"]
	m.out = h.Answer(m.out, m.in, len(version) > 0 && version[0] == "2026-07-28")
	if len(m.out) == before {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	header := w.Header()
	if version == nil {
		header["Mcp-Session-Id"] = session
	}
	if stream {
		m.out = append(m.out, "\n\n"...)
		header["Content-Type"] = typeStream
		_, _ = w.Write(m.out)
		w.(http.Flusher).Flush() // like servers that do not know the length of the stream
		return
	}
	header["Content-Type"] = typeJSON
	if len(m.out) > 2048 { // net/http counts shorter ones itself
		header["Content-Length"] = []string{strconv.Itoa(len(m.out))}
	}
	_, _ = w.Write(m.out)
}

// modernMeta occurs in every request of 2026-07-28.
var modernMeta = []byte(`"io.modelcontextprotocol/protocolVersion"`)

// Stdio responds to lines. It writes when no further line has arrived.
func (s *Server) Stdio(in io.Reader, out io.Writer) error {
	r := bufio.NewReaderSize(in, 64<<10)
	var b []byte
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		before := len(b)
		if b = s.Answer(b, line, bytes.Contains(line, modernMeta)); len(b) > before {
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

// Answer appends the response to msg. For a notification it appends nothing.
func (s *Server) Answer(b, msg []byte, modern bool) []byte {
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
		b = append(b, `"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"floor","version":"1"}`...)
	case `"server/discover"`:
		b = append(b, `"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"`...)
	case `"tools/list"`:
		b = append(b, s.list...)
	case `"tools/call"`:
		b = call(b, params)
	}
	if modern {
		b = append(b, `,"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"floor","version":"1"}}`...)
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
			in.Query = text(value)
		case "limit":
			in.Limit = number(value)
		case "tags":
			for i := space(value, 1); value[i] == '"'; {
				end := skip(value, i)
				in.Tags = append(in.Tags, text(value[i:end]))
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
					in.Filter.Field = text(field)
				case "op":
					in.Filter.Op = text(field)
				case "value":
					in.Filter.Value = text(field)
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

func text(raw []byte) string {
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
