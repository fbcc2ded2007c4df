package mcpkit_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
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

func (program) Echo(in where) string { return in.City }

// Print writes to standard output, which belongs to the protocol.
func (program) Print() string {
	fmt.Println("printed by user code")
	return "done"
}

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

// Hang never ends by itself.
func (program) Hang(ctx context.Context, call *mcpkit.Call) error {
	call.Progress(1, 0, "begun")
	<-ctx.Done()
	return ctx.Err()
}

// child is the server as a process.
type child struct {
	*exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	outEnd io.Closer
	stderr bytes.Buffer
}

func startProgram(t *testing.T) *child {
	c := &child{Cmd: exec.CommandContext(t.Context(), os.Args[0])}
	c.Env = append(os.Environ(), asProgram+"=1")
	c.Stderr = &c.stderr
	var err error
	c.in, err = c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	c.out, c.outEnd = bufio.NewReader(out), out
	require.NoError(t, c.Start())
	return c
}

func (c *child) say(t *testing.T, lines ...string) {
	_, err := io.WriteString(c.in, strings.Join(lines, "\n")+"\n")
	require.NoError(t, err)
}

func (c *child) line(t *testing.T) string {
	line, err := c.out.ReadString('\n')
	require.NoError(t, err, "stderr: %s", &c.stderr)
	return line
}

// ends waits for the process and requires exit code 0.
func (c *child) ends(t *testing.T) {
	rest, _ := io.ReadAll(c.out)
	require.NoError(t, c.Wait(), "stderr: %s", &c.stderr)
	require.Empty(t, string(rest))
}

func callLine(id int, tool, more string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q%s,"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, id, tool, more)
}

func TestAProgramThatEndsWithItsInputAnswersFirst(t *testing.T) {
	c := startProgram(t)
	for i := range 50 {
		c.say(t, callLine(i, "echo", `,"arguments":{"city":"Rome"}`))
	}
	require.NoError(t, c.in.Close())
	seen := map[string]bool{}
	for range 50 {
		line := c.line(t)
		require.Contains(t, line, `"text":"Rome"`)
		seen[line] = true
	}
	require.Len(t, seen, 50, "each once")
	c.ends(t)
}

func TestAProgramThatIsToldToStopFinishesItsCalls(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			c := startProgram(t)
			c.say(t, callLine(1, "wait", ""))
			require.Contains(t, c.line(t), "begun")
			require.NoError(t, c.Process.Signal(sig))
			require.Contains(t, c.line(t), "waited")
			c.ends(t)
		})
	}
}

func TestAProgramWhoseReaderIsGoneEnds(t *testing.T) {
	c := startProgram(t)
	c.say(t, callLine(1, "hang", ""))
	require.Contains(t, c.line(t), "begun")
	require.NoError(t, c.outEnd.Close())
	c.say(t, callLine(2, "echo", `,"arguments":{"city":"Rome"}`))
	require.NoError(t, c.Wait(), "stderr: %s", &c.stderr)
}

func TestPrintedTextDoesNotReachTheProtocol(t *testing.T) {
	c := startProgram(t)
	c.say(t, callLine(1, "print", ""))
	require.Contains(t, c.line(t), `"text":"done"`)
	require.NoError(t, c.in.Close())
	c.ends(t)
	require.Contains(t, c.stderr.String(), "printed by user code")
}

func TestBadLinesCostNothingButThemselves(t *testing.T) {
	c := startProgram(t)
	good := callLine(7, "echo", `,"arguments":{"city":"Rome"}`)
	for _, bad := range []struct{ line, want string }{
		{`{"jsonrpc":"2.0","id":1,`, `"id":null,"error":{"code":-32700`},
		{`nonsense`, `"id":null,"error":{"code":-32700`},
		{`{"jsonrpc":"2.0","id":1} {"jsonrpc":"2.0","id":2}`, `"error":{"code":-32700`},
		{`[]`, `"error":{"code":-32600`},
		{`5`, `"error":{"code":-32600`},
		{`{"jsonrpc":"1.0","id":1,"method":"ping"}`, `"id":1,"error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, `"id":null,"error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":1e99,"method":"ping"}`, `"id":null,"error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":null,"method":"ping"}`, `"id":null,"error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":99999999999999999999,"method":"ping"}`, `"id":null,"error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, `"error":{"code":-32700`},
		{`{"jsonrpc":"2.0","id":1,"Method":"ping"}`, `"id":1,"error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":1,"method":5}`, `"id":1,"error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`, `"id":1,"error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","params":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`, `"error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 5<<20) + `"}}`, `message is larger than 4194304 bytes; raise Options.MaxMessageBytes`},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", `"error":{"code":-32700`},
	} {
		c.say(t, bad.line, good)
		first, second := c.line(t), c.line(t)
		require.Contains(t, first+second, bad.want, "%.80s", bad.line)
		require.Contains(t, first+second, `"text":"Rome"`, "the next good request is answered")
	}
	require.NoError(t, c.in.Close())
	c.ends(t)
}
