package sse_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	events "github.com/mcpkit/mcpkit-go/internal/sse"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/sse"
	"github.com/mcpkit/mcpkit-go/transport/transporttest"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// client is the client's end of a session.
type client struct {
	http   *http.Client
	header http.Header
	stream io.ReadCloser
	events *events.Reader
	url    string // of the POSTs
	stop   func()
	done   <-chan struct{}
}

func open(t *testing.T, base string, header http.Header) *client {
	return openOn(t, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, base, header)
}

func openOn(t *testing.T, h *http.Client, base string, header http.Header) *client {
	c := &client{http: h, header: header}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/sse", nil)
	require.NoError(t, err)
	r.Header = header.Clone()
	resp, err := c.http.Do(r)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	c.stream, c.events = resp.Body, events.NewReader(resp.Body, 4<<20)
	first, err := c.events.Next()
	require.NoError(t, err)
	require.Equal(t, "endpoint", first.Type)
	require.Regexp(t, `^/sse\?sessionId=[A-Z2-7]{26}$`, string(first.Data))
	c.url = base + string(first.Data)
	return c
}

// post posts a message and returns the status.
func (c *client) post(message []byte, header http.Header) (int, error) {
	r, err := http.NewRequest(http.MethodPost, c.url, bytes.NewReader(message))
	if err != nil {
		return 0, err
	}
	r.Header = header.Clone()
	if r.Header == nil {
		r.Header = make(http.Header)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(r)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

func (c *client) Send(message []byte) error {
	status, err := c.post(message, c.header)
	if err == nil && status != http.StatusAccepted {
		err = fmt.Errorf("status %d", status)
	}
	return err
}

func (c *client) Receive() ([]byte, error) {
	e, err := c.events.Next()
	if err == nil && e.Type != "message" {
		err = errors.New(e.Type)
	}
	return e.Data, err
}

func (c *client) Close() error          { return c.stream.Close() }
func (c *client) Stop()                 { c.stop() }
func (c *client) Done() <-chan struct{} { return c.done }

func TestContract(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, h transport.Handler) transporttest.Conn {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		handler := sse.NewHandler(h, &sse.Options{
			MaxBodyBytes: transporttest.MaxMessageBytes, ShutdownTimeout: time.Minute, Logger: slog.New(slog.DiscardHandler),
		})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer handler.Close()
			assert.NoError(t, httpserve.Run(ctx, listener, &http.Server{Handler: handler}, func() { _ = handler.Shutdown(context.Background()) }))
		}()
		c := open(t, "http://"+listener.Addr().String(), nil)
		c.stop, c.done = stop, done
		return c
	})
}

type pong struct{}

func (pong) ServeRPC(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
	return &jsonrpc.Response{Result: []byte(`{}`)}
}

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

func TestSessionsBelongToTheirPrincipal(t *testing.T) {
	h := sse.NewHandler(pong{}, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user := r.Header.Get("User"); user != "" {
			r = r.WithContext(oauth.NewContext(r.Context(), &oauth.Principal{Subject: user}))
		}
		h.ServeHTTP(w, r)
	}))
	defer server.Close()
	ann := http.Header{"User": {"ann"}}
	c := open(t, server.URL, ann)
	for _, test := range []struct {
		name   string
		header http.Header
		status int
	}{
		{"another principal", http.Header{"User": {"bob"}}, 404},
		{"no principal", nil, 404},
		{"a foreign page", http.Header{"User": {"ann"}, "Origin": {"http://evil.example.com"}}, 403},
		{"its own", ann, 202},
	} {
		status, err := c.post([]byte(ping), test.header)
		require.NoError(t, err)
		require.Equal(t, test.status, status, test.name)
	}
	got, err := c.Receive()
	require.NoError(t, err)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{}}`, string(got))
	require.NoError(t, c.Close())
	require.NoError(t, h.Shutdown(t.Context()))
}

func TestSessionsEndWithTheirCredential(t *testing.T) {
	h := sse.NewHandler(pong{}, &sse.Options{Logger: slog.New(slog.DiscardHandler)})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &oauth.Principal{Subject: "ann", Expires: time.Now().Add(50 * time.Millisecond)}
		h.ServeHTTP(w, r.WithContext(oauth.NewContext(r.Context(), p)))
	}))
	defer server.Close()
	c := open(t, server.URL, nil)
	_, err := c.Receive()
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, c.Close())
	require.NoError(t, h.Shutdown(t.Context()))
}

var quiet = slog.New(slog.DiscardHandler)

// serveHTTP serves h. It returns the URL and an HTTP client without persistent connections.
func serveHTTP(t *testing.T, h transport.Handler, opts *sse.Options) (base string, client *http.Client) {
	t.Helper()
	opts.Logger = quiet
	handler := sse.NewHandler(h, opts)
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		handler.Close()
		server.Close()
	})
	return server.URL, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}

func TestRequestsThatAreRefused(t *testing.T) {
	base, httpClient := serveHTTP(t, pong{}, &sse.Options{MaxBodyBytes: 100})
	c := open(t, base, nil)
	post := func(url, contentType, body string) *http.Request {
		r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
		require.NoError(t, err)
		if contentType != "" {
			r.Header.Set("Content-Type", contentType)
		}
		return r
	}
	get := func(field, value string) *http.Request {
		r, err := http.NewRequest(http.MethodGet, base+"/sse", nil)
		require.NoError(t, err)
		r.Header.Set(field, value)
		return r
	}
	const isJSON = "application/json"
	for _, test := range []struct {
		name   string
		r      *http.Request
		status int
		want   string
	}{
		{"a form", post(c.url, "application/x-www-form-urlencoded", ping), 415, "Content-Type must be application/json"},
		{"text", post(c.url, "text/plain", ping), 415, "Content-Type must be application/json"},
		{"no type", post(c.url, "", ping), 415, "Content-Type must be application/json"},
		{"no session", post(base+"/sse", isJSON, ping), 400, "send messages to the URL in the endpoint event of the stream"},
		{"two sessions", post(c.url+"&sessionId=x", isJSON, ping), 400, "send messages to the URL in the endpoint event of the stream"},
		{"an unknown session", post(base+"/sse?sessionId=AAAAAAAAAAAAAAAAAAAAAAAAAA", isJSON, ping), 404, "session is unknown or has ended; open a new stream"},
		{"an empty session", post(base+"/sse?sessionId=", isJSON, ping), 404, "session is unknown or has ended; open a new stream"},
		{"a long body", post(c.url, isJSON, strings.Repeat("x", 101)), 413, "request body is larger than 100 bytes"},
		{"no stream wanted", get("Accept", "application/json"), 406, "Accept must list text/event-stream"},
		{"a foreign page", get("Origin", "http://evil.example.com"), 403, `origin "http://evil.example.com" is not allowed; name it in AllowedOrigins`},
		{"another host", func() *http.Request { r := get("X", ""); r.Host = "evil.example.com"; return r }(), 403, `host "evil.example.com" is not allowed; name it in AllowedHosts`},
		{"another verb", func() *http.Request { r := get("X", ""); r.Method = http.MethodPut; return r }(), 405, "use GET for the stream and POST for messages"},
	} {
		t.Run(test.name, func(t *testing.T) {
			resp, err := httpClient.Do(test.r)
			require.NoError(t, err)
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, test.want, strings.TrimSpace(string(body)))
			require.Equal(t, test.status, resp.StatusCode)
			if test.status == 405 {
				require.Equal(t, "GET, POST", resp.Header.Get("Allow"))
			}
		})
	}
	require.NoError(t, c.Send([]byte(ping)), "the session continues")
	_, err := c.Receive()
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

// FuzzPOST sends any body to a session, declared as anything: each is answered at once, the stream
// stays whole, and the next good request is answered.
func FuzzPOST(f *testing.F) {
	for _, body := range []string{
		ping, `[` + ping + `]`, `[]`, ``, `{`, "\n", ping + "\n" + ping, `{"jsonrpc":"2.0","method":"n","params":[]}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		strings.Repeat("[", 1000), "\xff\xfe", `{"jsonrpc":"2.0","id":"\ud800","method":"m"}`,
	} {
		f.Add(body, "application/json", "")
		f.Add(body, "application/json; charset=utf-8", "&sessionId=x")
		f.Add(body, "text/plain", "")
	}
	handler := sse.NewHandler(pong{}, &sse.Options{Logger: quiet, MaxBodyBytes: 1 << 16})
	// In memory: thousands of TCP connections a second use up all ports.
	network, closeAll := testkit.Serve(&http.Server{Handler: handler})
	f.Cleanup(func() { handler.Close(); closeAll() })
	f.Fuzz(func(t *testing.T, body, contentType, query string) {
		c := openOn(t, network, "http://mcp.test", nil)
		defer c.Close()
		r := httptest.NewRequest(http.MethodPost, "/sse", strings.NewReader(body))
		r.URL.RawQuery = c.url[strings.Index(c.url, "?")+1:] + query
		r.Header["Content-Type"] = []string{contentType}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		require.Contains(t, []int{202, 400, 404, 413, 415}, w.Code)
		// The answer to a last request is found behind whatever the body was answered with.
		status, err := c.post([]byte(`{"jsonrpc":"2.0","id":"the last one","method":"ping"}`), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusAccepted, status)
		for {
			got, err := c.Receive()
			require.NoError(t, err)
			if strings.Contains(string(got), `"the last one"`) {
				return
			}
		}
	})
}

// serveWired serves h in a synctest bubble and returns a client.
func serveWired(t *testing.T, h transport.Handler, opts *sse.Options) *http.Client {
	opts.Logger = quiet
	handler := sse.NewHandler(h, opts)
	client, closeAll := testkit.Serve(&http.Server{Handler: handler})
	t.Cleanup(func() {
		handler.Close()
		closeAll()
	})
	return client
}

// begin opens a stream. It returns the endpoint and the lines that follow.
func begin(t *testing.T, c *http.Client) (url string, lines *bufio.Reader) {
	resp, err := c.Get("http://mcp.test/sse")
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	lines = bufio.NewReader(resp.Body)
	require.Equal(t, "event: endpoint\n", line(t, lines))
	path, ok := strings.CutPrefix(line(t, lines), "data: ")
	require.True(t, ok)
	require.Equal(t, "\n", line(t, lines))
	return "http://mcp.test" + strings.TrimSpace(path), lines
}

func line(t *testing.T, lines *bufio.Reader) string {
	text, err := lines.ReadString('\n')
	require.NoError(t, err)
	return text
}

// say posts a message and returns the status.
func say(t *testing.T, c *http.Client, url, message string) int {
	resp, err := c.Post(url, "application/json", strings.NewReader(message))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

func TestSilentStreamsGetComments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serveWired(t, pong{}, &sse.Options{KeepAlive: 20 * time.Second, SessionIdle: -1})
		url, lines := begin(t, c)
		last := time.Now()
		for range 100 {
			require.True(t, strings.HasPrefix(line(t, lines), ":"))
			require.Equal(t, "\n", line(t, lines))
			require.LessOrEqual(t, time.Since(last), 20*time.Second)
			require.Greater(t, time.Since(last), 5*time.Second)
			last = time.Now()
		}
		require.Equal(t, 202, say(t, c, url, ping))
		require.Equal(t, "event: message\n", line(t, lines))
		require.Equal(t, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n", line(t, lines))
	})
}

func TestIdleSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serveWired(t, pong{}, &sse.Options{SessionIdle: 8 * time.Minute})
		url, lines := begin(t, c)
		go func() { // a session in use does not end
			for range 10 {
				time.Sleep(5 * time.Minute)
				if say(t, c, url, ping) != 202 {
					return
				}
			}
		}()
		begun := time.Now()
		answers := 0
		for {
			text, err := lines.ReadString('\n')
			if err != nil {
				require.ErrorIs(t, err, io.EOF)
				break
			}
			if strings.HasPrefix(text, "data:") {
				answers++
			}
		}
		require.Equal(t, 10, answers)
		require.GreaterOrEqual(t, time.Since(begun), 58*time.Minute)
		require.LessOrEqual(t, time.Since(begun), 59*time.Minute+time.Second, "comments do not count as use")
		require.Equal(t, 404, say(t, c, url, ping))
	})
}

// unread has large responses. "block" waits for the end of its context and sends the time.
type unread chan time.Time

func (u unread) ServeRPC(ctx context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
	if req.Method == "block" {
		<-ctx.Done()
		u <- time.Now()
	}
	return &jsonrpc.Response{Result: []byte(`"` + strings.Repeat("x", 64<<10) + `"`)}
}

func TestClientThatDoesNotReadIsDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := make(unread, 1)
		c := serveWired(t, h, &sse.Options{WriteTimeout: time.Second, KeepAlive: -1})
		url, lines := begin(t, c)
		require.Equal(t, 202, say(t, c, url, `{"jsonrpc":"2.0","id":1,"method":"block"}`))
		time.Sleep(10 * time.Millisecond)
		begun := time.Now()
		require.Equal(t, 202, say(t, c, url, `{"jsonrpc":"2.0","id":2,"method":"large"}`))
		require.Equal(t, time.Second, (<-h).Sub(begun), "the calls end")
		synctest.Wait() // the server cuts the stream before the client reads again
		_, err := io.Copy(io.Discard, lines)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.Equal(t, time.Second, time.Since(begun), "the stream is cut")
		require.Equal(t, 404, say(t, c, url, ping))
	})
}

func TestUnfinishedPOSTsHoldBoundedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		httpClient := serveWired(t, pong{}, &sse.Options{MaxBytes: 64 << 20})
		c := openOn(t, httpClient, "http://mcp.test", nil)
		ctx, cancel := context.WithCancel(t.Context())
		statuses := make(chan int, 20)
		var posts sync.WaitGroup
		for range cap(statuses) {
			// Ends with ctx, or when the POST is refused.
			posts.Go(func() {
				body := io.MultiReader(strings.NewReader(strings.Repeat(" ", 4<<20-1)), untilDone{ctx})
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, body)
				if err != nil {
					return
				}
				r.Header.Set("Content-Type", "application/json")
				if resp, err := httpClient.Do(r); err == nil {
					_ = resp.Body.Close()
					statuses <- resp.StatusCode
				}
			})
		}
		require.Equal(t, http.StatusServiceUnavailable, <-statuses, "twenty bodies of 4 MiB exceed the limit of 64 MiB")
		cancel()
		posts.Wait()
		require.Eventually(t, func() bool { return c.Send([]byte(ping)) == nil }, time.Minute, time.Millisecond, "the memory is free again")
		_, err := c.Receive()
		require.NoError(t, err)
		require.NoError(t, c.Close())
	})
}

// untilDone is a body that sends nothing until its context ends.
type untilDone struct{ context.Context }

func (u untilDone) Read([]byte) (int, error) {
	<-u.Done()
	return 0, u.Err()
}

// large has a response of 1 MB, for which it reserves memory, and counts what it was refused.
type large struct{ made, refused atomic.Int32 }

func (l *large) ServeRPC(_ context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	if req.Method == "ping" {
		return &jsonrpc.Response{Result: []byte(`{}`)}
	}
	if err := peer.(transport.Reserver).Reserve(2 << 20); err != nil {
		l.refused.Add(1)
		return &jsonrpc.Response{Error: err.(*jsonrpc.Error)}
	}
	l.made.Add(1)
	return &jsonrpc.Response{Result: []byte(`"` + strings.Repeat("x", 1<<20) + `"`)}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// It also holds for WebSockets, whose connections share the limit in the same way.
func TestUnreadResponsesOfAllSessionsAreLimited(t *testing.T) {
	for _, name := range []string{"HTTP+SSE", "WebSocket"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &large{}
				var handler http.Handler = sse.NewHandler(h, &sse.Options{MaxBytes: 8 << 20, Logger: quiet})
				if name == "WebSocket" {
					handler = websocket.NewHandler(h, &websocket.Options{MaxBytes: 8 << 20, KeepAlive: -1, Logger: quiet})
				}
				c, closeAll := testkit.Serve(&http.Server{Handler: handler})
				defer closeAll()
				open := func() (send func(message string), next func() string) {
					if name == "WebSocket" {
						conn, err := websocket.Dial(t.Context(), "ws://mcp.test", &websocket.DialOptions{Client: c})
						require.NoError(t, err)
						t.Cleanup(func() { _ = conn.Close() })
						return func(m string) { _, _ = conn.Write([]byte(m + "\n")) }, func() string { m, _ := conn.Read(); return string(m) }
					}
					url, lines := begin(t, c)
					return func(m string) { require.Equal(t, 202, say(t, c, url, m)) }, func() string { return line(t, lines) + line(t, lines) }
				}
				send, next := open()
				before := heap()
				const call, n = `{"jsonrpc":"2.0","id":1,"method":"large"}`, 300
				for range n {
					send, _ := open()
					send(call)
				}
				synctest.Wait()
				require.EqualValues(t, n, h.made.Load()+h.refused.Load())
				require.Less(t, h.made.Load(), int32(40), "a few more are refused once they are encoded")
				require.Less(t, heap()-before, int64(48<<20), "300 connections, and responses of 8 MB")
				send(ping)
				require.Contains(t, next(), `"result":{}`, "others are served")
				time.Sleep(time.Minute) // all are disconnected
				send, next = open()
				send(call)
				require.Contains(t, next(), `"result":"xxx`, "the memory is free again")
			})
		})
	}
}
