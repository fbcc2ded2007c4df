package filelock

import (
	"errors"
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// beyond returns the position of the locked byte. Windows locks are mandatory, so no file may reach
// it.
func beyond() *windows.Overlapped {
	return &windows.Overlapped{OffsetHigh: math.MaxInt32}
}

func tryLock(f *os.File) (bool, error) {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, beyond())
	switch {
	case err == nil, errors.Is(err, windows.ERROR_NOT_SUPPORTED), errors.Is(err, windows.ERROR_CALL_NOT_IMPLEMENTED): // the last two: no locks here
		return true, nil
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION), errors.Is(err, windows.ERROR_IO_PENDING):
		return false, nil
	}
	return false, &os.PathError{Op: "lock", Path: f.Name(), Err: err}
}

func unlock(f *os.File) error {
	err := windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, beyond())
	if err != nil && !errors.Is(err, windows.ERROR_NOT_LOCKED) && !errors.Is(err, windows.ERROR_NOT_SUPPORTED) {
		return &os.PathError{Op: "unlock", Path: f.Name(), Err: err}
	}
	return nil
}
