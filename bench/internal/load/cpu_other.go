//go:build !linux

package load

import (
	"errors"
	"time"
)

// CPU is how long the process has run on any core.
func CPU(int) (time.Duration, error) {
	return 0, errors.New("the CPU time of another process is read on Linux only")
}

// PeakRSS is the most memory that the process ever had resident.
func PeakRSS(int) string { return "?" }
