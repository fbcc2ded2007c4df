//go:build unix

package boltfleet_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/fleet/boltfleet"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
)

// childVar makes the test binary a process that writes to a file: "kill PATH" or "full PATH".
const childVar = "BOLTFLEET_TEST_CHILD"

var keepAll = fleet.Keep{Entries: 1 << 20, Bytes: 1 << 40, TTL: time.Hour}

func asChild() bool {
	what, path, ok := strings.Cut(os.Getenv(childVar), " ")
	if !ok {
		return false
	}
	run := writeUntilKilled
	if what == "full" {
		run = writeUntilFull
	}
	if err := run(path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// startChild starts a process, and returns what it writes to standard output.
func startChild(t *testing.T, what, path string) (*exec.Cmd, *bufio.Scanner) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"="+what+" "+path)
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
		cmd, out := startChild(t, "kill", path)
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

// writeUntilFull makes the system refuse a file of more than 24 MiB, as a full disk does, writes
// until that, and goes on when there is space.
func writeUntilFull(path string) error {
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	whole := limit.Cur
	limit.Cur = 24 << 20
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	e, err := boltfleet.Open(path, nil)
	if err != nil {
		return err
	}
	ctx := context.Background()
	var mu sync.Mutex
	var kept []string
	var full sync.WaitGroup
	for i := range 4 {
		full.Go(func() {
			for n := 0; ; n++ {
				key := fmt.Sprintf("%d-%d", i, n)
				if _, err := e.Create(ctx, "set", fleet.Record{Key: key, Group: "g", Data: make([]byte, 50_000), TTL: time.Hour}); err != nil {
					return
				}
				mu.Lock()
				kept = append(kept, key)
				mu.Unlock()
			}
		})
	}
	full.Wait()
	if len(kept) < 10 {
		return fmt.Errorf("only %d records", len(kept))
	}
	if _, err := e.Create(ctx, "set", fleet.Record{Key: "one-more", Data: make([]byte, 1<<20), TTL: time.Hour}); err == nil {
		return errors.New("the disk is not full")
	}
	check := func() error {
		for _, key := range kept {
			if _, err := e.Get(ctx, "set", key); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
		n, err := e.Count(ctx, "set", "g")
		if err == nil && n != len(kept) {
			err = fmt.Errorf("%d records of %d", n, len(kept))
		}
		return err
	}
	if err := check(); err != nil {
		return err
	}
	limit.Cur = whole // the disk has space again
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	for n := range 10 {
		key := fmt.Sprint("again-", n)
		if _, err := e.Create(ctx, "set", fleet.Record{Key: key, Group: "g", Data: make([]byte, 50_000), TTL: time.Hour}); err != nil {
			return fmt.Errorf("when the disk has space again: %w", err)
		}
		kept = append(kept, key)
	}
	if err := check(); err != nil {
		return err
	}
	if err := e.Close(); err != nil {
		return err
	}
	if e, err = boltfleet.Open(path, nil); err != nil {
		return err
	}
	return errors.Join(check(), e.Close())
}

func TestFullDisksLoseNothing(t *testing.T) {
	testkit.MarkLong(t, "starts a process")
	cmd, out := startChild(t, "full", filepath.Join(t.TempDir(), "fleet.db"))
	for out.Scan() {
	}
	require.NoError(t, cmd.Wait(), "see its standard error")
}
