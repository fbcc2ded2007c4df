// Package http1 sends small POSTs over plain HTTP/1.1 on the goroutine of their caller.
//
// The transport of net/http has two goroutines for each connection, and wakes both for each request. That costs more than all
// else that a client of MCP does for a call to a server nearby. A [Transport] writes the request and reads the answer where it
// stands, with the reader of net/http, and hands every request that is in any way unusual to the transport of net/http: other methods,
// https, proxies, large bodies, traces. It asks for no compression.
package http1

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	maxBody     = 16 << 10 // of a request; a larger one might wait for a peer that waits for being read
	maxInterims = 5        // responses of status 1xx before the one that counts
	bufferSize  = 4 << 10
	// headerLimit is how long the head of a response may be, as in net/http.
	headerLimit = 10 << 20
)

// A Transport is an [http.RoundTripper] for one client. Make one with New. It is safe for concurrent use.
type Transport struct {
	base *http.Transport

	mu     sync.Mutex
	idle   map[string][]*conn // by address, the one used last at the end; guarded by mu
	closed bool               // what is in use is not kept; until the next request; guarded by mu
	sweep  *time.Timer        // closes what was idle for long; nil while nothing is idle; guarded by mu
}

// New returns a transport that dials as base does, keeps as many connections idle as base and for as long, and leaves to base what it
// does not do itself.
func New(base *http.Transport) *Transport {
	return &Transport{base: base, idle: map[string][]*conn{}}
}

// RoundTrip sends req and returns the response, as [http.RoundTripper] has it.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.direct(req) {
		return t.base.RoundTrip(req)
	}
	ctx := req.Context()
	if ctx.Err() != nil {
		_ = req.Body.Close()
		return nil, context.Cause(ctx)
	}
	head := heads.Get().(*[]byte)
	defer heads.Put(head)
	message, err := appendRequest((*head)[:0], req)
	*head = message
	if err != nil {
		return nil, err
	}
	addr := address(req.URL)
	for {
		c, err := t.conn(ctx, addr)
		if err != nil {
			return nil, err
		}
		resp, sent, err := c.exchange(ctx, req, message)
		if err == nil {
			return resp, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if sent || !c.used {
			return nil, err
		}
		// The server closed the connection before it could know of the request.
	}
}

// heads are buffers for requests.
var heads = sync.Pool{New: func() any { return new([]byte) }}

// CloseIdleConnections closes the connections that are not in use, and those that are when they are not any more.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	idle := t.idle
	t.idle, t.closed = map[string][]*conn{}, true
	if t.sweep != nil {
		t.sweep.Stop()
		t.sweep = nil
	}
	t.mu.Unlock()
	for _, conns := range idle {
		for _, c := range conns {
			_ = c.nc.Close()
		}
	}
	t.base.CloseIdleConnections()
}

// conn returns a connection with the server, an idle one where there is one that is alive.
func (t *Transport) conn(ctx context.Context, addr string) (*conn, error) {
	for c := t.take(addr); c != nil; c = t.take(addr) {
		if c.alive() {
			return c, nil
		}
		_ = c.nc.Close()
	}
	dial := t.base.DialContext
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	nc, err := dial(ctx, "tcp", addr)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	c := &conn{t: t, addr: addr, nc: nc}
	c.r = bufio.NewReaderSize(c, bufferSize)
	c.interrupt = func() { _ = nc.SetDeadline(time.Unix(1, 0)) }
	if s, ok := nc.(syscall.Conn); ok {
		c.raw, _ = s.SyscallConn()
	}
	return c, nil
}

// take takes the idle connection that was used last; nil where there is none.
func (t *Transport) take(addr string) *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = false
	conns := t.idle[addr]
	if len(conns) == 0 {
		return nil
	}
	c := conns[len(conns)-1]
	conns[len(conns)-1] = nil
	t.idle[addr] = conns[:len(conns)-1]
	return c
}

// keep makes c idle, or closes it.
func (t *Transport) keep(c *conn) {
	if c.raw == nil || !t.tryKeep(c) {
		_ = c.nc.Close()
	}
}

func (t *Transport) tryKeep(c *conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	most := t.base.MaxIdleConnsPerHost
	if most == 0 {
		most = http.DefaultMaxIdleConnsPerHost
	}
	if t.closed || len(t.idle[c.addr]) >= most {
		return false
	}
	c.used = true
	t.idle[c.addr] = append(t.idle[c.addr], c)
	if limit := t.base.IdleConnTimeout; limit > 0 {
		c.since = time.Now()
		if t.sweep == nil {
			t.sweep = time.AfterFunc(limit, t.expire)
		}
	}
	return true
}

// expire closes what was idle for too long, and is called again while anything is idle.
func (t *Transport) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	limit := t.base.IdleConnTimeout
	now := time.Now()
	next := time.Duration(-1)
	for addr, conns := range t.idle {
		n := 0
		for n < len(conns) && now.Sub(conns[n].since) >= limit {
			_ = conns[n].nc.Close()
			n++
		}
		conns = append([]*conn(nil), conns[n:]...)
		if t.idle[addr] = conns; len(conns) == 0 {
			delete(t.idle, addr)
			continue
		}
		if left := limit - now.Sub(conns[0].since); next < 0 || left < next {
			next = left
		}
	}
	if t.sweep == nil {
		return // CloseIdleConnections came before
	}
	if t.sweep = nil; next >= 0 {
		t.sweep = time.AfterFunc(next, t.expire)
	}
}

// A conn is a connection. Whoever took it has it alone.
type conn struct {
	t         *Transport
	addr      string
	nc        net.Conn
	raw       syscall.RawConn // nil where nobody can tell whether it is alive
	r         *bufio.Reader   // of the conn itself
	interrupt func()          // makes what waits for nc return
	used      bool            // it was idle before
	since     time.Time       // when it became idle; guarded by the transport's mu while it is

	left int64 // how much may be read; for the head of a response there is a limit
}

// Read reads from the network, for the buffer.
func (c *conn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, fmt.Errorf("the head of the response is larger than %d bytes", headerLimit)
	}
	n, err := c.nc.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

// exchange sends message, which is req, and reads the head of the response. Where it fails the connection is closed; sent says
// whether the server may have got anything of the request.
func (c *conn) exchange(ctx context.Context, req *http.Request, message []byte) (resp *http.Response, sent bool, err error) {
	stop := context.AfterFunc(ctx, c.interrupt)
	if n, err := c.nc.Write(message); err != nil {
		stop()
		_ = c.nc.Close()
		return nil, n > 0, err
	}
	if resp, err = c.head(req); err != nil {
		stop()
		_ = c.nc.Close()
		return nil, true, err
	}
	b := &body{inner: resp.Body, c: c, ctx: ctx, stop: stop, reusable: !resp.Close}
	if resp.Body == http.NoBody {
		b.end(true)
		return resp, true, nil
	}
	resp.Body = b
	return resp, true, nil
}

// head reads the head of the response that is no interim one.
func (c *conn) head(req *http.Request) (*http.Response, error) {
	for range maxInterims + 1 {
		c.left = headerLimit
		resp, err := http.ReadResponse(c.r, req)
		if err != nil {
			return nil, err
		}
		switch {
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, errors.New("the server switches to another protocol, which nobody asked for")
		case resp.StatusCode >= 200:
			c.left = math.MaxInt64 // who reads the body sees to its length
			return resp, nil
		}
	}
	return nil, fmt.Errorf("the server sent more than %d interim responses", maxInterims)
}

// A body is that of a response. At its end the connection is free again; closed before, it ends the connection.
type body struct {
	inner    io.ReadCloser
	c        *conn
	ctx      context.Context
	stop     func() bool
	reusable bool
	over     atomic.Bool
}

func (b *body) Read(p []byte) (int, error) {
	if b.over.Load() {
		return 0, b.afterEnd()
	}
	n, err := b.inner.Read(p)
	if err == nil {
		return n, nil
	}
	if err == io.EOF {
		b.end(true)
		return n, err
	}
	b.end(false)
	if b.ctx.Err() != nil {
		err = context.Cause(b.ctx)
	}
	return n, err
}

// afterEnd is what a Read after the end returns.
func (b *body) afterEnd() error {
	if b.ctx.Err() != nil {
		return context.Cause(b.ctx)
	}
	return io.EOF
}

// Close ends the connection, unless the body was read to its end.
func (b *body) Close() error {
	b.end(false)
	return nil
}

// end is done with the connection; only the first call does anything. Whole says that the response was read.
func (b *body) end(whole bool) {
	if b.over.Swap(true) {
		return
	}
	c := b.c
	if b.stop() && whole && b.reusable && c.r.Buffered() == 0 {
		c.t.keep(c)
		return
	}
	_ = c.nc.Close()
}
