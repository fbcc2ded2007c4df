// Package filelock locks files between processes, and between openings of a file in one process. A lock ends with the
// process that holds it.
//
// A lock keeps nobody from reading or writing the file. Systems and file systems without locks grant every lock.
package filelock

import "os"

// TryLock locks f for its holder alone, and reports false if another opening of the file holds the lock. It never waits.
func TryLock(f *os.File) (bool, error) { return tryLock(f) }

// Unlock ends a lock that TryLock granted. Closing f does, too, but on Windows not at once.
func Unlock(f *os.File) error { return unlock(f) }
