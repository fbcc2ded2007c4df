package natsfleet_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet/natsfleet/natsserver"
)

// childVar makes the test binary a server; its value is its options.
const childVar = "NATSFLEET_TEST_SERVER"

// asChild runs a server until standard input ends, if the process is to be one.
func asChild() bool {
	text := os.Getenv(childVar)
	if text == "" {
		return false
	}
	var opts natsserver.Options
	if err := json.Unmarshal([]byte(text), &opts); err != nil {
		panic(err)
	}
	s, err := natsserver.Start(context.Background(), opts)
	if err != nil {
		panic(err)
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	s.Close()
	return true
}

// A process is a server that can be killed.
type process struct {
	t    testing.TB
	cmd  *exec.Cmd
	in   io.WriteCloser
	opts natsserver.Options
}

func startProcess(t testing.TB, opts natsserver.Options) *process {
	t.Helper()
	text, err := json.Marshal(opts)
	require.NoError(t, err)
	p := &process{t: t, cmd: exec.Command(os.Args[0]), opts: opts}
	p.cmd.Env = append(os.Environ(), childVar+"="+string(text))
	p.cmd.Stderr = os.Stderr
	p.in, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(p.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	return p
}

// kill kills the process, as kill -9 does. It may be called again.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	_ = p.in.Close()
}

// restart kills the process and starts it again.
func (p *process) restart() *process {
	p.t.Helper()
	p.kill()
	return startProcess(p.t, p.opts)
}
