package sse_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/sse"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

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
