package streamable_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/fleet/fleettest"
	"github.com/mcpkit/mcpkit-go/internal/conformance/replicas"
	"github.com/mcpkit/mcpkit-go/internal/sse"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
	"github.com/mcpkit/mcpkit-go/transport/transporttest"
)

// An httpConn is a minimal client of Streamable HTTP. It sends each message in its own POST, and
// receives the messages of all streams.
type httpConn struct {
	url    string
	http   *http.Client
	modern bool
	stop   func()
	done   <-chan struct{}

	ctx    context.Context // of all requests
	hang   context.CancelFunc
	open   sync.WaitGroup // the replies that are being read
	in     chan []byte    // has no buffer
	broken chan error

	mu      sync.Mutex
	session string                        // guarded by mu
	calls   map[string]context.CancelFunc // by id; guarded by mu
}

// connect serves h and returns a client.
func connect(t *testing.T, h transport.Handler, modern bool) transporttest.Conn {
	addrs := make(chan net.Addr, 1)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		assert.NoError(t, streamable.Listen("127.0.0.1:0", &streamable.Options{
			MaxBodyBytes: transporttest.MaxMessageBytes, Logger: slog.New(slog.DiscardHandler),
			ShutdownTimeout: time.Minute, OnListen: func(a net.Addr) { addrs <- a },
		}).Serve(ctx, h))
	}()
	c := &httpConn{
		url: "http://" + (<-addrs).String() + "/mcp", http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		modern: modern, stop: stop, done: done, in: make(chan []byte), broken: make(chan error), calls: map[string]context.CancelFunc{},
	}
	c.ctx, c.hang = context.WithCancel(context.Background())
	return c
}

func TestContract(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, h transport.Handler) transporttest.Conn { return connect(t, h, false) })
}

func TestContractWithoutSessions(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, h transport.Handler) transporttest.Conn { return connect(t, h, true) }, transporttest.Sessionless)
}

// Send posts the message. It reads the reply to a request in the background, and requires status
// 202 for everything else.
func (c *httpConn) Send(message []byte) error {
	m, bad := jsonrpc.Decode(message)
	if bad == nil && m.Request != nil && !m.Request.IsNotification() {
		c.call(m.Request, message)
		return nil
	}
	if bad == nil && c.modern && m.Request != nil && m.Request.Method == "notifications/cancelled" {
		c.mu.Lock()
		defer c.mu.Unlock()
		if cancel := c.calls[string(m.Request.Param("requestId"))]; cancel != nil {
			cancel() // modern clients cancel by closing the response stream
		}
		return nil
	}
	resp, err := c.do(c.ctx, http.MethodPost, message)
	if err != nil {
		return err
	}
	if resp.StatusCode == http.StatusAccepted {
		return resp.Body.Close()
	}
	c.reading(resp)
	return nil
}

// call posts a request.
func (c *httpConn) call(req *jsonrpc.Request, message []byte) {
	ctx, cancel := context.WithCancel(c.ctx)
	id := req.ID.String()
	c.mu.Lock()
	c.calls[id] = cancel
	c.mu.Unlock()
	// Ends with the reply or with ctx.
	c.open.Go(func() {
		defer cancel()
		resp, err := c.do(ctx, http.MethodPost, message)
		if err != nil {
			if ctx.Err() == nil { // a server that refuses the body may close the connection before all of it was written
				select {
				case c.broken <- err:
				case <-ctx.Done():
				}
			}
			return
		}
		if s := resp.Header.Get("Mcp-Session-Id"); s != "" && req.Method == "initialize" {
			c.mu.Lock()
			c.session = s
			c.mu.Unlock()
			if stream, err := c.do(c.ctx, http.MethodGet, nil); err == nil {
				c.reading(stream)
			}
		}
		c.read(resp)
	})
}

func (c *httpConn) do(ctx context.Context, verb string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, verb, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	c.mu.Lock()
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
		r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	}
	c.mu.Unlock()
	if c.modern {
		r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		if m, bad := jsonrpc.Decode(body); bad == nil && m.Request != nil {
			r.Header.Set("Mcp-Method", m.Request.Method)
		}
	}
	return c.http.Do(r)
}

// reading reads a reply in the background.
func (c *httpConn) reading(resp *http.Response) { c.open.Go(func() { c.read(resp) }) }

// read passes on the messages of a reply, no faster than they are received.
func (c *httpConn) read(resp *http.Response) {
	defer resp.Body.Close()
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		if message, err := io.ReadAll(resp.Body); err == nil && len(bytes.TrimSpace(message)) > 0 {
			c.hand(message)
		}
		return
	}
	events := sse.NewReader(resp.Body, 4<<20)
	for {
		e, err := events.Next()
		if err != nil {
			return
		}
		if len(e.Data) > 0 && !c.hand(bytes.Clone(e.Data)) {
			return
		}
	}
}

func (c *httpConn) hand(message []byte) bool {
	select {
	case c.in <- message:
		return true
	case <-c.ctx.Done():
		return false
	}
}

func (c *httpConn) Receive() ([]byte, error) {
	select {
	case message := <-c.in:
		return message, nil
	case err := <-c.broken:
		return nil, err
	case <-c.ctx.Done():
		return nil, io.EOF
	}
}

// Close ends the session and all requests.
func (c *httpConn) Close() error {
	var errs []error
	c.mu.Lock()
	session := c.session
	c.mu.Unlock()
	if session != "" && c.ctx.Err() == nil {
		if resp, err := c.do(c.ctx, http.MethodDelete, nil); err == nil {
			if resp.StatusCode/100 != 2 {
				errs = append(errs, fmt.Errorf("DELETE: %s", resp.Status))
			}
			errs = append(errs, resp.Body.Close())
		}
	}
	c.hang()
	c.open.Wait()
	return errors.Join(errs...)
}

func (c *httpConn) Stop()                 { c.stop() }
func (c *httpConn) Done() <-chan struct{} { return c.done }

func TestReplicas(t *testing.T) {
	replicas.Run(t, func(t testing.TB) fleettest.Store {
		m := fleet.NewMemory(fleet.MemoryOptions{})
		t.Cleanup(func() { require.NoError(t, m.Close()) })
		return fleettest.Store{Open: func(testing.TB) fleet.Engine { return m.Open() }}
	})
}
