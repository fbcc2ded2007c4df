//go:build !unix

package client

import "os/exec"

func isolate(*exec.Cmd) {}

// terminate does nothing: this system has no way to ask a process to end.
func terminate(*exec.Cmd) {}

// kill ends the process. Its children are on their own.
func kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
