package streamable

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// from sets the address of the caller of a request.
func from(r *http.Request, addr string) *http.Request {
	r.RemoteAddr = net.JoinHostPort(addr, "1234")
	return r
}

// initialize opens a session from addr. It returns the session ID and the status.
func initialize(h http.Handler, addr string) (id string, status int) {
	w := newRecorder()
	h.ServeHTTP(w, from(newPost(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`), addr))
	return w.Header().Get("Mcp-Session-Id"), w.status
}

// statusOf calls echo in a session and returns the status.
func statusOf(h http.Handler, addr, session string) int {
	w := newRecorder()
	h.ServeHTTP(w, from(newPost(call1(1, "echo"), "Mcp-Session-Id", session), addr))
	return w.status
}

func TestAbandonedSessionsAreEvicted(t *testing.T) {
	h := NewHandler(silentRPC{}, nil)
	defer h.Close()
	old, _ := initialize(h, "192.0.2.7")
	require.Equal(t, http.StatusOK, statusOf(h, "192.0.2.7", old))
	for range defaultMaxSessions + 100 {
		id, status := initialize(h, "203.0.113.1")
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, http.StatusOK, statusOf(h, "203.0.113.1", id))
	}
	id, status := initialize(h, "192.0.2.8")
	require.Equal(t, http.StatusOK, status, "a caller from another address gets a session")
	require.Equal(t, http.StatusOK, statusOf(h, "192.0.2.8", id))
	id, status = initialize(h, "203.0.113.1")
	require.Equal(t, http.StatusOK, status, "and so does one from the address of the flood")
	require.Equal(t, http.StatusOK, statusOf(h, "203.0.113.1", id))
	require.Equal(t, http.StatusOK, statusOf(h, "192.0.2.7", old), "no other caller lost a session")
}

func TestSessionsWithStreamsAreEvicted(t *testing.T) {
	h := NewHandler(silentRPC{}, &Options{MaxSessions: 20})
	defer h.Close()
	var streams sync.WaitGroup
	for range 20 {
		id, _ := initialize(h, "2001:db8::1")
		streams.Go(func() { h.ServeHTTP(newRecorder(), from(newGet(t.Context(), id), "2001:db8::1")) })
		require.Eventually(t, func() bool { return h.listening.Spent() > 0 }, time.Minute, time.Millisecond)
	}
	require.Eventually(t, func() bool { return h.listening.Spent() == 20 }, time.Minute, time.Millisecond)
	_, status := initialize(h, "2001:db8::2")
	require.Equal(t, http.StatusServiceUnavailable, status, "addresses with the same first 64 bits are one caller")
	for range 5 {
		_, status = initialize(h, "2001:db8:0:1::1")
		require.Equal(t, http.StatusOK, status)
	}
	h.Close()
	streams.Wait()
	require.Zero(t, h.listening.Spent())
}

func TestCallsInFlightAreLimited(t *testing.T) {
	g := newGate()
	h := NewHandler(&scripted{methods: script{"wait": g.serve}}, &Options{MaxInFlight: 3, MaxInFlightTotal: 8,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	defer h.Close()
	var calls sync.WaitGroup
	do := func(addr, method, session string) *recorder {
		w := newRecorder()
		r := newPost(call1(1, method), "X-Forwarded-For", addr, "Mcp-Session-Id", session)
		if session == "" {
			r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		}
		h.ServeHTTP(w, from(r, "127.0.0.1"))
		return w
	}
	hold := func(addr, session string) {
		calls.Go(func() { do(addr, "wait", session) })
		<-g.started
	}
	for range 3 {
		hold("192.0.2.1", "")
	}
	w := do("192.0.2.1", "echo", "")
	require.Equal(t, http.StatusServiceUnavailable, w.status)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"busy: too many requests are in flight; try again later"}}`, w.body.String())
	require.Equal(t, http.StatusOK, do("192.0.2.2", "echo", "").status, "other callers are not refused")
	session, _ := initialize(h, "192.0.2.9")
	for _, id := range []string{"made-up", session} {
		require.Equal(t, http.StatusServiceUnavailable, do("192.0.2.1", "echo", id).status, "a session has no share of its own")
	}
	hold("192.0.2.9", session)
	require.Equal(t, http.StatusOK, do("192.0.2.2", "echo", "").status)
	w = newRecorder()
	h.ServeHTTP(w, newPost(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, "Mcp-Session-Id", session))
	require.Equal(t, http.StatusAccepted, w.status, "cancellations are never refused")
	close(g.release)
	calls.Wait()
	require.Zero(t, h.calls.Spent())
}

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
	require.Zero(t, h.listening.Spent())
}

// rss returns the resident memory of this process in bytes; 0 if it is unknown.
func rss(t *testing.T) int64 {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, err := strconv.ParseInt(strings.Fields(string(raw))[1], 10, 64)
	require.NoError(t, err)
	return pages * int64(os.Getpagesize())
}

var raceDetector bool

// A watch measures how much the memory grows.
type watch struct{ heap, rss int64 }

func watchMemory(t *testing.T) watch {
	t.Helper()
	debug.FreeOSMemory()
	return watch{heap(), rss(t)}
}

const (
	mostHeap = 64 << 20  // live bytes for one peer
	mostRSS  = 150 << 20 // including garbage and the clients of the test
)

func (w watch) requireSmall(t *testing.T) {
	t.Helper()
	resident := rss(t) - w.rss
	live := heap() - w.heap
	require.Less(t, live, int64(mostHeap), "live heap")
	if !raceDetector {
		require.Less(t, resident, int64(mostRSS), "resident memory")
	}
}

func TestHeldBodiesCostLittleMemory(t *testing.T) {
	t.Parallel()
	const n, size = 30, defaultMaxBodyBytes - 1
	s := serve(t, nil, nil)
	before := watchMemory(t)
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
		before.requireSmall(t)
		mu.Lock()
		defer mu.Unlock()
		return refused >= n-defaultMaxInFlightBytes/size
	}, 2*time.Minute, 50*time.Millisecond, "requests beyond the limit are refused")
	before.requireSmall(t)
	for _, conn := range conns {
		_ = conn.Close()
	}
	answered.Wait()
	require.Eventually(t, func() bool { return s.handler.bytes.Spent() == 0 }, time.Minute, time.Millisecond)
	s.modern().works()
}

func TestUnreadResponsesCostLittleMemory(t *testing.T) {
	const n, size = 40, 8 << 20
	big := []byte(`"` + strings.Repeat("x", size) + `"`)
	s := serve(t, script{"big": func(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
		return &jsonrpc.Response{ID: req.ID, Result: big}
	}}, nil)
	before := watchMemory(t)
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
	require.GreaterOrEqual(t, refused, n-defaultMaxInFlightBytes/size)
	runtime.GC()
	before.requireSmall(t)
	for _, conn := range conns {
		_ = conn.Close()
	}
	require.Eventually(t, func() bool { return s.handler.bytes.Spent() == 0 }, time.Minute, time.Millisecond)
	s.modern().works()
}
