package streamable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

func TestRequestsCutAtEveryByte(t *testing.T) {
	s := serve(t, script{"talk": talkative}, nil)
	body := call1(7, "talk")
	request := fmt.Sprintf("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n"+
		"Connection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	for n := range len(request) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		require.NoError(t, err)
		_, err = io.WriteString(conn, request[:n])
		require.NoError(t, err)
		require.NoError(t, conn.(*net.TCPConn).CloseWrite())
		reply, _ := io.ReadAll(conn) // a reset is fine too
		require.NotContains(t, string(reply), `"result"`, "cut at %d", n)
		require.NoError(t, conn.Close())
	}
	s.modern().works()
	require.NoError(t, s.handler.Shutdown(t.Context()), "nothing is in flight")
}

func TestBodiesThatCannotBeRead(t *testing.T) {
	for _, test := range []struct {
		name   string
		body   io.Reader
		length int64
		status int
		want   string
	}{
		{"too slow", iotest.ErrReader(os.ErrDeadlineExceeded), 10, 408, "body took longer than 30s"},
		{"cut short", io.MultiReader(strings.NewReader("{"), iotest.ErrReader(io.ErrUnexpectedEOF)), 10, 400, "body could not be read"},
		{"larger than a middleware allows", iotest.ErrReader(&http.MaxBytesError{Limit: 5}), 10, 413, "body is larger than 5 bytes"},
		{"larger than declared", bytes.NewReader(make([]byte, 101)), 10, 413, "body is larger than 100 bytes"},
		{"large without a length", bytes.NewReader(make([]byte, 101)), -1, 413, "body is larger than 100 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := NewHandler(&scripted{}, &Options{MaxBodyBytes: 100})
			r := newPost("")
			r.Body, r.ContentLength = io.NopCloser(test.body), test.length
			w := newRecorder()
			h.ServeHTTP(w, r)
			require.Equal(t, test.status, w.status)
			require.Equal(t, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"`+test.want+`"}}`, w.body.String())
		})
	}
	h := NewHandler(&scripted{}, nil)
	for _, length := range []int64{-1, 0, 3, 1 << 20} {
		body := call1(1, "echo") + strings.Repeat(" ", 100_000)
		r := newPost("", "MCP-Protocol-Version", "2026-07-28")
		r.Body, r.ContentLength = io.NopCloser(iotest.HalfReader(strings.NewReader(body))), length
		w := newRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`, w.body.String(), "a declared length of %d is only a hint", length)
	}
}

func TestMalformedResponseEndsTheServerRequest(t *testing.T) {
	got := make(chan *jsonrpc.Response, 1)
	s := serve(t, script{"ask": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
		resp, err := peer.Call(ctx, notification("ping", ""))
		if err == nil {
			got <- resp
		}
		return result(req, `{"done":true}`)
	}}, nil)
	c := s.legacy("2025-06-18")
	ev := eventsOf(t, c.call(7, "ask"))
	ev.data()
	resp := c.post(`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}`)
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	require.NotNil(t, (<-got).Error)
	require.Equal(t, answer7, ev.data())
}

// A brokenStore keeps nothing.
type brokenStore struct{ eventStore }

func (brokenStore) append(context.Context, string, string, event) error {
	return errors.New("disk full")
}

func TestBrokenEventStoreCostsOnlyResumption(t *testing.T) {
	s := serve(t, script{"talk": talkative}, nil)
	s.handler.events = brokenStore{s.handler.events}
	c := s.legacy("2025-11-25")
	ev := eventsOf(t, c.call(7, "talk"))
	require.Regexp(t, "_1-0$", ev.next().ID)
	require.Equal(t, progress1, ev.data())
	require.Equal(t, progress2, ev.data())
	require.Equal(t, answer7, ev.data())
	ev.end()
	require.Contains(t, s.log.String(), `level=ERROR msg="streamable: event store did not keep a message" err="disk full"`)
	c.send(http.MethodDelete, "")
	require.NoError(t, s.handler.Shutdown(t.Context()))
}

func TestListenerThatDoesNotReadIsDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rpc := &scripted{}
		h := NewHandler(rpc, &Options{KeepAlive: time.Minute})
		defer h.Close()
		open := newRecorder()
		h.ServeHTTP(open, newPost(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`))
		w := &stuckWriter{recorder: *newRecorder(), stuck: true}
		begin := time.Now()
		h.ServeHTTP(w, newGet(t.Context(), open.Header().Get("Mcp-Session-Id")))
		require.Equal(t, 30*time.Second, time.Since(begin))
		require.False(t, known(h, open.Header().Get("Mcp-Session-Id")).out.listening())
	})
}

func TestListenerOutlivesTheTimeoutsOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rpc := &scripted{}
		h := NewHandler(rpc, &Options{KeepAlive: 40 * time.Second})
		defer h.Close()
		client, closeAll := testkit.Serve(&http.Server{Handler: h, ReadTimeout: 20 * time.Second, WriteTimeout: 20 * time.Second})
		defer closeAll()
		open := newRecorder()
		h.ServeHTTP(open, newPost(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://mcp.test", nil)
		require.NoError(t, err)
		r.Header = newGet(t.Context(), open.Header().Get("Mcp-Session-Id")).Header
		begun := time.Now()
		resp, err := client.Do(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		var comments [3 * len(": keep-alive\n\n")]byte
		_, err = io.ReadFull(resp.Body, comments[:])
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(begun), time.Minute)
		require.NoError(t, known(h, open.Header().Get("Mcp-Session-Id")).Notify(t.Context(), notification("n", "")))
		require.Equal(t, `{"jsonrpc":"2.0","method":"n"}`, eventsOf(t, resp).data())
	})
}

func TestManySessionsComeAndGo(t *testing.T) {
	s := serve(t, script{"talk": talkative}, nil)
	done := make(chan struct{})
	for range 8 {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 20 {
				c := s.legacy("2025-11-25")
				_, _ = io.ReadAll(c.call(7, "talk").Body)
				ctx, cancel := context.WithCancel(t.Context())
				if resp, err := c.do(ctx, http.MethodGet, ""); err == nil {
					cancel()
					_ = resp.Body.Close()
				}
				cancel()
				_, _ = io.ReadAll(c.send(http.MethodDelete, "").Body)
			}
		}()
	}
	for range 8 {
		<-done
	}
	require.Empty(t, s.handler.sessions.all)
	require.Equal(t, 160, s.handler.sessions.deleted.Len())
	require.Empty(t, memoryOf(s.handler).sessions)
}

func TestListenersEndWithTheirCredential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rpc := &scripted{}
		h := NewHandler(rpc, &Options{KeepAlive: time.Second})
		defer h.Close()
		ctx := func() context.Context {
			return oauth.NewContext(t.Context(), &oauth.Principal{Subject: "ann", Expires: time.Now().Add(time.Minute)})
		}
		open := newRecorder()
		h.ServeHTTP(open, newPost(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`).WithContext(ctx()))
		for range 2 { // the client resumes with another token
			begin := time.Now()
			w := newRecorder()
			h.ServeHTTP(w, newGet(ctx(), open.Header().Get("Mcp-Session-Id")))
			require.Equal(t, time.Minute, time.Since(begin))
			require.Equal(t, http.StatusOK, w.status)
		}
	})
}
