//go:build unix

package services

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestACommandThatIsCancelledCleansUpAndLeavesNobodyWaiting(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	const command = `#!/bin/sh
trap 'echo > cleaned; exit 1' INT
sleep 600 & # a compiler, which has the output too
echo $! > compiler.new
mv compiler.new compiler
wait
`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), []byte(command), 0o755))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		cmd := Go(ctx, "build")
		cmd.Dir = dir
		_, err := cmd.CombinedOutput()
		ended <- err
	}()
	var pid []byte
	require.Eventually(t, func() (ok bool) {
		var err error
		pid, err = os.ReadFile(filepath.Join(dir, "compiler"))
		return err == nil
	}, time.Minute, time.Millisecond)
	compiler, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	require.NoError(t, err)
	defer func() { _ = syscall.Kill(compiler, syscall.SIGKILL) }()
	cancel()
	select {
	case err := <-ended:
		require.Error(t, err)
	case <-time.After(time.Minute):
		require.Fail(t, "it waits for the compiler")
	}
	require.FileExists(t, filepath.Join(dir, "cleaned"))
}
