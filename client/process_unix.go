//go:build unix

package client

import (
	"os/exec"
	"syscall"
)

// isolate gives the program a process group of its own, so that its children can be ended with it,
// and so that a Ctrl-C at the terminal is this process's to handle.
func isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// terminate asks the group to end.
func terminate(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// kill ends the group.
func kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
