package testkit

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// A Listener accepts connections in memory, for tests of HTTP servers with testing/synctest. They
// are unbuffered: a write returns when the other end has read it. Create one with [Listen].
type Listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Listen returns a listener.
func Listen() *Listener { return &Listener{conns: make(chan net.Conn), closed: make(chan struct{})} }

// Accept implements [net.Listener].
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *Listener) Close() error { l.once.Do(func() { close(l.closed) }); return nil }

// Addr implements [net.Listener].
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

// Client returns an HTTP client that opens a connection to l for every request, whatever its host.
func (l *Listener) Client() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		select {
		case l.conns <- theirs:
			return ours, nil
		case <-l.closed:
			return nil, net.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}}
}

// Serve runs server on a new listener. It returns a client for it and a function that closes the
// server and waits for it.
func Serve(server *http.Server) (client *http.Client, closeAll func()) {
	l := Listen()
	over := make(chan struct{})
	// Ends with server.Close.
	go func() {
		defer close(over)
		_ = server.Serve(l)
	}()
	return l.Client(), func() {
		_ = server.Close()
		<-over
	}
}
