//go:build unix && !solaris && !aix

package middleware

import (
	"errors"
	"os"
	"syscall"
)

// lockFile keeps the file for this process, as long as it is open: another that cut off half a line would cut off what this one is
// about to finish.
func lockFile(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return errors.New("another process, or another log of this one, writes to it; give each a file of its own")
	case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOLCK):
		return nil // a file system without locks
	}
	return err
}
