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

	"golang.org/x/net/netutil"

	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
)

// unixSocket is a transport that listens on a Unix socket, on which only its own user can connect.
type unixSocket struct {
	path     string
	stream   stdio.Options
	onListen func(net.Addr) // for tests
}

// maxConnections limits the open connections; the next one waits.
const maxConnections = 100

// Serve implements [transport.Transport]. When ctx ends, it lets calls in flight finish within the
// DrainTimeout of the stream.
func (u *unixSocket) Serve(ctx context.Context, h transport.Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	l, err := listenUnix(ctx, u.path)
	if err != nil {
		cancel()
		return fmt.Errorf("config: transport.unix: %w", err)
	}
	stop := sync.OnceFunc(func() {
		_ = os.Remove(u.path) // before it stops listening, so that it never removes the socket of the server that comes next
		_ = l.Close()
	})
	var open sync.WaitGroup
	defer open.Wait()
	defer cancel() // the connections end when the listener does, for whatever reason
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	if u.onListen != nil {
		u.onListen(l.Addr())
	}
	limited := netutil.LimitListener(l, maxConnections)
	for {
		conn, err := limited.Accept()
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("config: transport.unix: %w", err)
		case err != nil:
			u.stream.Logger.Warn("config: accepting a connection failed", "error", err)
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // for example too many open files
			continue
		}
		// Ends with the connection, at the latest when ctx ends.
		open.Go(func() {
			if err := stdio.NewIO(conn, conn, &u.stream).Serve(ctx, h); err != nil {
				u.stream.Logger.Warn("config: a connection failed", "error", err)
			}
		})
	}
}

// listenUnix listens on a Unix socket at path. It creates the socket in a directory that only this
// user can enter, sets its mode, and moves it to path. So other users can never connect, and a
// socket that is replaced is never missing.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil {
		if info.Mode().Type() != fs.ModeSocket {
			return nil, fmt.Errorf("%q exists and is not a socket", path)
		}
		if conn, err := new(net.Dialer).DialContext(ctx, "unix", path); err == nil {
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
	l, err := new(net.ListenConfig).Listen(ctx, "unix", made)
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
	}
	return l, err
}
