package streamable

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

func TestListeningStreamsAreLimited(t *testing.T) {
	started := make(chan struct{}, 10)
	h := NewHandler(&scripted{methods: script{"subscriptions/listen": func(ctx context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
		started <- struct{}{}
		<-ctx.Done()
		return result(req, `{}`)
	}}}, &Options{MaxSubscriptions: 2})
	defer h.Close()
	listen := func(ctx context.Context) *recorder {
		w := newRecorder()
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
	require.Equal(t, http.StatusServiceUnavailable, w.status)
	require.Contains(t, w.body.String(), "busy: too many streams listen; try again later")
	cancel()
	open.Wait()
	require.True(t, h.listening.Open("address 192.0.2.1"))
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
	require.Eventually(t, func() bool { return s.handler.bytes.Take(32 << 20) }, time.Minute, time.Millisecond, "all is free again")
	s.handler.bytes.Give(32 << 20)
	s.modern().works()
}

func TestUnreadResponsesCostLittleMemory(t *testing.T) {
	const n, size = 40, 8 << 20
	big := []byte(`"` + strings.Repeat("x", size) + `"`)
	s := serve(t, script{"big": func(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
		return &jsonrpc.Response{ID: req.ID, Result: big}
	}}, &Options{MaxBytes: 32 << 20})
	before := heap()
	var conns []net.Conn
	for range n {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		require.NoError(t, err)
		conns = append(conns, conn)
		body := call1(1, "big")
		_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		require.NoError(t, err)
	}
	refused := 0
	for _, conn := range conns {
		// Read only the head.
		head := make([]byte, 12)
		_, err := io.ReadFull(conn, head)
		require.NoError(t, err)
		if strings.HasSuffix(string(head), "503") {
			refused++
		}
	}
	require.GreaterOrEqual(t, refused, n-(32<<20)/size)
	require.Less(t, heap()-before, int64(mostHeap))
	for _, conn := range conns {
		_ = conn.Close()
	}
	require.Eventually(t, func() bool { return s.handler.bytes.Take(32 << 20) }, time.Minute, time.Millisecond, "all is free again")
	s.handler.bytes.Give(32 << 20)
	s.modern().works()
}
