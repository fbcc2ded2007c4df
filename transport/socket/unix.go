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

// listenUnix listens on a Unix socket at path. It creates the socket in a directory that only this
// user can enter, sets its mode, and moves it to path. So other users can never connect, and a
// socket that is replaced is never missing.
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

// replaceable returns an error if a new socket must not replace the file at path.
func replaceable(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%q exists and is not a socket", path)
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return nil // no server listens on it
	}
	_ = conn.Close()
	return fmt.Errorf("a server already listens on %q", path)
}

// place sets the mode of the socket made and moves it to path.
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

// A unixListener removes its socket on Close, unless another server has replaced it.
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

// Addr returns the address of the socket.
func (l *unixListener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }
