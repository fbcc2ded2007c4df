package mcpkit_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// asProgram is set if the test binary is to be a server on stdio.
const asProgram = "MCPKIT_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		if err := mcpkit.Serve(&program{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	testkit.VerifyTestMain(m)
}

// program is the service of that server.
type program struct{}

// Wait reports that it has begun, and waits.
func (program) Wait(ctx context.Context, call *mcpkit.Call) (string, error) {
	call.Progress(1, 0, "begun")
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-time.After(300 * time.Millisecond):
		return "waited", nil
	}
}

func TestAProgramThatIsToldToStopFinishesItsCalls(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), asProgram+"=1")
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		_, err = io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","_meta":{"progressToken":1,`+
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`+"\n")
		require.NoError(t, err)
		lines := bufio.NewScanner(out)
		require.True(t, lines.Scan())
		require.Contains(t, lines.Text(), "begun")
		require.NoError(t, cmd.Process.Signal(sig))
		require.True(t, lines.Scan())
		require.Contains(t, lines.Text(), "waited", sig)
		require.False(t, lines.Scan())
		require.NoError(t, cmd.Wait())
	}
}
