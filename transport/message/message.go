// Package message serves MCP on whatever carries whole messages: a broker's queue, a data channel, frames on a TLS
// connection. The three methods of a [Conn] are all that is to be written; order, concurrency, cancellation, limits and the
// end are this package's. A carrier of bytes needs not even that: [github.com/mcpkit/mcpkit-go/transport/stdio.NewIO] takes
// it as it is.
//
// The client's end is client.Messages, on the same Conn.
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

// A Conn carries messages between two peers, in order, each whole. ReadMessage and WriteMessage are called at the same time, each
// by one goroutine; Close by any, and once.
type Conn interface {
	// ReadMessage returns the next message, which belongs to the caller. It must refuse what is larger than it is ready to hold.
	// The error is [io.EOF] when the peer will send no more; any other ends the connection.
	ReadMessage() ([]byte, error)

	// WriteMessage sends a message: JSON on one line. It must not keep the bytes. It should give up on a peer that reads
	// nothing.
	WriteMessage(message []byte) error

	// Close ends the connection, and makes ReadMessage and WriteMessage return.
	Close() error
}

const (
	//limit:message bytes of a message of a broker or a channel | -32600: `message is larger than `
	defaultMaxMessageBytes = 4 << 20
	//limit:server connections that Accept serves | the next one waits
	defaultMaxConnections = 100
)

// Options configures a transport. The zero value serves, and so does nil.
type Options struct {
	// MaxMessageBytes is how long a message may be. A longer one is answered with an error. Zero means 4 MiB.
	MaxMessageBytes int

	// MaxInFlight is how many requests of one peer may be unanswered at once; one more is refused. Zero means 1024.
	MaxInFlight int

	// DrainTimeout is how long calls may go on after the peer or ctx ended. Zero means 5 s.
	DrainTimeout time.Duration

	// WriteTimeout is how long one WriteMessage may take before the connection is closed. Zero means 30 s, less than zero for ever.
	WriteTimeout time.Duration

	// MaxConnections is how many peers [Accept] serves at once; one more has to wait. Zero means 100.
	MaxConnections int

	// ConnContext returns the context of a peer's calls, made from ctx; here is where a principal is put into it (oauth.NewContext).
	// The connection is closed when the error is not nil. Nil means that ctx is the context. Until then the peer is nobody, also where
	// mcpkit.TrustLocal trusts who runs the server.
	ConnContext func(ctx context.Context, conn Conn) (context.Context, error)

	// Logger hears what the transport has to say. Nil means slog.Default.
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
			return errors.Join(fmt.Errorf("transport/message: the peer was refused: %w", err), conn.Close())
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

// New returns the transport that serves one peer. Serve closes conn in the end, and can be called once. Its error is nil when the peer
// went away.
func New(conn Conn, opts *Options) transport.Transport { return &one{conn, opts.withDefaults()} }

type one struct {
	conn Conn
	opts Options
}

// Serve implements [transport.Transport].
func (o *one) Serve(ctx context.Context, h transport.Handler) error {
	return o.opts.serve(ctx, o.conn, h)
}

// Accept returns the transport that serves each peer that accept returns, until accept returns an error. It has to return when its
// context ends.
func Accept(accept func(ctx context.Context) (Conn, error), opts *Options) transport.Transport {
	return &many{accept, opts.withDefaults()}
}

// Listen returns the transport that serves everybody who connects to l, which Serve closes in the end. Wrap makes messages of what a
// connection carries; what takes time, such as a handshake, belongs into its first ReadMessage.
func Listen(l net.Listener, wrap func(net.Conn) Conn, opts *Options) transport.Transport {
	return &listening{l, Accept(func(context.Context) (Conn, error) {
		conn, err := l.Accept()
		if err != nil {
			return nil, err
		}
		return wrap(conn), nil
	}, opts)}
}

type listening struct {
	l    net.Listener
	many transport.Transport
}

// Serve implements [transport.Transport].
func (s *listening) Serve(ctx context.Context, h transport.Handler) error {
	stop := context.AfterFunc(ctx, func() { _ = s.l.Close() })
	defer func() {
		if stop() {
			_ = s.l.Close()
		}
	}()
	return s.many.Serve(ctx, h)
}

type many struct {
	accept func(ctx context.Context) (Conn, error)
	opts   Options
}

// Serve implements [transport.Transport]. It returns when all peers are done; the error is that of accept, nil when ctx ended.
func (m *many) Serve(ctx context.Context, h transport.Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	var open sync.WaitGroup
	defer open.Wait()
	defer cancel()
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
		// Ends with the connection, which ends with ctx at the latest.
		open.Go(func() {
			defer func() { <-free }()
			if err := m.opts.serve(ctx, conn, h); err != nil {
				m.opts.Logger.Warn("message: a connection broke", "error", err)
			}
		})
	}
}
