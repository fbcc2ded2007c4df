package streamable

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

func TestBadRequestsAreRefusedAndTheNextGoodOneIsAnswered(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":5,"method":"echo","params":{}}`
	const modern = "2026-07-28"
	for _, test := range []struct {
		name   string
		method string // POST if empty
		fields []string
		body   string // call if empty
		status int
		want   string // part of the body
	}{
		{name: "malformed JSON", body: `{"jsonrpc":`, status: 400, want: `"id":null,"error":{"code":-32700,"message":"invalid JSON: `},
		{name: "not a message", body: `"hello"`, status: 400,
			want: `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid message: a message is a JSON object"}}`},
		{name: "text/plain", fields: []string{"Content-Type", "text/plain"}, status: 415,
			want: `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Content-Type must be application/json"}}`},
		{name: "Accept of HTML", fields: []string{"Accept", "text/html"}, status: 406,
			want: `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Accept must list application/json and text/event-stream"}}`},
		{name: "large body", body: strings.Repeat(" ", 2000) + call, status: 413,
			want: `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"request body is larger than 1000 bytes"}}`},
		{name: "foreign origin", fields: []string{"Origin", "http://evil.example.com"}, status: 403,
			want: `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"origin \"http://evil.example.com\" is not allowed; name it in AllowedOrigins"}}`},
		{name: "rebound host", fields: []string{"Host", "evil.example.com", "Origin", "http://evil.example.com"}, status: 403,
			want: `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"host \"evil.example.com\" is not allowed; name it in AllowedHosts"}}`},
		{name: "PUT", method: "PUT", status: 405,
			want: `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"method PUT is not served here; use POST, GET, DELETE"}}`},
		{name: "modern GET", method: "GET", fields: []string{"MCP-Protocol-Version", modern}, status: 405, want: "method GET is not served here; use POST"},
		{name: "GET without a session", method: "GET", status: 400, want: "header Mcp-Session-Id is missing"},
		{name: "GET that does not accept streams", method: "GET", fields: []string{"Accept", "application/json"}, status: 406, want: "Accept must list text/event-stream"},
		{name: "no session", status: 400,
			want: `{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"header Mcp-Session-Id is missing; send initialize first, and then the session ID of its response"}}`},
		{name: "unknown session", fields: []string{"Mcp-Session-Id", "MADEUPMADEUPMADEUPMADEUPMA"}, status: 404,
			want: `{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"session is unknown or has ended; send initialize without a session id"}}`},
		{name: "session and unsupported version", fields: []string{"Mcp-Session-Id", "SESSION", "MCP-Protocol-Version", "1999-01-01"}, status: 400,
			want: `{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"header MCP-Protocol-Version: \"1999-01-01\" is not a version with sessions; send the version that initialize agreed on"}}`},
		{name: "batch in a session of another version", fields: []string{"Mcp-Session-Id", "SESSION"}, body: `[` + call + `]`, status: 400,
			want: `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batches exist only in 2025-03-26; send each message by itself"}}`},
		{name: "modern batch", fields: []string{"MCP-Protocol-Version", modern}, body: `[` + call + `]`, status: 400, want: "batches exist only in 2025-03-26"},
		{name: "batch without a session", body: `[` + call + `]`, status: 400, want: "header Mcp-Session-Id is missing"},
		{name: "modern response", fields: []string{"MCP-Protocol-Version", modern}, body: `{"jsonrpc":"2.0","id":1,"result":{}}`, status: 400,
			want: `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a response needs a session; modern and stateless servers send no requests"}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t, nil, &Options{MaxBodyBytes: 1000})
			good := s.legacy("2025-11-25")
			if test.method == "" {
				test.method = http.MethodPost
			}
			if test.body == "" {
				test.body = call
			}
			for i, value := range test.fields {
				if value == "SESSION" {
					test.fields[i] = good.header.Get("Mcp-Session-Id")
				}
			}
			resp := s.client(test.fields...).send(test.method, test.body)
			body := read(t, resp)
			require.Equal(t, test.status, resp.StatusCode, body)
			if strings.HasPrefix(test.want, "{") {
				require.Equal(t, test.want, body)
			} else {
				require.Contains(t, body, test.want)
			}
			if test.status == http.StatusMethodNotAllowed {
				require.NotEmpty(t, resp.Header.Get("Allow"))
			}
			good.works()
			s.modern().works()
		})
	}
}

func TestRepeatedHeadersAreRefused(t *testing.T) {
	s := serve(t, nil, nil)
	legacy := s.legacy("2025-06-18")
	for _, name := range []string{"MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Session-Id", "Mcp-Param-Region"} {
		for _, test := range []struct {
			family string
			c      *client
			code   int
		}{
			{"modern", s.modern(), -32020},
			{"legacy", legacy, -32600},
		} {
			t.Run(test.family+" "+name, func(t *testing.T) {
				c := test.c.with()
				value := c.header.Get(name)
				c.header[http.CanonicalHeaderKey(name)] = []string{value, value}
				resp := c.call(9, "echo")
				require.Equal(t, http.StatusBadRequest, resp.StatusCode)
				require.Equal(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":"header %s is repeated"}}`,
					test.code, http.CanonicalHeaderKey(name)), read(t, resp))
				test.c.works()
			})
		}
	}
}

func TestAllowedHostsApplyToEveryAddress(t *testing.T) {
	h := NewHandler(&scripted{}, &Options{AllowedHosts: []string{"mcp.example.com"}})
	defer h.Close()
	post := func(host string, fields ...string) int {
		r := newPost(call1(1, "echo"), append(fields, "Mcp-Protocol-Version", "2026-07-28")...)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	require.Equal(t, http.StatusOK, post("mcp.example.com"))
	require.Equal(t, http.StatusOK, post("localhost:8080"), "names of this machine cannot be rebound")
	require.Equal(t, http.StatusForbidden, post("evil.example.com"))
	require.Equal(t, http.StatusForbidden, post("evil.example.com", "X-Forwarded-Host", "mcp.example.com"), "anyone can send that")
}

// A client that writes its whole body before it reads must get the response, not a broken
// connection.
func TestRefusedBodiesAreReadToTheirEnd(t *testing.T) {
	s := serve(t, nil, nil)
	const size = 12 << 20
	for _, test := range []struct {
		name   string
		fields string
		status string
	}{
		{"too large", "Content-Type: application/json\r\n", "413 Request Entity Too Large"},
		{"not JSON", "Content-Type: text/plain\r\n", "415 Unsupported Media Type"},
		{"foreign page", "Content-Type: application/json\r\nOrigin: https://evil.example.com\r\n", "403 Forbidden"},
	} {
		t.Run(test.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			require.NoError(t, err)
			defer conn.Close()
			head := fmt.Sprintf("POST / HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n", test.fields, size)
			_, err = io.WriteString(conn, head)
			require.NoError(t, err)
			_, err = io.Copy(conn, io.LimitReader(endless(' '), size))
			require.NoError(t, err, "the server closed the connection before the body was written")
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			require.Equal(t, test.status, resp.Status)
			_ = resp.Body.Close()
		})
	}
}

// endless is a body without end.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

func TestVersionOfARequest(t *testing.T) {
	const meta = `,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"a":1}`
	for _, test := range []struct {
		name    string
		version string
		session string
		params  string
		modern  bool
	}{
		{name: "nothing"},
		{name: "legacy version", version: "2025-06-18"},
		{name: "modern version", version: "2026-07-28", modern: true},
		{name: "modern version with a session", version: "2026-07-28", session: "x", modern: true},
		{name: "future version", version: "2031-01-01", modern: true},
		{name: "unknown version", version: "v999", modern: true},
		{name: "unknown version with a session", version: "v999", session: "x"},
		{name: "meta alone", params: meta, modern: true},
		{name: "meta against the version", version: "2025-06-18", params: meta, modern: true},
		{name: "other meta", params: `,"params":{"_meta":{"progressToken":1}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t, nil, nil)
			resp := s.client("MCP-Protocol-Version", test.version, "Mcp-Session-Id", test.session).
				post(`{"jsonrpc":"2.0","id":1,"method":"echo"` + test.params + `}`)
			if test.modern {
				require.Equal(t, http.StatusOK, resp.StatusCode, read(t, resp))
			} else {
				require.Equal(t, http.StatusBadRequest, resp.StatusCode, read(t, resp))
			}
		})
	}
}

// FuzzPOST sends any body with any of the header fields that routing reads. There is always one
// valid reply, and the next valid request is answered.
func FuzzPOST(f *testing.F) {
	for _, body := range []string{
		call1(7, "talk"), call1(1, "echo"), `[` + call1(1, "echo") + `,` + call1(2, "talk") + `]`, `{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, `{"jsonrpc":"2.0","id":0,"method":"initialize"}`,
		`[1,{}]`, `{"jsonrpc":"2.0","id":1,"method":"echo","params":{"_meta":null}}`, `{"id":`, ``,
	} {
		f.Add(body, "2026-07-28", "", "application/json, text/event-stream")
		f.Add(body, "", "SESSION", "application/json, text/event-stream")
		f.Add(body, "2025-03-26", "SESSION", "*/*")
		f.Add(body, "v999", "unknown", "application/json;q=0")
	}
	h := NewHandler(&scripted{methods: script{"talk": talkative}}, nil)
	f.Cleanup(h.Close)
	open := httptest.NewRecorder()
	h.ServeHTTP(open, newPost(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}`))
	session := open.Header().Get("Mcp-Session-Id")
	f.Fuzz(func(t *testing.T, body, version, id, accept string) {
		if id == "SESSION" {
			id = session
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, newPost(body, "MCP-Protocol-Version", version, "Mcp-Session-Id", id, "Accept", accept))
		switch w.Header().Get("Content-Type") {
		case "application/json":
			require.True(t, json.Valid(w.Body.Bytes()), "%q", w.Body.String())
		case "text/event-stream":
			require.Equal(t, http.StatusOK, w.Code)
		default:
			require.Equal(t, http.StatusAccepted, w.Code)
			require.Empty(t, w.Body.String())
		}
		w = httptest.NewRecorder()
		h.ServeHTTP(w, newPost(call1(4711, "echo"), "Mcp-Session-Id", session))
		require.Equal(t, `{"jsonrpc":"2.0","id":4711,"result":{"a":1}}`, w.Body.String())
		require.True(t, free(h), "nothing is held")
	})
}

func FuzzEventID(f *testing.F) {
	f.Add("0-0")
	f.Add("1-18446744073709551615")
	f.Add("--")
	f.Fuzz(func(t *testing.T, s string) {
		if name, seq, ok := parseEventID(s); ok {
			again, seqAgain, ok := parseEventID(eventID(&stream{name: name}, seq))
			require.True(t, ok)
			require.Equal(t, name, again)
			require.Equal(t, seq, seqAgain)
		}
	})
}

func TestAbandonedSessionsCostNothing(t *testing.T) {
	h := NewHandler(silentRPC{}, nil)
	defer h.Close()
	open := func() {
		require.Equal(t, http.StatusOK, status(h, "", begin(t, h, ""), pingBody))
	}
	open()
	before, goroutines := heap(), runtime.NumGoroutine()
	for range 20_000 {
		open()
	}
	require.Less(t, heap()-before, int64(2<<20))
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines) // those of other tests may have ended
	require.Len(t, h.sessions.all, maxSpare)
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestSubscriptionsWithLargeBodiesAreRefused(t *testing.T) {
	s := serve(t, script{"subscriptions/listen": func(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
		return result(req, string(req.Params))
	}}, nil)
	c := s.modern()
	body := func(size int) string {
		head, tail := `{"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{"notifications":{}}`, `}`
		return head + strings.Repeat(" ", size-len(head)-len(tail)) + tail
	}
	resp := c.post(body(maxListenBytes))
	require.Equal(t, `{"jsonrpc":"2.0","id":5,"result":{"notifications":{}}}`, read(t, resp))
	resp = c.post(body(maxListenBytes + 1))
	require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
	require.Equal(t, `{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"request body is larger than 262144 bytes"}}`, read(t, resp))
	c.works()
}

func TestListeningStreamsAreLimited(t *testing.T) {
	started := make(chan struct{}, 10)
	h := NewHandler(&scripted{methods: script{"subscriptions/listen": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
		if peer.Session() != nil { // legacy versions have no such method
			return result(req, `{}`)
		}
		started <- struct{}{}
		<-ctx.Done()
		return result(req, `{}`)
	}}}, &Options{MaxSubscriptions: 2})
	defer h.Close()
	listen := func(ctx context.Context) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, newPost(call1(1, "subscriptions/listen"), "Mcp-Protocol-Version", "2026-07-28").WithContext(ctx))
		return w
	}
	ctx, cancel := context.WithCancel(t.Context())
	var open sync.WaitGroup
	for range 2 {
		open.Go(func() { listen(ctx) })
		<-started
	}
	w := listen(ctx)
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, w.Body.String(), "busy: too many streams listen; try again later")
	require.Equal(t, http.StatusOK, status(h, "", begin(t, h, ""), call1(1, "subscriptions/listen")))
	cancel()
	open.Wait()
	require.True(t, h.listening.begin("address 192.0.2.1"))
}

// mostHeap is twice the limit: while a body grows, it is in memory twice.
const mostHeap = 64 << 20

func TestHeldBodiesCostLittleMemory(t *testing.T) {
	const n, size = 30, defaultMaxBodyBytes - 1
	s := serve(t, nil, &Options{MaxBytes: 32 << 20})
	before := heap()
	var conns []net.Conn
	var answered sync.WaitGroup
	var mu sync.Mutex
	refused := 0
	for range n {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		require.NoError(t, err)
		conns = append(conns, conn)
		_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nContent-Length: %d\r\n\r\n", size)
		require.NoError(t, err)
		answered.Go(func() {
			// The server waits for the last byte unless it refuses the request.
			_, _ = io.Copy(conn, io.LimitReader(endless(' '), size-1))
			if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
				_ = resp.Body.Close()
				mu.Lock()
				defer mu.Unlock()
				if resp.StatusCode == http.StatusServiceUnavailable {
					refused++
				}
			}
		})
	}
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return refused >= n-(32<<20)/size
	}, 2*time.Minute, 50*time.Millisecond, "requests beyond the limit are refused")
	require.Less(t, heap()-before, int64(mostHeap))
	for _, conn := range conns {
		_ = conn.Close()
	}
	answered.Wait()
	require.Eventually(t, func() bool { return free(s.handler) }, time.Minute, time.Millisecond, "all is free again")
	s.modern().works()
}

func TestUnreadResponsesCostLittleMemory(t *testing.T) {
	const n, size = 40, 8 << 20
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			var made, refused atomic.Int32
			s := serve(t, script{"big": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
				if peer.Session() != nil { // the reply becomes a stream
					_ = peer.Notify(ctx, notification("notifications/progress", `{}`))
				}
				if err := peer.(transport.Reserver).Reserve(2 * size); err != nil {
					refused.Add(1)
					return &jsonrpc.Response{ID: req.ID, Error: err.(*jsonrpc.Error)}
				}
				made.Add(1)
				return result(req, `"`+strings.Repeat("x", size)+`"`)
			}}, &Options{MaxBytes: 32 << 20})
			c := s.modern()
			if version != "2026-07-28" {
				c = s.legacy(version)
			}
			before := heap()
			for i := range n {
				resp := c.call(i, "big")
				defer resp.Body.Close()
				if i == n-1 && version == "2026-07-28" {
					require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
				}
			}
			require.Eventually(t, func() bool { return made.Load()+refused.Load() == n }, time.Minute, time.Millisecond)
			require.LessOrEqual(t, made.Load(), int32(3))
			require.Eventually(t, func() bool { return heap()-before < int64(made.Load())*size*3/2 }, time.Minute, 10*time.Millisecond,
				"of each unread response there is one copy")
			c.http.CloseIdleConnections()
			s.modern().works()
		})
	}
}

// free reports whether no request holds memory.
func free(h *Handler) bool {
	held := conn.Share{All: &h.bytes}
	defer held.Close()
	return held.Take(h.bytes.Max)
}
