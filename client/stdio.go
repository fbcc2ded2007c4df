package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/duplex"
	"github.com/mcpkit/mcpkit-go/internal/framing"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

// writeTimeout is how long one write to a server may take that does not read.
const writeTimeout = 10 * time.Second

// A stdioConn talks with a child process.
type stdioConn struct {
	c      *Client
	target *CommandTarget

	mu     sync.Mutex
	child  *child // guarded by mu; a failed probe changes it
	closed bool   // guarded by mu
}

// A child is a running program and the connection with it.
type child struct {
	*live
	process *process
}

// wire frames messages on the streams of a connection.
func (c *Client) wire(r io.Reader, w io.Writer) duplex.Wire {
	return framing.New(r, w, framing.Options{
		Framing: c.cfg.framing, MaxMessageBytes: c.cfg.maxMessage, Raise: "MaxMessageBytes", WriteTimeout: writeTimeout,
	})
}

func newStdioConn(c *Client, t *CommandTarget) (*stdioConn, error) {
	s := &stdioConn{c: c, target: t}
	var err error
	s.child, err = s.start()
	return s, err
}

func (s *stdioConn) start() (*child, error) {
	p, err := startProcess(s.target, s.c.cfg.stderr)
	if err != nil {
		return nil, err
	}
	return &child{live: serveWire(s.c, s.c.wire(p.stdout, p.stdin)), process: p}, nil
}

func (s *stdioConn) current() *child {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.child
}

func (s *stdioConn) roundTrip(ctx context.Context, x *exchange) (*jsonrpc.Response, error) {
	ch := s.current()
	resp, err := ch.link.Do(ctx, x.req)
	if errors.Is(err, transport.ErrClosed) && ctx.Err() == nil {
		return nil, ch.gone()
	}
	return resp, err
}

func (s *stdioConn) notify(ctx context.Context, n *jsonrpc.Request) error {
	ch := s.current()
	err := ch.link.Notify(ctx, n)
	if errors.Is(err, transport.ErrClosed) {
		return ch.gone()
	}
	return err
}

// gone says how the process ended, as far as it has.
func (ch *child) gone() error {
	t := time.NewTimer(100 * time.Millisecond) // the pipe closes a little before the process is known to have ended
	defer t.Stop()
	select {
	case <-ch.process.ended:
		return fmt.Errorf("%w: %s", transport.ErrClosed, ch.process.epitaph())
	case <-t.C:
		return fmt.Errorf("%w: the server closed its output", transport.ErrClosed)
	}
}

// renew starts the program again if the probe ended it, or if it may still be busy with it: some
// servers exit at what they do not know, and some wait for ever.
func (s *stdioConn) renew(_ context.Context, probe error) error {
	old := s.current()
	if !errors.Is(probe, errProbe) && !errors.Is(probe, transport.ErrClosed) {
		return nil
	}
	old.stop(0)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return transport.ErrClosed
	}
	ch, err := s.start()
	if err != nil {
		return err
	}
	s.child = ch
	return nil
}

func (s *stdioConn) settled(v protocol.Version) { s.current().link.Session().SetVersion(string(v)) }
func (s *stdioConn) listen() <-chan struct{}    { return nil }
func (s *stdioConn) mirrors() bool              { return false }

// close ends the process: by the end of its input first, by force last.
func (s *stdioConn) close() error {
	s.mu.Lock()
	s.closed = true
	ch := s.child
	s.mu.Unlock()
	return ch.stop(s.c.cfg.shutdownTimeout)
}

// stop ends the process and the connection, and waits for both.
func (ch *child) stop(patience time.Duration) error {
	if patience > 0 {
		ch.flush(patience)
	}
	err := ch.process.stop(patience)
	ch.end()
	return err
}
