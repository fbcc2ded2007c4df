//go:build windows || (unix && !solaris && !aix)

package filelock_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/filelock"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
)

const holdVariable = "FILELOCK_TEST_HOLD"

func TestMain(m *testing.M) {
	if name := os.Getenv(holdVariable); name != "" {
		hold(name)
		return
	}
	testkit.VerifyTestMain(m)
}

// hold is another process: it locks a file, says so, and ends without unlocking when its input
// does.
func hold(name string) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	if ok, err := filelock.TryLock(f); err != nil || !ok {
		panic(err)
	}
	_, _ = os.Stdout.WriteString("locked\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

func open(t *testing.T, name string) *os.File {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func tryLock(t *testing.T, f *os.File) bool {
	ok, err := filelock.TryLock(f)
	require.NoError(t, err)
	return ok
}

func TestOnlyOneOpenFileHoldsTheLock(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	first, second := open(t, name), open(t, name)
	require.True(t, tryLock(t, first))
	require.False(t, tryLock(t, second))
	require.NoError(t, filelock.Unlock(first))
	require.True(t, tryLock(t, second))
	require.False(t, tryLock(t, first))
	require.NoError(t, filelock.Unlock(second))
	require.True(t, tryLock(t, first))
}

func TestALockEndsWithTheProcessThatHoldsIt(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	f := open(t, name)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), holdVariable+"="+name)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "locked\n", line)
	require.False(t, tryLock(t, f), "another process has it")
	require.NoError(t, in.Close())
	require.Error(t, cmd.Wait(), "it ends with status 1")
	require.True(t, tryLock(t, f))
}

func TestClosedFileCannotBeLocked(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "lock"))
	require.NoError(t, f.Close())
	_, err := filelock.TryLock(f)
	require.ErrorContains(t, err, "lock "+f.Name())
	require.ErrorContains(t, filelock.Unlock(f), "unlock "+f.Name())
}
