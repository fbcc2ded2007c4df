// Package message serves MCP over anything that carries whole messages: a broker's queue, a data
// channel, frames on a TLS connection. You implement the three methods of a [Conn]; this package
// does order, concurrency, cancellation, limits and shutdown. For a byte stream, use
// [github.com/mcpkit/mcpkit-go/transport/stdio.NewIO] instead.
//
// client.Messages is the client's end, on the same Conn.
package message

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/duplex"
	"github.com/mcpkit/mcpkit-go/internal/framing"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A Conn carries messages between two peers, whole and in order. One goroutine calls ReadMessage
// and another WriteMessage, at the same time. Any goroutine may call Close, once.
type Conn interface {
	// ReadMessage returns the next message, which belongs to the caller. It must refuse messages
	// that are too large to hold. The error is [io.EOF] if the peer will send no more; any other
	// error ends the connection.
	ReadMessage() ([]byte, error)

	// WriteMessage sends a message: JSON on one line. It must not keep the bytes. It should give up
	// on a peer that does not read.
	WriteMessage(message []byte) error

	// Close ends the connection and makes ReadMessage and WriteMessage return.
	Close() error
}

const (
	//limit:message bytes of a message of a broker or a channel | -32600: `message is larger than `
	defaultMaxMessageBytes = 4 << 20
	//limit:server connections that Accept serves | the next one waits
	defaultMaxConnections = 100
)

// Options configures a transport. The zero value and nil are ready to use.
type Options struct {
	// MaxMessageBytes limits the length of a message. A longer message is answered with an error.
	// Zero means 4 MiB.
	MaxMessageBytes int

	// MaxInFlight limits the unanswered requests of a peer. The server refuses more. Zero means
	// 1024.
	MaxInFlight int

	// DrainTimeout is how long calls may continue after the peer disconnects or ctx ends. Zero
	// means 5 s.
	DrainTimeout time.Duration

	// WriteTimeout is how long one WriteMessage may take before the connection is closed. Zero
	// means 30 s; a negative value means no limit.
	WriteTimeout time.Duration

	// MaxConnections limits the peers that [Accept] serves at once; the next one waits. Zero means
	// 100.
	MaxConnections int

	// ConnContext returns the context for the calls of a peer, derived from ctx, for example with a
	// principal (oauth.NewContext). If it returns an error, the connection is closed. Nil means ctx
	// itself. Without a principal, peers are unauthenticated, even with mcpkit.TrustLocal.
	ConnContext func(ctx context.Context, conn Conn) (context.Context, error)

	// Logger receives warnings and errors meant for the operator. Nil means slog.Default.
	Logger *slog.Logger
}

func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.MaxMessageBytes <= 0 {
		c.MaxMessageBytes = defaultMaxMessageBytes
	}
	if c.MaxConnections <= 0 {
		c.MaxConnections = defaultMaxConnections
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (o *Options) serve(ctx context.Context, conn Conn, h transport.Handler) error {
	ctx = oauth.NewContext(ctx, nil)
	if o.ConnContext != nil {
		var err error
		if ctx, err = o.ConnContext(ctx, conn); err != nil {
			return errors.Join(fmt.Errorf("transport/message: connection refused: %w", err), conn.Close())
		}
	}
	w := framing.Messages(conn, framing.Options{MaxMessageBytes: o.MaxMessageBytes, Raise: "Options.MaxMessageBytes"})
	err := duplex.Serve(ctx, w, h, &duplex.Options{
		MaxInFlight: o.MaxInFlight, DrainTimeout: o.DrainTimeout, WriteTimeout: o.WriteTimeout, Logger: o.Logger,
	})
	if err != nil {
		return fmt.Errorf("transport/message: %w", err)
	}
	return nil
}

// New returns a transport that serves one peer. Serve can be called once, and closes conn when it
// returns. It returns nil when the peer disconnects.
func New(conn Conn, opts *Options) transport.Transport { return &one{conn, opts.withDefaults()} }

type one struct {
	conn Conn
	opts Options
}

// Serve implements [transport.Transport].
func (o *one) Serve(ctx context.Context, h transport.Handler) error {
	return o.opts.serve(ctx, o.conn, h)
}

// Accept returns a transport that serves each peer that accept returns, until accept returns an
// error. accept must return when its context ends.
func Accept(accept func(ctx context.Context) (Conn, error), opts *Options) transport.Transport {
	return &many{accept: accept, opts: opts.withDefaults()}
}

// Listen returns a transport that serves every connection to l. Serve closes l when it returns.
// wrap turns a connection into a Conn; slow work such as a handshake belongs in its first
// ReadMessage.
func Listen(l net.Listener, wrap func(net.Conn) Conn, opts *Options) transport.Transport {
	return &many{listener: l, opts: opts.withDefaults(), accept: func(context.Context) (Conn, error) {
		conn, err := l.Accept()
		if err != nil {
			return nil, err
		}
		return wrap(conn), nil
	}}
}

type many struct {
	accept   func(ctx context.Context) (Conn, error)
	listener net.Listener // of accept; nil if there is none
	opts     Options
}

// Serve implements [transport.Transport]. It returns after all peers have disconnected: nil when
// ctx has ended, or else the error of accept.
func (m *many) Serve(ctx context.Context, h transport.Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	var open sync.WaitGroup
	defer open.Wait()
	defer cancel()
	if m.listener != nil {
		defer m.listener.Close()
		// Runs at most once. It makes Accept return.
		defer context.AfterFunc(ctx, func() { _ = m.listener.Close() })()
	}
	free := make(chan struct{}, m.opts.MaxConnections)
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		conn, err := m.accept(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("transport/message: %w", err)
		case conn == nil:
			return errors.New("transport/message: accept returned neither a connection nor an error")
		}
		// Ends with the connection, at the latest when ctx ends.
		open.Go(func() {
			defer func() { <-free }()
			if err := m.opts.serve(ctx, conn, h); err != nil {
				m.opts.Logger.Warn("message: connection failed", "error", err)
			}
		})
	}
}
