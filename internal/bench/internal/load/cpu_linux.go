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
	now, errno := clock(^pid<<3 | 2) // clock_getcpuclockid(3)
	if errno != 0 {
		return 0, fmt.Errorf("CPU clock of process %d: %w", pid, errno)
	}
	return now, nil
}

// ThreadCPU returns the CPU time of the calling thread. The caller must have locked its goroutine to
// it.
func ThreadCPU() (time.Duration, error) {
	now, errno := clock(3) // CLOCK_THREAD_CPUTIME_ID: clock_gettime(2)
	if errno != 0 {
		return 0, fmt.Errorf("CPU clock of the thread: %w", errno)
	}
	return now, nil
}

func clock(id int) (time.Duration, syscall.Errno) {
	var ts syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(id), uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano()), errno
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
