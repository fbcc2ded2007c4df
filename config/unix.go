package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
)

// unixSocket is a transport that listens on a Unix socket, on which only its own user can connect.
type unixSocket struct {
	path           string
	maxConnections int
	stream         stdio.Options
	onListen       func(net.Addr) // for tests
}

// Serve implements [transport.Transport]. When ctx ends, it lets calls in flight finish within the
// DrainTimeout of the stream. A connection beyond the limit is closed.
func (u *unixSocket) Serve(ctx context.Context, h transport.Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	l, err := listenUnix(ctx, u.path)
	if err != nil {
		cancel()
		return err
	}
	var open sync.WaitGroup
	defer open.Wait()
	defer cancel() // the connections end when the listener does, for whatever reason
	defer l.Close()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	if u.onListen != nil {
		u.onListen(l.Addr())
	}
	free := make(chan struct{}, u.maxConnections)
	for {
		conn, err := l.Accept()
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil:
			u.stream.Logger.Warn("config: accepting a connection failed", "error", err)
			time.Sleep(100 * time.Millisecond) // for example too many open files
			continue
		}
		select {
		case free <- struct{}{}:
		default:
			u.stream.Logger.Warn("config: a connection was closed, since too many are open", "limit", u.maxConnections)
			_ = conn.Close()
			continue
		}
		// Ends with the connection, at the latest when ctx ends.
		open.Go(func() {
			defer func() { <-free }()
			if err := stdio.NewIO(conn, conn, &u.stream).Serve(ctx, h); err != nil {
				u.stream.Logger.Warn("config: a connection failed", "error", err)
			}
		})
	}
}

// listenUnix listens on a Unix socket at path. It creates the socket in a directory that only this
// user can enter, sets its mode, and moves it to path. So other users can never connect, and a
// socket that is replaced is never missing. Closing the listener removes the socket.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("%q exists and is not a socket", path)
	default:
		var dialer net.Dialer
		if conn, err := dialer.DialContext(ctx, "unix", path); err == nil {
			_ = conn.Close()
			return nil, fmt.Errorf("a server already listens on %q", path)
		}
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".mcp")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	made := filepath.Join(dir, "s")
	var config net.ListenConfig
	l, err := config.Listen(ctx, "unix", made)
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	err = os.Chmod(made, 0o600)
	if err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	return &unixListener{Listener: l, path: path}, nil
}

// A unixListener removes its socket before it stops listening, so that it never removes that of the
// server that comes next.
type unixListener struct {
	net.Listener
	path string
	once sync.Once
}

// Close implements [net.Listener].
func (l *unixListener) Close() error {
	l.once.Do(func() { _ = os.Remove(l.path) })
	return l.Listener.Close()
}

// Addr returns the address of the socket.
func (l *unixListener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }
