// Package socket serves MCP on sockets: one connection is one client, with one message a line as on stdio.
//
//	err := server.Serve(ctx, socket.Listen("unix", "/run/user/1000/notes.sock", nil))
//
// Unix sockets are for programs of the same machine and user: nobody else can connect. TCP has no such guard, and nothing
// here says who is asking: listen on loopback addresses at most, or bring a listener that authenticates its peers (mutual TLS)
// and say with Options.ConnContext who they are. Until then they are nobody, also where mcpkit.TrustLocal trusts who runs the server.
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

	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
)

// DefaultMaxConnections is how many connections there may be when Options says nothing.
//
//limit:server connections on a socket | -32603: `connections are open`, and the connection is closed
const DefaultMaxConnections = 100

// Options configures a transport. The zero value serves, and so does nil.
type Options struct {
	// Stream configures each connection. Its DrainTimeout bounds the shutdown, too.
	Stream stdio.Options

	// MaxConnections is how many connections there may be at once; one more hears that the server is busy and is closed. Zero
	// means [DefaultMaxConnections].
	MaxConnections int

	// ConnContext returns the context of a connection's calls, made from ctx; here is where a principal is put into
	// it. It runs before anything is read, on a goroutine of the connection, so it may take its time (a TLS handshake).
	// The connection is closed when the error is not nil. Nil means that ctx is the context.
	ConnContext func(ctx context.Context, conn net.Conn) (context.Context, error)

	// OnListen hears the address on which [Listen] takes connections, as soon as it does.
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

// Listen returns the transport that listens on a network ("unix", "tcp") at addr. Serve returns nil when ctx ended, after
// the calls in flight finished or were cancelled at the end of Options.Stream.DrainTimeout.
//
// A Unix socket can be connected to by its user alone (mode 0600), from the moment on at which it exists. One that a server left
// behind is replaced; when a server is still there, the error says so. The socket is removed in the end.
func Listen(network, addr string, opts *Options) transport.Transport {
	return &server{opts: opts.withDefaults(), listen: func(ctx context.Context) (net.Listener, error) {
		if network == "unix" {
			return listenUnix(ctx, addr)
		}
		var config net.ListenConfig
		return config.Listen(ctx, network, addr)
	}}
}

// New returns the transport on a listener of any kind, which Serve closes in the end. Serve can be called once.
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
	// The connections end with the listener, whatever ended it.
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

// accept serves connections until the listener is closed or broken.
func (s *server) accept(ctx context.Context, l net.Listener, h transport.Handler, open *sync.WaitGroup) error {
	free := make(chan struct{}, s.opts.MaxConnections)
	pause := time.Duration(0)
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil || !temporary(err) {
				return err
			}
			// Too many files are open, or the like: others may be closed soon. As net/http does.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.opts.Stream.Logger.Warn("socket: a connection could not be accepted", "error", err, "again after", pause)
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
		// Ends with the connection, which ends with ctx at the latest.
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

// turnAway tells a client why it is not served. What it says fits into any socket's buffer, so that this takes no time.
func (s *server) turnAway(conn net.Conn) {
	if conn.SetWriteDeadline(time.Now().Add(time.Second)) == nil {
		busy := &jsonrpc.Response{Error: jsonrpc.Errorf(jsonrpc.CodeInternalError, "busy: %d connections are open", s.opts.MaxConnections)}
		_, _ = conn.Write(append(jsonrpc.AppendResponse(nil, busy), '\n'))
	}
	_ = conn.Close()
}

// serveConn serves one client. What goes wrong with it is no reason to end the others.
func (s *server) serveConn(ctx context.Context, conn net.Conn, h transport.Handler) {
	defer conn.Close()
	if conn.LocalAddr().Network() != "unix" {
		// Anybody who reaches the port, so nobody to be trusted for running this program.
		ctx = oauth.NewContext(ctx, nil)
	}
	if s.opts.ConnContext != nil {
		var err error
		if ctx, err = s.opts.ConnContext(ctx, conn); err != nil {
			s.opts.Stream.Logger.Warn("socket: a connection was refused", "peer", conn.RemoteAddr().String(), "error", err)
			return
		}
	}
	err := stdio.NewIO(&guarded{Conn: conn, framing: s.opts.Stream.Framing}, conn, &s.opts.Stream).Serve(ctx, h)
	if err != nil {
		s.opts.Stream.Logger.Warn("socket: a connection broke", "peer", conn.RemoteAddr().String(), "error", err)
	}
}

// guarded is a connection that has to begin as a message does. A web page can make a browser send an HTTP request to any
// port, and what stands in the lines of its body would be taken for messages.
type guarded struct {
	net.Conn
	framing stdio.Framing
	begun   bool
}

var errNotMCP = errors.New("what the peer sent first is no JSON-RPC message")

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
			// Content-Length. No browser sends the one HTTP method of that letter (CONNECT) to a port.
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
