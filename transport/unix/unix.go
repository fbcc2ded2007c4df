// Package unix serves on a Unix socket, for programs of the same user: no other user can connect.
package unix

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
)

// A Transport listens on a Unix socket and serves each of up to 100 connections as package stdio does.
// It must not be changed while it serves.
type Transport struct {
	// Path is where the socket is made. A socket there that no server listens on is replaced.
	Path string
	// Options are those of each connection. DrainTimeout is how long calls may take to finish at the end.
	Options stdio.Options
	// OnListen is called once clients can connect; nil means nothing is.
	OnListen func(net.Addr)
}

// maxConnections limits the open connections; the next one waits.
const maxConnections = 100

// Serve implements [transport.Transport]. It returns nil when ctx ends, and an error if it cannot listen,
// for example because another server does.
func (u *Transport) Serve(ctx context.Context, h transport.Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	l, err := listen(ctx, u.Path)
	if err != nil {
		cancel()
		return fmt.Errorf("unix: %w", err)
	}
	stop := sync.OnceFunc(func() {
		_ = os.Remove(u.Path) // before it stops listening, so that it never removes the socket of the server that comes next
		_ = l.Close()
	})
	var open sync.WaitGroup
	defer open.Wait()
	defer cancel() // the connections end when the listener does, for whatever reason
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	if u.OnListen != nil {
		u.OnListen(l.Addr())
	}
	logger := cmp.Or(u.Options.Logger, slog.Default())
	limited := netutil.LimitListener(l, maxConnections)
	for {
		conn, err := limited.Accept()
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("unix: %w", err)
		case err != nil:
			logger.Warn("unix: accepting a connection failed", "error", err)
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // for example too many open files
			continue
		}
		// Ends with the connection, at the latest when ctx ends.
		open.Go(func() {
			if err := stdio.NewIO(conn, conn, &u.Options).Serve(ctx, h); err != nil {
				logger.Warn("unix: a connection failed", "error", err)
			}
		})
	}
}

// listen listens on a Unix socket at path. It creates the socket in a directory that only this
// user can enter, sets its mode, and moves it to path. So other users can never connect, and a
// socket that is replaced is never missing.
func listen(ctx context.Context, path string) (net.Listener, error) {
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
