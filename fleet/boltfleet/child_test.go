//go:build unix

package boltfleet_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/fleet/boltfleet"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
)

// childVar makes the test binary a process that writes to the file with this path.
const childVar = "BOLTFLEET_TEST_CHILD"

var keepAll = fleet.Keep{Entries: 1 << 20, Bytes: 1 << 40, TTL: time.Hour}

func asChild() bool {
	path := os.Getenv(childVar)
	if path == "" {
		return false
	}
	if err := writeUntilKilled(path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// startChild starts a process, and returns what it writes to standard output.
func startChild(t *testing.T, path string) (*exec.Cmd, *bufio.Scanner) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return cmd, bufio.NewScanner(out)
}

// writeUntilKilled prints what is acknowledged: "r KEY" and "e NUMBER".
func writeUntilKilled(path string) error {
	e, err := boltfleet.Open(path, nil)
	if err != nil {
		return err
	}
	ctx := context.Background()
	last, err := e.Last(ctx, "g", "l")
	if err != nil {
		return err
	}
	errs := make(chan error)
	for i := range 4 {
		go func() {
			for n := 0; ; n++ {
				key := fmt.Sprintf("%d-%d-%d", os.Getpid(), i, n)
				if _, err := e.Create(ctx, "set", fleet.Record{Key: key, Group: "g", Data: []byte(key), TTL: time.Hour}); err != nil {
					errs <- err
					return
				}
				fmt.Println("r", key)
			}
		}()
	}
	go func() {
		for {
			last++
			if err := e.Append(ctx, "g", "l", fleet.Entry{Seq: last, Data: fmt.Append(nil, last)}, keepAll); err != nil {
				errs <- err
				return
			}
			fmt.Println("e", last)
		}
	}()
	return <-errs
}

func TestNothingAcknowledgedIsLostWhenTheProcessIsKilled(t *testing.T) {
	testkit.MarkLong(t, "starts processes")
	path := filepath.Join(t.TempDir(), "fleet.db")
	acknowledged := map[string]bool{}
	for range 3 {
		cmd, out := startChild(t, path)
		for range 200 {
			require.True(t, out.Scan(), "the process ended")
			acknowledged[out.Text()] = true
		}
		require.NoError(t, cmd.Process.Kill())
		for out.Scan() {
			if text := out.Text(); strings.HasPrefix(text, "r ") || strings.HasPrefix(text, "e ") {
				acknowledged[text] = true
			}
		}
		_ = cmd.Wait()
	}
	e := open(t, path, nil)
	list, err := e.List(t.Context(), "set", "g", "", 1<<20)
	require.NoError(t, err)
	there := map[string]bool{}
	for _, r := range list {
		require.Equal(t, r.Key, string(r.Data))
		there["r "+r.Key] = true
	}
	n, err := e.Count(t.Context(), "set", "")
	require.NoError(t, err)
	require.Equal(t, len(list), n)
	entries, err := e.After(t.Context(), "g", "l", 0, 1<<20)
	require.NoError(t, err)
	for i, entry := range entries {
		require.Equal(t, fleet.Entry{Seq: uint64(i + 1), Data: fmt.Append(nil, i+1)}, entry)
		there[fmt.Sprint("e ", entry.Seq)] = true
	}
	for line := range acknowledged {
		require.True(t, there[line], "%s was acknowledged", line)
	}
}
