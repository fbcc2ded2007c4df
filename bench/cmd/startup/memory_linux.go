package main

import (
	"os"
	"syscall"
)

// peak is the largest resident memory of a process that has ended, in kB.
func peak(s *os.ProcessState) int64 {
	if usage, ok := s.SysUsage().(*syscall.Rusage); ok {
		return usage.Maxrss
	}
	return 0
}
