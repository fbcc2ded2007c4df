//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// killGroup makes the command the head of a process group and kills all of it: go test runs the
// tests in a child.
func killGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}
