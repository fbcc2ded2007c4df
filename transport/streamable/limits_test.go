package streamable

import (
	"bufio"
	"context"
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
