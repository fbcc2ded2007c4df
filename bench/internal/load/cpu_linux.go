package load

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// CPU returns the CPU time of a process on all cores, in user and kernel mode, in nanoseconds.
func CPU(pid int) (time.Duration, error) {
	var ts syscall.Timespec
	clock := uintptr(^pid<<3 | 2) // the CPU-time clock of a process: clock_getcpuclockid(3)
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0, fmt.Errorf("CPU clock of process %d: %w", pid, errno)
	}
	return time.Duration(ts.Nano()), nil
}

// PeakRSS returns the peak resident memory of a process as the kernel formats it ("12345 kB").
func PeakRSS(pid int) string {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return "?"
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return strings.TrimSpace(rest)
		}
	}
	return "?"
}
