//go:build unix

package stdio

import (
	"os"

	"golang.org/x/sys/unix"
)

// guard moves standard input and output to descriptors that only the transport uses, and returns
// them. Until restore is called, descriptor 0 is empty, descriptor 1 is standard error, and
// children inherit neither stream.
//
// If the program has replaced a stream with another file, guard leaves it alone and only sets the
// variable os.Stdout.
func guard() (in, out *os.File, restore func()) {
	in, restoreIn := os.Stdin, func() {}
	if isDescriptor(os.Stdin, 0) {
		if null, err := os.Open(os.DevNull); err == nil {
			if moved, back, err := move(0, int(null.Fd())); err == nil {
				in, restoreIn = moved, back
			}
			_ = null.Close()
		}
	}
	out, restoreOut := os.Stdout, func() {}
	if isDescriptor(os.Stdout, 1) {
		if moved, back, err := move(1, 2); err == nil {
			out, restoreOut = moved, back
		}
	}
	if out == os.Stdout {
		os.Stdout = os.Stderr
		restoreOut = func() { os.Stdout = out }
	}
	return in, out, func() {
		restoreIn()
		restoreOut()
	}
}

// isDescriptor reports whether f has the descriptor fd. Unlike [os.File.Fd], it does not change the
// mode of f.
func isDescriptor(f *os.File, fd uintptr) (is bool) {
	c, err := f.SyscallConn()
	if err != nil {
		return false
	}
	err = c.Control(func(got uintptr) { is = got == fd })
	return is && err == nil
}

// move duplicates the file of descriptor fd to a new descriptor that children do not inherit, and
// makes fd refer to the file of descriptor instead.
func move(fd, instead int) (moved *os.File, restore func(), err error) {
	const lowest = 3 // 0 to 2 are the standard streams
	to, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, lowest)
	if err != nil {
		return nil, nil, err
	}
	if err := duplicate(instead, fd); err != nil {
		_ = unix.Close(to)
		return nil, nil, err
	}
	moved = os.NewFile(uintptr(to), "standard stream")
	return moved, func() {
		// Not moved.Fd, which would interrupt reads and writes.
		_ = duplicate(to, fd)
		_ = moved.Close()
	}, nil
}
