//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package http1

import "syscall"

const canPeek = true

// alive reports whether the server has neither closed the connection nor sent anything that nobody asked for.
func (c *conn) alive() bool {
	open := false
	err := c.raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		open = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		return true
	})
	return err == nil && open
}
