//go:build !linux

package load

import (
	"errors"
	"time"
)

// CPU returns the CPU time of a process, on Linux only.
func CPU(int) (time.Duration, error) {
	return 0, errLinux
}

// ThreadCPU returns the CPU time of the calling thread, on Linux only.
func ThreadCPU() (time.Duration, error) { return 0, errLinux }

var errLinux = errors.New("CPU time is measured on Linux only")

// PeakRSS returns the peak resident memory of a process, on Linux only.
func PeakRSS(int) string { return "?" }
