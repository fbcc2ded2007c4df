package client_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

func init() {
	children["exits at what it does not know"] = func() int {
		return legacyChild(func(method, id string) bool { return method == "initialize" })
	}
	children["prints between the messages"] = func() int {
		fmt.Println("Starting up!")
		fmt.Println(`{"level":"info"}`)
		fmt.Println("\n  \n[1,2,3]")
		fmt.Println(strings.Repeat("x", 3<<20))
		return legacyChild(func(method, id string) bool { return true })
	}
	children["does not start"] = func() int {
		fmt.Fprintln(os.Stderr, "no config file")
		return 3
	}
	children["ignores the end"] = func() int {
		signal.Ignore(syscall.SIGTERM)
		legacyChild(func(method, id string) bool { return true })
		select {}
	}
	children["fails at its end"] = func() int {
		legacyChild(func(method, id string) bool { return true })
		return 4
	}
	children["floods standard error"] = func() int {
		go func() {
			for {
				fmt.Fprintln(os.Stderr, strings.Repeat("flood ", 100))
			}
		}()
		return legacyChild(func(method, id string) bool { return true })
	}
	children["leaves a child behind"] = func() int {
		cmd := exec.Command("sleep", "1000")
		cmd.Stderr = os.Stderr // it stays open
		if err := cmd.Start(); err != nil {
			return 1
		}
		fmt.Fprintln(os.Stderr, "child", cmd.Process.Pid)
		return legacyChild(func(method, id string) bool { return true })
	}
	children["tells its environment"] = func() int {
		fmt.Fprintln(os.Stderr, strings.Join(os.Environ(), "\n"))
		return legacyChild(func(method, id string) bool { return true })
	}
	children["does not read"] = func() int { select {} }
}

// legacyChild answers initialize, and calls known for other requests. It exits if known returns
// false.
func legacyChild(known func(method, id string) bool) int {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		line := lines.Text()
		method := between(line, `"method":"`, `"`)
		id := between(line, `"id":`, `,`)
		if id == "" {
			continue
		}
		if !known(method, id) {
			fmt.Fprintln(os.Stderr, "unknown method", method)
			return 1
		}
		if method == "initialize" {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"child","version":"1"}}}`+"\n", id)
		}
	}
	return 0
}

func between(s, before, after string) string {
	_, s, _ = strings.Cut(s, before)
	s, _, _ = strings.Cut(s, after)
	return s
}

func TestAProgramIsInitializedWhateverItDoesWithTheProbe(t *testing.T) {
	for _, kind := range []string{"exits at what it does not know", "prints between the messages"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			c := dial(t, child(kind), client.ProbeTimeout(500*time.Millisecond), client.MaxMessageBytes(1<<20), client.ShutdownTimeout(2*time.Second))
			require.Equal(t, protocol.V20250618, c.Version())
			require.Equal(t, "child", c.Server().Name)
		})
	}
}

func TestTheErrorSaysWhyAProgramDoesNotStart(t *testing.T) {
	// The client starts the program twice, because a legacy server may end after server/discover.
	_, err := dialing(t, child("does not start"))
	require.EqualError(t, err, `client: initialize: transport: closed: the server ended (exit status 3); its last words: "no config file"`)
	_, err = dialing(t, "no-such-program-anywhere --flag")
	require.EqualError(t, err, `client: the server does not start: exec: "no-such-program-anywhere": executable file not found in $PATH`)
	_, err = dialing(t, client.Command(""))
	require.EqualError(t, err, "client: the command is empty")
}

func TestAProgramThatDoesNotEndIsKilled(t *testing.T) {
	c, err := client.Dial(t.Context(), child("ignores the end"), client.Version("2025-06-18"), client.ShutdownTimeout(100*time.Millisecond), client.Stderr(nil))
	require.NoError(t, err)
	begun := time.Now()
	require.NoError(t, c.Close())
	require.Less(t, time.Since(begun), time.Minute)
}

func TestCloseReportsAProgramThatFails(t *testing.T) {
	c, err := client.Dial(t.Context(), child("fails at its end"), client.Version("2025-06-18"), client.Stderr(nil))
	require.NoError(t, err)
	require.EqualError(t, c.Close(), "client: the server ended (exit status 4)")
}

func TestAFloodOfStandardErrorDoesNotBlock(t *testing.T) {
	c := dial(t, child("floods standard error"), client.Version("2025-06-18"), client.Stderr(io.Discard))
	require.NoError(t, c.Close())
}

func TestGrandchildrenEndWithTheProgram(t *testing.T) {
	t.Parallel()
	var stderr testkit.Buffer
	c := dial(t, child("leaves a child behind"), client.Version("2025-06-18"), client.Stderr(&stderr))
	require.NoError(t, c.Close())
	pid, err := strconv.Atoi(strings.TrimSpace(between(stderr.String(), "child ", "\n")))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		// It has ended, or is a zombie.
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(state), ") Z ")
	}, time.Minute, 10*time.Millisecond)
}

func TestProgramsInheritOnlyTheEnvironmentTheyNeed(t *testing.T) {
	t.Setenv("MCPKIT_TEST_SECRET", "hush")
	for _, inherit := range []bool{false, true} {
		var stderr testkit.Buffer
		target := child("tells its environment")
		target.InheritEnv = inherit
		target.Env = append(target.Env, "GIVEN=yes")
		c := dial(t, target, client.Version("2025-06-18"), client.Stderr(&stderr))
		require.NoError(t, c.Close())
		require.Contains(t, stderr.String(), "PATH=")
		require.Contains(t, stderr.String(), "GIVEN=yes")
		require.Equal(t, inherit, strings.Contains(stderr.String(), "hush"))
	}
}

func TestAProgramThatDiesFailsItsCalls(t *testing.T) {
	c, err := client.Dial(t.Context(), child("exits at what it does not know"), client.Version("2025-06-18"), client.Stderr(nil), client.Logger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	_, err = c.CallTool(t.Context(), "x", nil)
	require.EqualError(t, err, `client: tools/call "x": transport: closed: the server ended (exit status 1); its last words: "unknown method tools/call"`)
	_, err = c.CallTool(t.Context(), "x", nil)
	require.ErrorContains(t, err, "transport: closed")
	require.EqualError(t, c.Close(), `client: the server ended (exit status 1); its last words: "unknown method tools/call"`)
}

func TestDialEndsIfTheProgramDoesNotRead(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := client.Dial(ctx, child("does not read"), client.Version("2025-06-18"), client.ShutdownTimeout(50*time.Millisecond), client.Stderr(nil))
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestWithheldVariablesAreNamed(t *testing.T) {
	t.Setenv("MCPKIT_TEST_SECRET", "x")
	t.Setenv("MCPKIT_TEST_GIVEN", "x")
	target := client.Command("true")
	require.Subset(t, target.Withheld(), []string{"MCPKIT_TEST_GIVEN", "MCPKIT_TEST_SECRET"})
	require.NotContains(t, target.Withheld(), "PATH")
	require.IsIncreasing(t, target.Withheld())
	target.Env = []string{"MCPKIT_TEST_GIVEN=y"}
	require.NotContains(t, target.Withheld(), "MCPKIT_TEST_GIVEN")
	target.InheritEnv = true
	require.Empty(t, target.Withheld())
}
