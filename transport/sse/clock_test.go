package sse_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/sse"
)

// A wired server has connections in memory, which have the clock of the test's bubble and no buffers.
type wired struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (w *wired) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.closed:
		return nil, net.ErrClosed
	}
}

func (w *wired) Close() error   { w.once.Do(func() { close(w.closed) }); return nil }
func (w *wired) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

// serveWired serves h in a bubble, and returns a client.
func serveWired(t *testing.T, h transport.Handler, opts *sse.Options) *http.Client {
	opts.Logger = quiet
	w := &wired{conns: make(chan net.Conn), closed: make(chan struct{})}
	handler := sse.NewHandler(h, opts)
	server := &http.Server{Handler: handler}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = server.Serve(w)
	}()
	t.Cleanup(func() {
		handler.Close()
		require.NoError(t, server.Close())
		<-over
	})
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		w.conns <- theirs
		return ours, nil
	}}}
}

// begin opens a stream and returns its lines, of which the first two are the endpoint.
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

// say posts a message, and returns the status.
func say(t *testing.T, c *http.Client, url, message string) int {
	resp, err := c.Post(url, "application/json", strings.NewReader(message))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

func TestCommentsComeWhileNothingElseDoes(t *testing.T) {
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

func TestASessionEndsWhenNobodyUsesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serveWired(t, pong{}, &sse.Options{SessionIdle: 8 * time.Minute})
		url, lines := begin(t, c)
		go func() { // what is used does not end
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
		require.LessOrEqual(t, time.Since(begun), 59*time.Minute+time.Second, "comments are no use")
		require.Equal(t, 404, say(t, c, url, ping))
	})
}

// telling notifies until it is told not to, and says when that was.
type telling chan time.Time

func (f telling) ServeRPC(ctx context.Context, _ *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	n := &jsonrpc.Request{Method: "note", Params: []byte(`{"x":"` + strings.Repeat("x", 64<<10) + `"}`)}
	for ctx.Err() == nil && peer.Notify(ctx, n) == nil {
	}
	<-ctx.Done()
	f <- time.Now()
	return nil
}

func TestAStreamThatIsNotReadEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(telling, 1)
		c := serveWired(t, over, &sse.Options{WriteTimeout: 30 * time.Second})
		url, _ := begin(t, c)
		begun := time.Now()
		require.Equal(t, 202, say(t, c, url, ping))
		require.Equal(t, 30*time.Second, (<-over).Sub(begun))
		require.Equal(t, 404, say(t, c, url, ping))
	})
}
