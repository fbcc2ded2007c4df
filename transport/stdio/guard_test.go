//go:build unix

package stdio_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
)

// guardServer is a program that prints in every way while it serves. It created its logger before
// Serve.
func guardServer() {
	older := log.New(os.Stdout, "", 0)
	err := stdio.New(nil).Serve(context.Background(), printer{older})
	older.Println("after Serve:", err)
}

type printer struct{ older *log.Logger }

func (p printer) ServeRPC(ctx context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
	child := exec.CommandContext(ctx, "/bin/sh", "-c", "echo from a child")
	var err error
	switch req.Method {
	case "println":
		_, err = fmt.Println("from println")
	case "older logger":
		p.older.Println("from an older logger")
	case "descriptor":
		_, err = syscall.Write(1, []byte("from the descriptor\n"))
	case "child":
		child.Stdout = os.Stdout
		err = child.Run()
	case "child with all descriptors":
		// The shell opens no descriptors, so it inherited those that it can write to.
		child.Args[2] = "for n in 3 4 5 6 7 8 9; do echo leaked 2>/dev/null >&$n; done; echo from a child"
		child.Stdout = os.Stdout
		err = child.Run()
	case "child that reads":
		child.Args[2] = "read -r line; echo \"read: $line\""
		child.Stdin, child.Stdout = os.Stdin, os.Stdout
		err = child.Run()
	}
	if err != nil {
		return &jsonrpc.Response{Error: jsonrpc.Errorf(-32000, "%v", err)}
	}
	return &jsonrpc.Response{Result: []byte(`"done"`)}
}

func TestNothingButTheProtocolReachesStandardOutput(t *testing.T) {
	for method, printed := range map[string]string{
		"println":                    "from println\n",
		"older logger":               "from an older logger\n",
		"descriptor":                 "from the descriptor\n",
		"child":                      "from a child\n",
		"child with all descriptors": "from a child\n",
		"child that reads":           "read: \n",
	} {
		t.Run(method, func(t *testing.T) {
			cmd, in, out, stderr := start(t, "guard")
			_, err := fmt.Fprintf(in, `{"jsonrpc":"2.0","id":1,"method":%q}`+"\n"+ping(2)+"\n", method)
			require.NoError(t, err)
			require.NoError(t, in.Close())
			all, err := io.ReadAll(out)
			require.NoError(t, err)
			require.NoError(t, cmd.Wait())
			sameLines(t, `{"jsonrpc":"2.0","id":1,"result":"done"}`+"\n"+`{"jsonrpc":"2.0","id":2,"result":"done"}`+"\n"+
				"after Serve: <nil>\n", string(all))
			require.Equal(t, printed, stderr.String())
		})
	}
}

// The device of zeros stands for a terminal.
func TestAPersonAtATerminalIsToldWhatToDo(t *testing.T) {
	terminal, err := os.Open("/dev/zero")
	require.NoError(t, err)
	defer terminal.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env, cmd.Stdin = append(os.Environ(), "STDIO_TEST_SERVER=echo"), terminal
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	said := make([]byte, 21)
	_, err = io.ReadFull(stderr, said)
	require.NoError(t, cmd.Process.Kill())
	require.NoError(t, err)
	require.Equal(t, "This is an MCP server", string(said))
	_ = cmd.Wait() // it was killed
}
