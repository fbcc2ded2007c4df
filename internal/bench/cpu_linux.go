package main

import (
	"fmt"
	"syscall"
	"time"
	"unsafe"
)

// cpuTime returns the CPU time of a process on all cores, in user and kernel mode.
func cpuTime(pid int) (time.Duration, error) {
	var ts syscall.Timespec
	clock := ^pid<<3 | 2 // clock_getcpuclockid(3)
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(clock), uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0, fmt.Errorf("CPU clock of process %d: %w", pid, errno)
	}
	return time.Duration(ts.Nano()), nil
}
