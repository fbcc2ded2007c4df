package testkit

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// A listener accepts connections in memory. They are unbuffered: a write returns when the other end
// has read it.
type listener struct {
	conns  chan net.Conn
	closed context.Context
	shut   context.CancelFunc
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed.Done():
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *listener) Close() error { l.shut(); return nil }

// Addr implements [net.Listener].
func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

// dial opens a connection.
func (l *listener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed.Done():
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Serve runs server on a listener in memory, for tests with testing/synctest. It returns a client
// that opens a connection for every request, whatever its host, and a function that closes the
// server and waits for it.
func Serve(server *http.Server) (client *http.Client, closeAll func()) {
	l := &listener{conns: make(chan net.Conn)}
	l.closed, l.shut = context.WithCancel(context.Background())
	var serving sync.WaitGroup
	// Ends with server.Close.
	serving.Go(func() { _ = server.Serve(l) })
	client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: l.dial}}
	return client, func() {
		_ = server.Close()
		serving.Wait()
	}
}
