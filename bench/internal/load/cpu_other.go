//go:build !linux

package load

import (
	"errors"
	"time"
)

// CPU returns the CPU time of a process, on Linux only.
func CPU(int) (time.Duration, error) {
	return 0, errors.New("the CPU time of another process is available on Linux only")
}

// PeakRSS returns the peak resident memory of a process, on Linux only.
func PeakRSS(int) string { return "?" }
