package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

// A live is an open connection that carries messages both ways.
type live struct {
	wire   conn.Wire
	link   *conn.Conn
	served chan struct{} // closed when the connection has ended
	err    error         // why it ended; nil if one side closed it; set before served is closed
}

// serveWire starts a goroutine that serves the connection.
func serveWire(c *Client, w conn.Wire) *live {
	l := &live{wire: w, served: make(chan struct{})}
	l.link = conn.New(w, linkHandler{c}, &conn.Options{
		Client: true, First: c.hearFirst, Logger: c.log, MaxInFlight: 64, DrainTimeout: time.Second, Cancelling: c.base,
	})
	ready := make(chan struct{})
	// Ends when the server or Close closes the connection.
	go func() {
		defer close(l.served)
		close(ready)
		if l.err = l.link.Serve(context.WithoutCancel(c.base)); l.err != nil {
			c.log.Warn("client: the connection to the server broke", "error", l.err)
		}
		if c.agreed.Load() != nil { // otherwise only the probe used the connection
			c.ended()
			c.background(func(context.Context) { c.changes.end(l.gone(), true) })
		}
	}()
	<-ready
	return l
}

// linkHandler handles requests and notifications of the server.
type linkHandler struct{ c *Client }

func (h linkHandler) ServeRPC(ctx context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
	if req.IsNotification() {
		h.c.hearNext(req)
		return nil
	}
	return h.c.serve(ctx, req, nil)
}

// flush waits until the cancellations of calls are sent.
func (l *live) flush(patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l.link.Flush(ctx)
}

// stop closes the connection and ends its process, and waits for both. The error is that of the
// process.
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

// A linkConn uses a connection that is also the session: a WebSocket, a socket or a process.
type linkConn struct {
	c       *Client
	connect func(ctx context.Context) (conn.Wire, error)
	once    bool     // cannot connect again
	live    *live    // does not change after Dial
	sse     *sseConn // of HTTP+SSE, which has only legacy versions; otherwise nil
}

// open connects, and returns l.
func (l *linkConn) open(ctx context.Context) (roundTripper, error) {
	w, err := l.connect(ctx)
	if err != nil {
		return nil, err
	}
	l.live = serveWire(l.c, w)
	return l, nil
}

func (l *linkConn) roundTrip(ctx context.Context, x *exchange) (resp *jsonrpc.Response, err error) {
	now := l.live
	if l.sse != nil {
		failed := l.sse.expect(ctx, x.req.ID)
		defer func() {
			if e := failed(); e != nil {
				resp, err = nil, e
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

// gone returns why the connection ended: how the process ended, or what broke.
func (l *live) gone() error {
	<-l.served
	if p, ok := l.wire.(processWire); ok {
		// The pipe may close before the process has ended.
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

// renew reconnects if the probe ended the connection or had no response: some legacy servers exit
// or hang when they receive an unknown method.
func (l *linkConn) renew(ctx context.Context, probe error) error {
	if !errors.Is(probe, errProbe) && !errors.Is(probe, transport.ErrClosed) {
		return nil
	}
	switch {
	case l.once && errors.Is(probe, transport.ErrClosed):
		return fmt.Errorf("the server closed the connection after server/discover, and the client cannot reopen it; set a legacy version with client.Version, or use client.Connect: %w", probe)
	case l.once:
		return nil // the server may still respond to initialize
	}
	_ = l.live.stop(0)
	_, err := l.open(ctx)
	return err
}

func (l *linkConn) settled(v protocol.Version) { l.live.link.Session().SetVersion(string(v)) }
func (l *linkConn) listen() <-chan struct{}    { return nil }
func (l *linkConn) mirrors() bool              { return false }
func (l *linkConn) close() error               { return l.live.stop(l.c.cfg.shutdownTimeout) }

// A wireTarget is a server on a connection that is also the session.
type wireTarget struct {
	connect func(ctx context.Context, c *Client) (conn.Wire, error)
	once    bool // cannot connect again
}

func (t wireTarget) dial(ctx context.Context, c *Client) (roundTripper, error) {
	l := &linkConn{c: c, once: t.once, connect: func(ctx context.Context) (conn.Wire, error) { return t.connect(ctx, c) }}
	return l.open(ctx)
}

func streamTarget(connect func(ctx context.Context) (io.ReadWriteCloser, error), once bool) Target {
	return wireTarget{once: once, connect: func(ctx context.Context, c *Client) (conn.Wire, error) {
		rwc, err := connect(ctx)
		if err != nil {
			return nil, err
		}
		return c.wire(rwc, rwc), nil
	}}
}

// dialWebSocket connects to a ws or wss URL.
func dialWebSocket(ctx context.Context, c *Client, u *url.URL) (roundTripper, error) {
	client := newHTTPClient(c)
	l := &linkConn{c: c, connect: func(ctx context.Context) (conn.Wire, error) {
		// The HTTP client is needed only for the handshake.
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
	}}
	return l.open(ctx)
}
