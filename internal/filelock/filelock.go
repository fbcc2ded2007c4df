// Package filelock locks files between processes, and between several openings of a file in one
// process. A lock ends with the process that holds it.
//
// A lock does not prevent reads and writes of the file. Systems and file systems without locks
// grant every lock.
package filelock

import "os"

// TryLock locks f exclusively. It returns false if another opening of the file holds the lock. It
// never waits.
func TryLock(f *os.File) (bool, error) { return tryLock(f) }

// Unlock releases a lock. Closing f also does, but on Windows not at once.
func Unlock(f *os.File) error { return unlock(f) }
