package client_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// A fake is an HTTP server with an answer for each method, which the test sets. It answers other
// methods with -32601.
type fake struct {
	*httptest.Server
	on map[string]func(w http.ResponseWriter, r *http.Request, req *jsonrpc.Request)

	mu       sync.Mutex
	seen     []string // methods, and HTTP verbs other than POST; guarded by mu
	requests []*jsonrpc.Request
}

type answer = func(w http.ResponseWriter, r *http.Request, req *jsonrpc.Request)

// newFake returns a modern server with these answers, and one to server/discover.
func newFake(t *testing.T, on map[string]answer) *fake {
	t.Helper()
	f := &fake{on: map[string]answer{"server/discover": result(discovered)}}
	for method, a := range on {
		f.on[method] = a
	}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Server.Close)
	return f
}

// newLegacyFake returns a server of version 2025-11-25.
func newLegacyFake(t *testing.T, on map[string]answer) *fake {
	t.Helper()
	f := newFake(t, map[string]answer{
		"server/discover": status(http.StatusBadRequest, ""),
		"initialize":      initialized("2025-11-25", ""),
		"GET":             status(http.StatusMethodNotAllowed, ""),
		"DELETE":          status(http.StatusMethodNotAllowed, ""),
	})
	for method, a := range on {
		f.on[method] = a
	}
	return f
}

const discovered = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"public"}`

// initialized answers initialize with version v, and with a session ID unless session is "".
func initialized(v, session string) answer {
	return func(w http.ResponseWriter, r *http.Request, req *jsonrpc.Request) {
		if session != "" {
			w.Header().Set("Mcp-Session-Id", session)
		}
		result(`{"protocolVersion":"`+v+`","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}`)(w, r, req)
	}
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	name := r.Method
	var req *jsonrpc.Request
	if r.Method == http.MethodPost {
		body, _ := io.ReadAll(r.Body)
		m, bad := jsonrpc.Decode(body)
		if bad != nil {
			panic(string(body))
		}
		if m.Response != nil {
			name = "response"
			req = &jsonrpc.Request{ID: m.Response.ID, Params: body}
		} else {
			req, name = m.Request, m.Request.Method
		}
	}
	f.mu.Lock()
	f.seen = append(f.seen, name)
	if req != nil {
		f.requests = append(f.requests, req)
	}
	f.mu.Unlock()
	if a := f.on[name]; a != nil {
		a(w, r, req)
		return
	}
	if req != nil && req.IsNotification() || name == "response" {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.WriteHeader(http.StatusNotFound)
	if req != nil {
		rpcError(-32601, "no such method", "")(w, r, req)
	}
}

// methods returns the methods that were received so far.
func (f *fake) methods() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.seen...)
}

// count returns how often a method was received.
func (f *fake) count(method string) int {
	n := 0
	for _, m := range f.methods() {
		if m == method {
			n++
		}
	}
	return n
}

// all returns the requests of a method.
func (f *fake) all(method string) (found []*jsonrpc.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests {
		if r.Method == method {
			found = append(found, r)
		}
	}
	return found
}

// result answers with a result.
func result(raw string) answer {
	return func(w http.ResponseWriter, _ *http.Request, req *jsonrpc.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, raw)
	}
}

// rpcError answers with an error, without data if data is "".
func rpcError(code int, message, data string) answer {
	if data != "" {
		data = `,"data":` + data
	}
	return func(w http.ResponseWriter, _ *http.Request, req *jsonrpc.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q%s}}`, req.ID, code, message, data)
	}
}

// withStatus answers as a does, with another HTTP status.
func withStatus(code int, a answer) answer {
	return func(w http.ResponseWriter, r *http.Request, req *jsonrpc.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		a(w, r, req)
	}
}

// status answers with an HTTP status and a text.
func status(code int, text string) answer {
	return func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Request) {
		http.Error(w, text, code)
	}
}

// raw answers with this body, in which $ID stands for the ID of the request.
func raw(contentType, body string) answer {
	return func(w http.ResponseWriter, _ *http.Request, req *jsonrpc.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, withID(body, req))
	}
}

func withID(body string, req *jsonrpc.Request) string {
	return strings.ReplaceAll(body, "$ID", req.ID.String())
}

// stream answers with an event stream, event by event.
func stream(events ...string) answer {
	return func(w http.ResponseWriter, _ *http.Request, req *jsonrpc.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		for _, e := range events {
			if req != nil {
				e = withID(e, req)
			}
			_, _ = io.WriteString(w, e)
			w.(http.Flusher).Flush()
		}
	}
}

// event returns an event with data.
func event(data string) string { return "data: " + data + "\n\n" }

// done returns a response with a text.
func done(text string) string {
	return `{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[{"type":"text","text":"` + text + `"}]}}`
}

// silence does not answer. It waits until the client disconnects.
func silence(_ http.ResponseWriter, r *http.Request, _ *jsonrpc.Request) { <-r.Context().Done() }

// inTurn answers each request with the next answer, and all later ones with the last.
func inTurn(answers ...answer) answer {
	var mu sync.Mutex
	n := 0
	return func(w http.ResponseWriter, r *http.Request, req *jsonrpc.Request) {
		mu.Lock()
		a := answers[min(n, len(answers)-1)]
		n++
		mu.Unlock()
		a(w, r, req)
	}
}

// dialing is like dial but returns the error.
func dialing(t *testing.T, target any, opts ...client.DialOption) (*client.Client, error) {
	t.Helper()
	c, err := client.Dial(t.Context(), target, append([]client.DialOption{client.Logger(slog.New(slog.DiscardHandler)), client.Stderr(nil)}, opts...)...)
	if err == nil {
		t.Cleanup(func() { require.NoError(t, c.Close()) })
	}
	return c, err
}

// A taskFake is a modern server whose responses the test sets, over HTTP or a stream. It needs no
// network, so tests run it in a synctest bubble.
type taskFake struct {
	// on returns the last member of the response to a method: "result":{...} or "error":{...}. ""
	// means an HTTP status 503, or no response on a stream.
	on map[string]func(req *jsonrpc.Request) string

	mu       sync.Mutex
	requests []taskRequest // guarded by mu
}

// A taskRequest is a request that the fake received.
type taskRequest struct {
	*jsonrpc.Request
	name string // the header Mcp-Name
	at   time.Time
}

// task returns the result of a request about the task "t1".
func task(resultType, status, rest string) string {
	if rest != "" {
		rest = "," + rest
	}
	return fmt.Sprintf(`"result":{"resultType":%q,"taskId":"t1","status":%q,"createdAt":"2026-11-22T18:00:00Z","lastUpdatedAt":"2026-11-22T18:00:00Z","ttlMs":null%s}`, resultType, status, rest)
}

const (
	teaResult = `"result":{"content":[{"type":"text","text":"tea"}]}`
	emptyAck  = `"result":{"resultType":"complete"}`
)

// steps answers each request with the next text, and all later ones with the last.
func steps(texts ...string) func(*jsonrpc.Request) string {
	var mu sync.Mutex
	n := 0
	return func(*jsonrpc.Request) string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return texts[min(n, len(texts))-1]
	}
}

// newTaskFake returns a server whose calls become tasks, and whose tasks/get answers in these
// steps. The poll interval is 200 ms.
func newTaskFake(polls ...string) *taskFake {
	return &taskFake{on: map[string]func(*jsonrpc.Request) string{
		"server/discover": steps(`"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"ttlMs":0,"cacheScope":"public"}`),
		"tools/call":      steps(task("task", "working", `"pollIntervalMs":200`)),
		"tasks/get":       steps(polls...),
		"tasks/update":    steps(emptyAck),
		"tasks/cancel":    steps(emptyAck),
	}}
}

func (f *taskFake) take(req *jsonrpc.Request, name string) string {
	f.mu.Lock()
	f.requests = append(f.requests, taskRequest{req, name, time.Now()})
	f.mu.Unlock()
	if on := f.on[req.Method]; on != nil {
		return on(req)
	}
	return `"error":{"code":-32601,"message":"no such method"}`
}

// all returns the requests of a method.
func (f *taskFake) all(method string) (found []taskRequest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests {
		if r.Method == method {
			found = append(found, r)
		}
	}
	return found
}

// RoundTrip serves HTTP without a network.
func (f *taskFake) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	m, _ := jsonrpc.Decode(body)
	response := func(code int, media string, body io.ReadCloser) *http.Response {
		return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {media}}, Body: body, ContentLength: -1, Request: r}
	}
	text := f.take(m.Request, r.Header.Get("Mcp-Name"))
	switch {
	case r.Context().Err() != nil:
		return nil, r.Context().Err()
	case text == "":
		return response(http.StatusServiceUnavailable, "text/plain", http.NoBody), nil
	}
	return response(http.StatusOK, "application/json", io.NopCloser(strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, m.Request.ID, text)))), nil
}

// stream serves a stream, with a message in each line.
func (f *taskFake) stream() io.ReadWriteCloser {
	requests, toServer := io.Pipe()
	fromServer, answers := io.Pipe()
	// Ends when the client closes the stream.
	go func() {
		defer answers.Close()
		for in := bufio.NewScanner(requests); in.Scan(); {
			m, _ := jsonrpc.Decode([]byte(in.Text()))
			switch {
			case m.Request == nil || m.Request.IsNotification():
			default:
				if text := f.take(m.Request, ""); text != "" {
					_, _ = fmt.Fprintf(answers, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.Request.ID, text)
				}
			}
		}
	}()
	return &pipe{fromServer, toServer}
}

// A pipe is a stream of two pipes.
type pipe struct {
	*io.PipeReader
	w *io.PipeWriter
}

func (p *pipe) Write(b []byte) (int, error) { return p.w.Write(b) }

func (p *pipe) Close() error {
	_ = p.PipeReader.Close()
	return p.w.Close()
}

// onTasks runs a test with a client of a fake, over HTTP and over a stream, in a synctest bubble.
func onTasks(t *testing.T, newFake func() *taskFake, run func(t *testing.T, f *taskFake, dial func(opts ...client.DialOption) *client.Client)) {
	for _, transport := range []string{"HTTP", "stream"} {
		t.Run(transport, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				run(t, f, func(opts ...client.DialOption) *client.Client {
					if transport == "HTTP" {
						return dial(t, "http://tasks.example.com/mcp", append(opts, httpClient(f))...)
					}
					return dial(t, client.Stream(f.stream()), opts...)
				})
			})
		})
	}
}

func httpClient(f *taskFake) client.DialOption {
	return client.HTTPClient(&http.Client{Transport: f})
}

// A clerk accepts each form after a time, and counts them.
type clerk struct {
	wait time.Duration
	err  error

	mu    sync.Mutex
	asked []string // messages of the forms; guarded by mu
}

// Elicit accepts a form.
func (a *clerk) Elicit(_ context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	time.Sleep(a.wait)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, p.Message)
	return &protocol.ElicitResult{Action: protocol.ElicitAccept, Content: []byte(`{"ok":true}`)}, a.err
}

// questions returns the messages of the forms so far.
func (a *clerk) questions() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.asked...)
}
