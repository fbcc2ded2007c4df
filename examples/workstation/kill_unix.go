//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// killGroup runs the command in its own process group and kills the whole group, because go test
// runs the tests in a child process.
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
