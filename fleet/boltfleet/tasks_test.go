package boltfleet_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/fleet/boltfleet"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// serverVar makes the test binary serve on standard input. Its value is the file of the engine.
const serverVar = "BOLTFLEET_TEST_SERVER"

// holdVar makes methods wait before their end, for the process to be killed.
const holdVar = "BOLTFLEET_TEST_HOLD"

func asServer() bool {
	file := os.Getenv(serverVar)
	if file == "" {
		return false
	}
	if err := serve(file); err != nil {
		fmt.Fprintln(os.Stderr, "fatal:", err)
		os.Exit(1)
	}
	return true
}

func serve(file string) error {
	engine, err := boltfleet.Open(file, nil)
	if err != nil {
		return err
	}
	srv, err := mcpkit.New(&shop{held: os.Getenv(holdVar) != ""}, mcpkit.StateKeys([]byte("0123456789abcdef0123456789abcdef")), mcpkit.Fleet(engine),
		tasks.New(tasks.PollInterval(time.Millisecond)), mcpkit.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	return srv.Serve(context.Background())
}

// A shop ships orders, and says on standard error what it does.
type shop struct {
	_ struct {
		Ship mcpkit.Tool `task:"required,durable"`
	}
	held bool
}

// Ship packs a parcel, which is a value of Once, and delivers it.
func (s *shop) Ship(ctx context.Context) (string, error) {
	parcel, err := mcpkit.Once(ctx, "parcel", func() (string, error) {
		label := rand.Text()
		_, err := fmt.Fprintln(os.Stderr, "packed", label)
		return label, err
	})
	if err != nil {
		return "", err
	}
	if s.held {
		fmt.Fprintln(os.Stderr, "waits")
		<-ctx.Done()
		return "", context.Cause(ctx)
	}
	_, err = fmt.Fprintln(os.Stderr, "delivered", parcel)
	return parcel, err
}

// A process is a server that can be killed.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	err *bufio.Scanner
	ids int
}

func start(t *testing.T, file string, env ...string) *process {
	p := &process{t: t, cmd: exec.CommandContext(t.Context(), os.Args[0])}
	p.cmd.Env = append(append(os.Environ(), serverVar+"="+file), env...)
	var err error
	p.in, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	stderr, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	p.out, p.err = bufio.NewScanner(out), bufio.NewScanner(stderr)
	return p
}

// kill kills the process, and returns what it still said.
func (p *process) kill() (said []string) {
	require.NoError(p.t, p.cmd.Process.Kill())
	for p.out.Scan() {
	}
	for p.err.Scan() {
		said = append(said, p.err.Text())
	}
	_ = p.cmd.Wait()
	return said
}

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`

// call sends a request and decodes its result.
func (p *process) call(method, params string, result any) {
	p.t.Helper()
	p.ids++
	_, err := fmt.Fprintf(p.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s,%s}}`+"\n", p.ids, method, params, meta)
	require.NoError(p.t, err)
	for p.out.Scan() {
		var resp struct {
			ID     int
			Result json.RawMessage
			Error  json.RawMessage
		}
		require.NoError(p.t, json.Unmarshal(p.out.Bytes(), &resp), "%s", p.out.Bytes())
		if resp.ID != p.ids {
			continue
		}
		require.Nil(p.t, resp.Error, "%s %s", method, resp.Error)
		require.NoError(p.t, json.Unmarshal(resp.Result, result))
		return
	}
	require.Fail(p.t, "the server ended", "%v", p.out.Err())
}

// await asks for the task until the server has run it to an end.
func (p *process) await(id string) protocol.DetailedTask {
	for {
		var d protocol.DetailedTask
		p.call("tasks/get", fmt.Sprintf(`"taskId":%q`, id), &d)
		if d.Status != protocol.TaskWorking {
			return d
		}
	}
}

// No other process has the file, so nobody waits for the lease of the process that was killed, 30 s.
func TestTasksGoOnAtOnceWhenTheirProcessWasKilled(t *testing.T) {
	testkit.MarkLong(t, "starts processes")
	file := filepath.Join(t.TempDir(), "fleet.db")
	p := start(t, file, holdVar+"=yes")
	var created protocol.CreateTaskResult
	p.call("tools/call", `"name":"ship"`, &created)
	require.True(t, p.err.Scan())
	label, found := strings.CutPrefix(p.err.Text(), "packed ")
	require.True(t, found, p.err.Text())
	require.True(t, p.err.Scan())
	require.Equal(t, "waits", p.err.Text(), "the label is kept")
	p.kill()

	begun := time.Now()
	p = start(t, file)
	p.call("server/discover", `"x":0`, &struct{}{}) // starts the server
	d := p.await(created.TaskID)
	require.Less(t, time.Since(begun), 2*time.Second)
	require.Equal(t, protocol.TaskCompleted, d.Status)
	require.Contains(t, string(d.Result), label)
	require.Equal(t, []string{"delivered " + label}, p.kill(), "it is not packed again")
}
