package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/examples/internal/rawclient"
	"github.com/mcpkit/mcpkit-go/internal/longtest"
)

func TestGoBuildsVetsAndTests(t *testing.T) {
	t.Parallel()
	longtest.Mark(t, "runs the go command")
	root := workplace(t)
	c := overHTTP(t, rawclient.Modern, root)
	var r Report
	for _, tool := range []string{"go_build", "go_vet", "go_test"} {
		c.CallInto(&r, tool, `{}`)
		require.True(t, r.OK, r.Output)
	}
	require.Contains(t, r.Output.Output, "ok  \texample.com/sum\t")

	c.CallInto(&r, "go_test", `{"packages":["."],"run":"^TestNone$"}`)
	require.Contains(t, r.Output.Output, "[no tests to run]")

	write(t, root, "sum.go", "package sum\n\nfunc Add(a, b int) int { return a - b }\n")
	c.CallInto(&r, "go_test", `{}`)
	require.False(t, r.OK)
	require.Equal(t, 1, r.ExitCode)
	require.Contains(t, r.Output.Output, "--- FAIL: TestAdd")

	write(t, root, "sum.go", "package sum\n\nfunc Add(a, b int) int { return a + c }\n")
	c.CallInto(&r, "go_build", `{}`)
	require.False(t, r.OK)
	require.Contains(t, r.Output.Output, "undefined: c")
}

func TestGoStaysInTheModule(t *testing.T) {
	t.Parallel()
	c := overHTTP(t, rawclient.Modern, workplace(t))
	for _, pattern := range []string{"../...", "./../..", "-exec=sh", "-toolexec", "example.com/other", "std", "all", "/etc", "./sum.go", "./x@v1", ""} {
		want := fmt.Sprintf(`%q is no package of this module; write for example "./..." or "./store"`, pattern)
		require.Equal(t, want, refusal(t, c, "go_test", fmt.Sprintf(`{"packages":[%q]}`, pattern)))
	}
}

func TestGoBuildLeavesNothing(t *testing.T) {
	t.Parallel()
	root := workplace(t)
	write(t, root, "cmd/prog/main.go", "package main\n\nfunc main() {}\n")
	var r Report
	overHTTP(t, rawclient.Modern, root).CallInto(&r, "go_build", `{"packages":["./cmd/prog"]}`)
	require.True(t, r.OK, r.Output)
	require.NoFileExists(t, root+"/prog")
}

// A client with a progress token gets each line while the tests run, as an event stream, even
// through the app's Gzip.
func TestGoReportsProgress(t *testing.T) {
	t.Parallel()
	longtest.Mark(t, "runs the go command")
	everyWay(t, func(t *testing.T, c *rawclient.Client, root string) {
		reply := c.Request("tools/call", `{"name":"go_test","arguments":{},"_meta":{"progressToken":"p"}}`)
		require.Equal(t, []string{"notifications/progress"}, reply.Notifications)
		require.Contains(t, string(reply.Result), `"ok":true`)
		require.Empty(t, c.Request("tools/call", `{"name":"go_test","arguments":{}}`).Notifications)
	})
}

func TestLinesAreReported(t *testing.T) {
	t.Parallel()
	var told []string
	out := capped{line: func(text string) { told = append(told, text) }}
	for _, part := range []string{"a", "b\nc\n", "\n", strings.Repeat("x", 500), "\nrest"} {
		n, err := out.Write([]byte(part))
		require.NoError(t, err)
		require.Equal(t, len(part), n)
	}
	require.Equal(t, []string{"ab", "c", "", strings.Repeat("x", 400)}, told)
	require.Equal(t, "ab\nc\n\n"+strings.Repeat("x", 500)+"\nrest", out.String())
}

// When the client cancels the call of a test that hangs, go and the test are killed.
func TestCancellingACallKillsTheTest(t *testing.T) {
	t.Parallel()
	longtest.Mark(t, "runs the go command")
	everyWay(t, func(t *testing.T, c *rawclient.Client, root string) {
		// The test connects here when it starts, and keeps the connection open.
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer listener.Close()
		write(t, root, "endless_test.go", fmt.Sprintf(`package sum

import (
	"net"
	"testing"
)

func TestEndless(t *testing.T) {
	t.Parallel()
	if _, err := net.Dial("tcp", %q); err != nil {
		t.Fatal(err)
	}
	select {}
}
`, listener.Addr()))

		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		// Ends when the call is aborted.
		go func() {
			defer close(over)
			_, _ = c.Try(ctx, "77", "tools/call", `{"name":"go_test","arguments":{"run":"^TestEndless$"}}`)
		}()
		conn, err := listener.Accept()
		require.NoError(t, err)
		defer conn.Close()

		// This notification cancels the call, except over HTTP in modern versions, where closing
		// the connection does.
		c.Notify("notifications/cancelled", `{"requestId":77,"reason":"the user cancelled"}`)
		cancel()
		<-over
		// A reset ends it, too.
		n, _ := io.Copy(io.Discard, conn)
		require.Zero(t, n)
	})
}
