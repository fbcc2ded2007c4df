//go:build unix

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/services"
)

// cancelledGo runs a go command in a folder, and cancels it while a compiler runs that has its output.
func cancelledGo(t *testing.T, change func(*exec.Cmd)) (dir string, compiler int, ended <-chan error) {
	dir = t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	const command = `#!/bin/sh
trap 'echo > cleaned; exit 1' INT
sleep 600 &
echo $! > compiler.new
mv compiler.new compiler
wait
`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), []byte(command), 0o755))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := services.Go(ctx, "build")
	cmd.Dir = dir
	change(cmd)
	done := make(chan error, 1)
	go func() {
		_, err := cmd.CombinedOutput()
		done <- err
	}()
	pid := filepath.Join(dir, "compiler")
	eventually(t, pid)
	text, err := os.ReadFile(pid)
	require.NoError(t, err)
	compiler, err = strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Kill(compiler, syscall.SIGKILL) })
	return dir, compiler, done
}

func eventually(t *testing.T, file string) {
	require.Eventually(t, func() bool {
		_, err := os.Stat(file)
		return err == nil
	}, time.Minute, time.Millisecond, file)
}

func TestACancelledCommandCleansUp(t *testing.T) {
	dir, compiler, ended := cancelledGo(t, func(cmd *exec.Cmd) { cmd.WaitDelay = time.Minute })
	eventually(t, filepath.Join(dir, "cleaned"))
	require.NoError(t, syscall.Kill(compiler, syscall.SIGKILL))
	require.Error(t, <-ended)
}

func TestACancelledCommandDoesNotWaitForItsCompilers(t *testing.T) {
	_, _, ended := cancelledGo(t, func(*exec.Cmd) {})
	select {
	case err := <-ended:
		require.Error(t, err)
	case <-time.After(time.Minute):
		require.Fail(t, "it waits for the compiler")
	}
}

func TestTerminationInterruptsACall(t *testing.T) {
	d := &Desk{waiting: make(chan struct{})}
	url, _ := serve(t, bare, d)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, asCommand, "call", url, "wait")
	require.NoError(t, cmd.Start())
	<-d.waiting
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Error(t, cmd.Wait())
	require.Equal(t, exitInterrupted, cmd.ProcessState.ExitCode())
}
