package socket_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/leaktest"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/socket"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
	"github.com/mcpkit/mcpkit-go/transport/transporttest"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

// A served is a server on a Unix socket.
type served struct {
	path string
	stop context.CancelFunc
	over chan error
}

func serve(t *testing.T, h transport.Handler, opts *socket.Options) *served {
	if opts == nil {
		opts = &socket.Options{}
	}
	opts.Stream.Logger = slog.New(slog.DiscardHandler)
	ctx, stop := context.WithCancel(t.Context())
	s := &served{path: filepath.Join(t.TempDir(), "mcp.sock"), stop: stop, over: make(chan error, 1)}
	listens := make(chan struct{})
	opts.OnListen = func(net.Addr) { close(listens) }
	go func() { s.over <- socket.Listen("unix", s.path, opts).Serve(ctx, h) }()
	<-listens
	t.Cleanup(stop)
	return s
}

func (s *served) dial(t *testing.T) net.Conn {
	conn, err := net.Dial("unix", s.path)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

func (s *served) end(t *testing.T) {
	s.stop()
	require.NoError(t, <-s.over)
}

// echo returns the method, or the value in the context if there is one.
type echo struct{}

type nameKey struct{}

func (echo) ServeRPC(ctx context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
	if req.Method == "block" {
		<-ctx.Done()
	}
	if name, ok := ctx.Value(nameKey{}).(string); ok {
		return &jsonrpc.Response{Result: []byte(`"` + name + `"`)}
	}
	return &jsonrpc.Response{Result: []byte(`"` + req.Method + `"`)}
}

const ping, pong = `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n", `{"jsonrpc":"2.0","id":1,"result":"ping"}` + "\n"

// exchange sends text and returns the line that comes back.
func exchange(t *testing.T, conn net.Conn, text string) string {
	_, err := io.WriteString(conn, text)
	require.NoError(t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	return line
}

func TestContract(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, h transport.Handler) transporttest.Conn {
		s := serve(t, h, &socket.Options{Stream: stdio.Options{MaxMessageBytes: transporttest.MaxMessageBytes, DrainTimeout: 3 * time.Second}})
		done := make(chan struct{})
		go func() {
			defer close(done)
			assert.NoError(t, <-s.over)
		}()
		conn, err := net.Dial("unix", s.path)
		require.NoError(t, err)
		return transporttest.Lines(conn, s.stop, done)
	})
}

func TestUnixSocketIsPrivateToItsUser(t *testing.T) {
	s := serve(t, echo{}, nil)
	info, err := os.Lstat(s.path)
	require.NoError(t, err)
	require.Equal(t, os.ModeSocket|0o600, info.Mode())
	require.Equal(t, pong, exchange(t, s.dial(t), ping))
	s.end(t)
	left, err := os.ReadDir(filepath.Dir(s.path))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestListeningForOtherMachinesIsLogged(t *testing.T) {
	asIs := func(ctx context.Context, _ net.Conn) (context.Context, error) { return ctx, nil }
	for _, test := range []struct {
		name, addr string
		context    func(context.Context, net.Conn) (context.Context, error)
		warns      bool
	}{
		{"all addresses", "0.0.0.0:0", nil, true},
		{"loopback", "127.0.0.1:0", nil, false},
		{"the program authenticates", "0.0.0.0:0", asIs, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			var log bytes.Buffer
			opts := &socket.Options{ConnContext: test.context, OnListen: func(net.Addr) { stop() }}
			opts.Stream.Logger = slog.New(slog.NewTextHandler(&log, nil))
			require.NoError(t, socket.Listen("tcp", test.addr, opts).Serve(ctx, echo{}))
			require.Equal(t, test.warns, strings.Contains(log.String(), "other machines can reach this server"), "%s", &log)
		})
	}
}

func TestExistingFilesAtThePath(t *testing.T) {
	t.Run("a server", func(t *testing.T) {
		s := serve(t, echo{}, nil)
		err := socket.Listen("unix", s.path, nil).Serve(t.Context(), echo{})
		require.EqualError(t, err, `transport/socket: a server already listens on "`+s.path+`"`)
		require.Equal(t, pong, exchange(t, s.dial(t), ping))
		s.end(t)
	})
	t.Run("a file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "precious")
		require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
		err := socket.Listen("unix", path, nil).Serve(t.Context(), echo{})
		require.EqualError(t, err, `transport/socket: "`+path+`" exists and is not a socket`)
		require.FileExists(t, path)
	})
	t.Run("a socket that was left behind", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "old.sock")
		old, err := net.Listen("unix", path)
		require.NoError(t, err)
		old.(*net.UnixListener).SetUnlinkOnClose(false)
		require.NoError(t, old.Close())
		ctx, stop := context.WithCancel(t.Context())
		listens, over := make(chan net.Addr, 1), make(chan error, 1)
		go func() {
			over <- socket.Listen("unix", path, &socket.Options{OnListen: func(a net.Addr) { listens <- a }}).Serve(ctx, echo{})
		}()
		require.Equal(t, path, (<-listens).String())
		require.Equal(t, pong, exchange(t, (&served{path: path}).dial(t), ping))
		stop()
		require.NoError(t, <-over)
	})
	t.Run("no such directory", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "none", "x.sock")
		require.ErrorIs(t, socket.Listen("unix", path, nil).Serve(t.Context(), echo{}), os.ErrNotExist)
	})
}

func TestConnectionsAreBounded(t *testing.T) {
	s := serve(t, echo{}, &socket.Options{MaxConnections: 2})
	first, second := s.dial(t), s.dial(t)
	require.Equal(t, pong, exchange(t, first, ping))
	require.Equal(t, pong, exchange(t, second, ping))
	third := bufio.NewReader(s.dial(t))
	line, err := third.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"busy: 2 connections are open"}}`+"\n", line)
	_, err = third.ReadByte()
	require.ErrorIs(t, err, io.EOF)

	require.NoError(t, first.Close())
	require.Eventually(t, func() bool {
		conn, err := net.Dial("unix", s.path)
		require.NoError(t, err)
		defer conn.Close()
		_, _ = io.WriteString(conn, ping)
		line, err := bufio.NewReader(conn).ReadString('\n')
		return err == nil && line == pong
	}, time.Minute, time.Millisecond)
	s.end(t)
}

// A web page can make a browser send a request with any body to any port of this machine.
func TestHTTPRequestsAreRefused(t *testing.T) {
	for _, request := range []string{
		"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n\r\n" + ping,
		"\r\n GET /" + ping,
		"Content-Length: 40\r\n\r\n" + ping,
		"\x16\x03\x01" + ping,
	} {
		s := serve(t, echo{}, nil)
		conn := s.dial(t)
		_, err := io.WriteString(conn, request)
		require.NoError(t, err)
		answer, _ := io.ReadAll(conn)
		require.Empty(t, string(answer), "%q", request)
		s.end(t)
	}
}

func TestFramingByHeaders(t *testing.T) {
	s := serve(t, echo{}, &socket.Options{Stream: stdio.Options{Framing: stdio.AnyFraming}})
	require.Equal(t, pong, exchange(t, s.dial(t), ping))
	conn := s.dial(t)
	_, err := io.WriteString(conn, "Content-Length: 40\r\n\r\n"+strings.TrimSpace(ping))
	require.NoError(t, err)
	want := "Content-Length: 40\r\n\r\n" + strings.TrimSpace(pong)
	got := make([]byte, len(want))
	_, err = io.ReadFull(conn, got)
	require.NoError(t, err)
	require.Equal(t, want, string(got))
	s.end(t)
}

func TestConnectionsHaveContexts(t *testing.T) {
	refused := errors.New("no")
	var refuse atomic.Bool
	s := serve(t, echo{}, &socket.Options{ConnContext: func(ctx context.Context, _ net.Conn) (context.Context, error) {
		if refuse.Load() {
			return nil, refused
		}
		return context.WithValue(ctx, nameKey{}, "ann"), nil
	}})
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":"ann"}`+"\n", exchange(t, s.dial(t), ping))
	refuse.Store(true)
	rest, err := io.ReadAll(s.dial(t))
	require.NoError(t, err)
	require.Empty(t, rest)
	s.end(t)
}

func quiet() *socket.Options {
	return &socket.Options{Stream: stdio.Options{Logger: slog.New(slog.DiscardHandler)}}
}

// failing is a listener whose Accept fails.
type failing struct {
	net.Listener
	errs chan error
}

func (f failing) Accept() (net.Conn, error) {
	if err, ok := <-f.errs; ok {
		return nil, err
	}
	return f.Listener.Accept()
}

type passing struct{ error }

func (passing) Temporary() bool { return true }

func TestTemporaryAcceptErrorsAreRetried(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := failing{inner, make(chan error, 2)}
	l.errs <- passing{errors.New("too many open files")}
	close(l.errs)
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- socket.New(l, quiet()).Serve(ctx, echo{}) }()
	conn, err := net.Dial("tcp", inner.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	require.Equal(t, pong, exchange(t, conn, ping))
	stop()
	require.NoError(t, <-over)

	broken := failing{inner, make(chan error, 1)}
	broken.errs <- errors.New("broken")
	require.EqualError(t, socket.New(broken, nil).Serve(t.Context(), echo{}), "transport/socket: broken")
}

// whoAsks returns whether the caller has a principal.
type whoAsks struct{}

func (whoAsks) ServeRPC(ctx context.Context, _ *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
	return &jsonrpc.Response{Result: []byte(strconv.FormatBool(oauth.AuthenticationDecided(ctx)))}
}

func TestSocketCallersAreUnauthenticated(t *testing.T) {
	for network, settled := range map[string]string{"tcp": "true", "unix": "false"} {
		addr := map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "s")}[network]
		l, err := net.Listen(network, addr)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan error, 1)
		// Ends with ctx.
		go func() {
			over <- socket.New(l, &socket.Options{Stream: stdio.Options{Logger: slog.New(slog.DiscardHandler)}}).Serve(ctx, whoAsks{})
		}()
		conn, err := net.Dial(network, l.Addr().String())
		require.NoError(t, err)
		_, err = io.WriteString(conn, ping)
		require.NoError(t, err)
		line, err := bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":`+settled+"}\n", line, network)
		require.NoError(t, conn.Close())
		stop()
		require.NoError(t, <-over)
	}
}
