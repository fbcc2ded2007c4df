package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/duplex"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

// A live is a connection that carries messages both ways, and is served.
type live struct {
	wire   duplex.Wire
	link   *duplex.Link
	served chan struct{} // closed when the connection is over
	err    error         // why; nil when an end ended it; set before
}

// serveWire serves a connection until it is over.
func serveWire(c *Client, w duplex.Wire) *live {
	l := &live{wire: w, served: make(chan struct{})}
	l.link = duplex.New(w, linkHandler{c}, &duplex.Options{
		Client: true, First: c.hearFirst, Logger: c.log, MaxInFlight: 64, DrainTimeout: time.Second, Cancelling: c.base,
	})
	ready := make(chan struct{})
	// Ends when the server or Close ends the connection.
	go func() {
		defer close(l.served)
		close(ready)
		if l.err = l.link.Serve(context.WithoutCancel(c.base)); l.err != nil {
			c.log.Warn("client: the connection with the server broke", "error", l.err)
		}
		if c.agreed.Load() != nil { // else the connection was that of a failed probe
			c.background(func(context.Context) { c.changes.end(l.gone(), true) })
		}
	}()
	<-ready
	return l
}

// linkHandler takes what the server sends of itself.
type linkHandler struct{ c *Client }

func (h linkHandler) ServeRPC(ctx context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
	if req.IsNotification() {
		h.c.hearNext(req)
		return nil
	}
	return h.c.serve(ctx, req, nil)
}

// flush waits until the server was told which calls nobody waits for.
func (l *live) flush(patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l.link.Flush(ctx)
}

// stop ends the connection, and the process that it is with, and waits for both. The error is that
// of the process.
func (l *live) stop(patience time.Duration) (err error) {
	if patience > 0 {
		l.flush(patience)
	}
	if p, ok := l.wire.(processWire); ok {
		err = p.process.stop(patience)
	}
	l.link.Close()
	<-l.served
	return err
}

// A linkConn talks over a connection that is the session: that of a WebSocket, a socket, a process.
type linkConn struct {
	c       *Client
	connect func(ctx context.Context) (duplex.Wire, error)
	legacy  bool  // carries legacy versions only
	once    bool  // cannot connect again
	live    *live // does not change after Dial
}

func newLinkConn(ctx context.Context, c *Client, legacy bool, connect func(ctx context.Context) (duplex.Wire, error)) (*linkConn, error) {
	w, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	return &linkConn{c: c, connect: connect, legacy: legacy, live: serveWire(c, w)}, nil
}

func (l *linkConn) roundTrip(ctx context.Context, x *exchange) (resp *jsonrpc.Response, err error) {
	now := l.live
	if w, ok := now.wire.(*sseWire); ok {
		refused := w.expect(x.req.ID)
		defer func() {
			if status := refused(); status != nil {
				resp, err = nil, status
			}
		}()
	}
	resp, err = now.link.Do(ctx, x.req)
	if errors.Is(err, transport.ErrClosed) && ctx.Err() == nil {
		return nil, now.gone()
	}
	return resp, err
}

func (l *linkConn) notify(ctx context.Context, n *jsonrpc.Request) error {
	now := l.live
	err := now.link.Notify(ctx, n)
	if errors.Is(err, transport.ErrClosed) {
		return now.gone()
	}
	return err
}

// gone says why the connection is over: how the process ended, as far as it has, or what broke. Its
// end follows that of the calls at once.
func (l *live) gone() error {
	<-l.served
	if p, ok := l.wire.(processWire); ok {
		// The pipe closes a little before the process is known to have ended.
		if p.process.wait(pipesDelay + time.Second) {
			return fmt.Errorf("%w: %s", transport.ErrClosed, p.process.epitaph())
		}
		return fmt.Errorf("%w: the server closed its output", transport.ErrClosed)
	}
	if l.err != nil {
		return fmt.Errorf("%w: %w", transport.ErrClosed, l.err)
	}
	return fmt.Errorf("%w: the server closed the connection", transport.ErrClosed)
}

// renew connects again where the probe ended the connection, or was never answered: some servers
// end at what they do not know, and some are still busy with it.
func (l *linkConn) renew(ctx context.Context, probe error) error {
	if !errors.Is(probe, errProbe) && !errors.Is(probe, transport.ErrClosed) {
		return nil
	}
	switch {
	case l.once && errors.Is(probe, transport.ErrClosed):
		return fmt.Errorf("the server ended the connection at server/discover, and it cannot be opened again; pin a legacy version with client.Version, or give client.Connect: %w", probe)
	case l.once:
		return nil // a server that does not answer what it does not know may still answer what it knows
	}
	_ = l.live.stop(0)
	w, err := l.connect(ctx)
	if err != nil {
		return err
	}
	l.live = serveWire(l.c, w)
	return nil
}

func (l *linkConn) settled(v protocol.Version) { l.live.link.Session().SetVersion(string(v)) }
func (l *linkConn) listen() <-chan struct{}    { return nil }
func (l *linkConn) mirrors() bool              { return false }
func (l *linkConn) close() error               { return l.live.stop(l.c.cfg.shutdownTimeout) }

// A wireTarget is a server at the other end of a connection that is the session.
type wireTarget struct {
	connect func(ctx context.Context, c *Client) (duplex.Wire, error)
	once    bool // cannot connect again
}

func (t wireTarget) dial(ctx context.Context, c *Client) (conn, error) {
	l, err := newLinkConn(ctx, c, false, func(ctx context.Context) (duplex.Wire, error) { return t.connect(ctx, c) })
	if err != nil {
		return nil, err
	}
	l.once = t.once
	return l, nil
}

func streamTarget(connect func(ctx context.Context) (io.ReadWriteCloser, error), once bool) Target {
	return wireTarget{once: once, connect: func(ctx context.Context, c *Client) (duplex.Wire, error) {
		rwc, err := connect(ctx)
		if err != nil {
			return nil, err
		}
		return c.wire(rwc, rwc), nil
	}}
}

// dialWebSocket connects to a ws or wss URL.
func dialWebSocket(ctx context.Context, c *Client, u *url.URL) (conn, error) {
	client := newHTTPClient(c)
	l, err := newLinkConn(ctx, c, false, func(ctx context.Context) (duplex.Wire, error) {
		// The connection is all that the transport is for.
		defer releaseHTTPClient(c, client)
		w, err := websocket.Dial(ctx, u.String(), &websocket.DialOptions{
			Client: client, Header: c.cfg.header, MaxMessageBytes: int64(c.cfg.maxMessage),
		})
		if refused, ok := errors.AsType[*websocket.HandshakeError](err); ok && ctx.Err() == nil {
			return nil, statusError(refused.Response)
		}
		if err != nil && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return w, err
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}
