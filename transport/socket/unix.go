package socket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
)

// listenUnix listens on a Unix socket at path. The socket is made in a directory that nobody else can look into and moved
// to its place when it has its mode, so that there is no moment at which others could connect, and none without a
// socket where one is replaced.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if err := replaceable(ctx, path); err != nil {
		return nil, err
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
	info, err := place(made, path)
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	return &unixListener{Listener: l, path: path, info: info}, nil
}

// replaceable says what stands at path that a new socket must not replace.
func replaceable(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%q is there already, and no socket", path)
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return nil // nobody listens any more
	}
	_ = conn.Close()
	return fmt.Errorf("%q is being served already", path)
}

func place(made, path string) (fs.FileInfo, error) {
	if err := os.Chmod(made, 0o600); err != nil {
		return nil, err
	}
	info, err := os.Lstat(made)
	if err != nil {
		return nil, err
	}
	return info, os.Rename(made, path)
}

// A unixListener removes its socket in the end, if it is still its own.
type unixListener struct {
	net.Listener
	path string
	info fs.FileInfo
	once sync.Once
}

// Close implements [net.Listener].
func (l *unixListener) Close() error {
	l.once.Do(func() {
		if now, err := os.Lstat(l.path); err == nil && os.SameFile(now, l.info) {
			_ = os.Remove(l.path)
		}
	})
	return l.Listener.Close()
}

// Addr returns the address at which clients find the socket.
func (l *unixListener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }
