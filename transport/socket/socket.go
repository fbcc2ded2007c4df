// Package socket serves MCP on sockets. Each connection is one client, with one message per line as
// on stdio.
//
//	err := server.Serve(ctx, socket.Listen("unix", "/run/user/1000/notes.sock", nil))
//
// Only programs of the same user can connect to a Unix socket. TCP has no such protection, and this
// package does not authenticate callers: listen only on loopback addresses, or use a listener that
// authenticates its peers (mutual TLS) and set the principal in Options.ConnContext. Without one,
// TCP callers are unauthenticated, even with mcpkit.TrustLocal.
package socket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
)

// DefaultMaxConnections is the default of Options.MaxConnections.
//
//limit:server connections on a socket | -32603: `connections are open`, and the connection is closed
const DefaultMaxConnections = 100

// Options configures a transport. The zero value and nil are ready to use.
type Options struct {
	// Stream configures each connection. Its DrainTimeout also limits the shutdown.
	Stream stdio.Options

	// MaxConnections limits the open connections. Beyond the limit, a client gets a "busy" error
	// and is disconnected. Zero means [DefaultMaxConnections].
	MaxConnections int

	// ConnContext returns the context for the calls of a connection, derived from ctx, for example
	// with a principal. It runs before anything is read, on a goroutine of the connection, so it
	// may take time (a TLS handshake). If it returns an error, the connection is closed. Nil means
	// ctx itself.
	ConnContext func(ctx context.Context, conn net.Conn) (context.Context, error)

	// OnListen, if not nil, is called with the address of [Listen] once it accepts connections.
	OnListen func(net.Addr)
}

func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.MaxConnections <= 0 {
		c.MaxConnections = DefaultMaxConnections
	}
	if c.Stream.Logger == nil {
		c.Stream.Logger = slog.Default()
	}
	return c
}

// Listen returns a transport that listens on a network ("unix", "tcp") at addr. When ctx ends, its
// Serve lets calls in flight finish within Options.Stream.DrainTimeout, cancels the rest, and
// returns nil.
//
// Only its own user can connect to a Unix socket (mode 0600), from the moment it exists. Listen
// replaces a socket that an earlier server left behind, and returns an error if a server still
// listens on it. It removes the socket on shutdown.
//
// On a TCP address that other machines can reach, Listen logs a warning unless Options.ConnContext
// is set.
func Listen(network, addr string, opts *Options) transport.Transport {
	o := opts.withDefaults()
	return &server{opts: o, listen: func(ctx context.Context) (net.Listener, error) {
		if network == "unix" {
			return listenUnix(ctx, addr)
		}
		var config net.ListenConfig
		l, err := config.Listen(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if at, ok := l.Addr().(*net.TCPAddr); ok && !at.IP.IsLoopback() && o.ConnContext == nil {
			o.Stream.Logger.Warn("transport/socket: other machines can reach this server, and it does not authenticate callers; "+
				"listen on 127.0.0.1, or set ConnContext", "addr", at.String())
		}
		return l, nil
	}}
}

// New returns a transport that accepts connections from l. Serve closes l when it returns, and can
// be called once.
func New(l net.Listener, opts *Options) transport.Transport {
	return &server{opts: opts.withDefaults(), listen: func(context.Context) (net.Listener, error) { return l, nil }}
}

type server struct {
	opts   Options
	listen func(context.Context) (net.Listener, error)
}

// Serve implements [transport.Transport].
func (s *server) Serve(ctx context.Context, h transport.Handler) error {
	l, err := s.listen(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("transport/socket: %w", err)
	}
	if s.opts.OnListen != nil {
		s.opts.OnListen(l.Addr())
	}
	// The connections end when the listener does, for whatever reason.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()

	var open sync.WaitGroup
	err = s.accept(ctx, l, h, &open)
	if ctx.Err() != nil {
		err = nil
	} else {
		err = fmt.Errorf("transport/socket: %w", err)
	}
	cancel()
	_ = l.Close()
	open.Wait()
	return err
}

// accept serves connections until the listener is closed or fails.
func (s *server) accept(ctx context.Context, l net.Listener, h transport.Handler, open *sync.WaitGroup) error {
	free := make(chan struct{}, s.opts.MaxConnections)
	pause := time.Duration(0)
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil || !temporary(err) {
				return err
			}
			// For example too many open files. Retry as net/http does.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.opts.Stream.Logger.Warn("socket: accepting a connection failed", "error", err, "retry after", pause)
			if !wait(ctx, pause) {
				return ctx.Err()
			}
			continue
		}
		pause = 0
		select {
		case free <- struct{}{}:
		default:
			s.turnAway(conn)
			continue
		}
		// Ends with the connection, at the latest when ctx ends.
		open.Go(func() {
			defer func() { <-free }()
			s.serveConn(ctx, conn, h)
		})
	}
}

func temporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// turnAway sends a "busy" error and closes conn. The message fits into any socket buffer, so the
// write does not block.
func (s *server) turnAway(conn net.Conn) {
	if conn.SetWriteDeadline(time.Now().Add(time.Second)) == nil {
		busy := &jsonrpc.Response{Error: jsonrpc.Errorf(jsonrpc.CodeInternalError, "busy: %d connections are open", s.opts.MaxConnections)}
		_, _ = conn.Write(append(jsonrpc.AppendResponse(nil, busy), '\n'))
	}
	_ = conn.Close()
}

// serveConn serves one client. Its errors do not affect the others.
func (s *server) serveConn(ctx context.Context, conn net.Conn, h transport.Handler) {
	defer conn.Close()
	if conn.LocalAddr().Network() != "unix" {
		// Any user can reach the port, so TrustLocal must not apply.
		ctx = oauth.NewContext(ctx, nil)
	}
	if s.opts.ConnContext != nil {
		var err error
		if ctx, err = s.opts.ConnContext(ctx, conn); err != nil {
			s.opts.Stream.Logger.Warn("socket: connection refused", "peer", conn.RemoteAddr().String(), "error", err)
			return
		}
	}
	err := stdio.NewIO(&guarded{Conn: conn, framing: s.opts.Stream.Framing}, conn, &s.opts.Stream).Serve(ctx, h)
	if err != nil {
		s.opts.Stream.Logger.Warn("socket: connection failed", "peer", conn.RemoteAddr().String(), "error", err)
	}
}

// A guarded connection fails unless the first byte can begin a message. A web page can make a
// browser send an HTTP request to any port, and the lines of its body would be read as messages.
type guarded struct {
	net.Conn
	framing stdio.Framing
	begun   bool
}

var errNotMCP = errors.New("the first bytes from the peer are not a JSON-RPC message")

func (g *guarded) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if g.begun {
		return n, err
	}
	for _, c := range p[:n] {
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		case '{', '[':
			g.begun = true
			return n, err
		case 'C', 'c':
			// Content-Length. Browsers do not send CONNECT, the only HTTP method with this letter.
			if g.framing != stdio.Lines {
				g.begun = true
				return n, err
			}
		}
		return 0, errNotMCP
	}
	return n, err
}

var _ io.ReadWriteCloser = (*guarded)(nil)
