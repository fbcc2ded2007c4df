//go:build !unix

package client

import "os/exec"

func isolate(*exec.Cmd) {}

// terminate does nothing: this system has no SIGTERM.
func terminate(*exec.Cmd) {}

// kill kills the process, but not its children.
func kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
