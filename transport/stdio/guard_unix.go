//go:build unix

package stdio

import (
	"os"

	"golang.org/x/sys/unix"
)

// guard moves standard input and output out of the reach of the rest of the program, and returns
// them: meanwhile descriptor 0 is empty and descriptor 1 is standard error, whatever writes to it,
// and children inherit neither stream. restore undoes that.
//
// A stream that the program replaced with another file is left as it is; then only the variable
// os.Stdout is changed.
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

// isDescriptor reports whether f is the descriptor fd. Unlike [os.File.Fd], it leaves the mode of f alone.
func isDescriptor(f *os.File, fd uintptr) (is bool) {
	c, err := f.SyscallConn()
	if err != nil {
		return false
	}
	err = c.Control(func(got uintptr) { is = got == fd })
	return is && err == nil
}

// move gives the file of descriptor fd a descriptor that children do not inherit, and fd the file of
// the descriptor instead.
func move(fd, instead int) (moved *os.File, restore func(), err error) {
	const lowest = 3 // those below have a meaning of their own
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
		// Not moved.Fd, which would end what still reads or writes.
		_ = duplicate(to, fd)
		_ = moved.Close()
	}, nil
}
