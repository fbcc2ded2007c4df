package boltfleet_test

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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

// serverVar makes the test binary serve on standard input. Its value is the directory with the file
// of the engine and the effects.
const serverVar = "BOLTFLEET_TEST_SERVER"

// holdVar is the first order whose value of Once is not made; by default all are.
const holdVar = "BOLTFLEET_TEST_HOLD_FROM"

func asServer() bool {
	dir := os.Getenv(serverVar)
	if dir == "" {
		return false
	}
	if err := serve(dir); err != nil {
		fmt.Fprintln(os.Stderr, "fatal:", err)
		os.Exit(1)
	}
	return true
}

func serve(dir string) error {
	engine, err := boltfleet.Open(filepath.Join(dir, "fleet.db"), nil)
	if err != nil {
		return err
	}
	effects, err := os.OpenFile(filepath.Join(dir, "effects"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer effects.Close()
	held := math.MaxInt
	if text := os.Getenv(holdVar); text != "" {
		if held, err = strconv.Atoi(text); err != nil {
			return err
		}
	}
	srv, err := mcpkit.New(&shop{effects: effects, held: held}, mcpkit.StateKeys([]byte("0123456789abcdef0123456789abcdef")), mcpkit.Fleet(engine),
		tasks.New(tasks.PollInterval(time.Millisecond)), mcpkit.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	return srv.Serve(context.Background())
}

// A shop ships orders. Each effect is a line on the disk, and one on standard error.
//
// From the order held on, values of Once are not made before the process is killed: half of them
// stop before their effect, the others after it.
type shop struct {
	_ struct {
		Plain   mcpkit.Tool `task:"required"`
		Durable mcpkit.Tool `task:"required,durable"`
		Asking  mcpkit.Tool `task:"required"`
		Deliver mcpkit.Tool `task:"required,durable"`
	}
	effects io.Writer
	held    int
}

type order struct {
	N int `json:"n"`
}

// effect writes a line and returns when the operating system has it.
func (s *shop) effect(format string, args ...any) error {
	line := fmt.Sprintf(format, args...) + "\n"
	if _, err := s.effects.Write([]byte(line)); err != nil {
		return err
	}
	_, err := os.Stderr.WriteString(line)
	return err
}

// pack is the work of all tools: a value of Once whose making has an effect.
func (s *shop) pack(ctx context.Context, n int) (string, error) {
	if err := s.effect("run %d", n); err != nil {
		return "", err
	}
	parcel, err := mcpkit.Once(ctx, "parcel", func() (string, error) {
		held, before := n >= s.held, n/4%2 == 0
		if held && before {
			<-ctx.Done()
		}
		label := rand.Text()
		err := s.effect("made %d %s %s", n, label, mcpkit.OnceKey(ctx, "parcel"))
		if held && !before {
			<-ctx.Done()
		}
		return label, err
	})
	if err != nil {
		return "", err
	}
	return parcel, s.effect("kept %d %s", n, parcel)
}

func (s *shop) Plain(ctx context.Context, in order) (string, error)   { return s.pack(ctx, in.N) }
func (s *shop) Durable(ctx context.Context, in order) (string, error) { return s.pack(ctx, in.N) }

// Asking asks after it has packed.
func (s *shop) Asking(ctx context.Context, in order) (string, error) {
	parcel, err := s.pack(ctx, in.N)
	if err != nil {
		return "", err
	}
	ok, err := mcpkit.Confirm(ctx, fmt.Sprintf("Ship %d?", in.N), mcpkit.Key("ship"))
	if err != nil || !ok {
		return "not shipped", err
	}
	return parcel, nil
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

func start(t *testing.T, dir string, env ...string) *process {
	p := &process{t: t, cmd: exec.CommandContext(t.Context(), os.Args[0])}
	p.cmd.Env = append(append(os.Environ(), serverVar+"="+dir), env...)
	var err error
	p.in, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	stderr, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	p.out, p.err = bufio.NewScanner(out), bufio.NewScanner(stderr)
	p.out.Buffer(nil, 1<<20)
	return p
}

// kill kills the process and drops what it still wrote.
func (p *process) kill() {
	require.NoError(p.t, p.cmd.Process.Kill())
	for p.out.Scan() {
	}
	for p.err.Scan() {
	}
	_ = p.cmd.Wait()
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

func (p *process) get(id string) protocol.DetailedTask {
	var d protocol.DetailedTask
	p.call("tasks/get", fmt.Sprintf(`"taskId":%q`, id), &d)
	return d
}

// lines waits until the server has written so many effects.
func (p *process) lines(n int) {
	for range n {
		require.True(p.t, p.err.Scan(), "the server ended")
	}
}

// await asks for the task until the server has run it to an end or a question.
func (p *process) await(id string) protocol.DetailedTask {
	for {
		if d := p.get(id); d.Status != protocol.TaskWorking {
			return d
		}
	}
}

func textOf(t *testing.T, d protocol.DetailedTask) string {
	var r protocol.CallToolResult
	require.NoError(t, json.Unmarshal(d.Result, &r))
	require.NotEmpty(t, r.Content)
	return r.Content[0].(*protocol.TextContent).Text
}

// The process is killed in the middle of 100 tasks, twice. Each line of the file of effects that
// has no place in this account is a fault:
//
//	made  a value of Once was made. The label that the task ends with is made once; other labels of
//	      a task are values that were being made, and were not kept, when the process was killed.
//	kept  Once returned the value: always the same one.
//	run   the method began: once for each process, and once more for each answer.
func TestKilledInTheMiddleOfAHundredTasks(t *testing.T) {
	testkit.MarkLong(t, "starts processes")
	const count, kills = 100, 2
	dir := t.TempDir()
	tools := []string{"plain", "durable", "asking", "durable"}
	ids := make([]string, count)
	ended := map[int]protocol.DetailedTask{} // what the server said of tasks that have ended
	note := func(p *process, n int) protocol.DetailedTask {
		d := p.get(ids[n])
		if before, ok := ended[n]; ok {
			require.Equal(t, before, d, "a task that has ended does not change")
		}
		if d.Status.Terminal() {
			ended[n] = d
		}
		return d
	}

	p := start(t, dir, holdVar+"=50")
	for n := range count {
		var created protocol.CreateTaskResult
		p.call("tools/call", fmt.Sprintf(`"name":%q,"arguments":{"n":%d}`, tools[n%len(tools)], n), &created)
		require.Equal(t, protocol.ResultTask, created.ResultType)
		ids[n] = created.TaskID
	}
	// run, made and kept of the first 50; run of the others, and made of the 24 that stop after it.
	p.lines(50*3 + 50 + 24)
	for n := range count / 2 {
		note(p, n)
	}
	p.kill()

	p = start(t, dir)
	p.call("server/discover", `"x":0`, &struct{}{}) // starts the server
	p.lines(30)                                     // of 25 durable tasks
	p.kill()

	p = start(t, dir)
	go func() { // ends with the process
		for p.err.Scan() {
		}
	}()
	answers := map[int]int{}
	for n := range count {
		d := p.await(ids[n])
		if d.Status == protocol.TaskInputRequired {
			answers[n]++
			p.call("tasks/update", fmt.Sprintf(`"taskId":%q,"inputResponses":{"ship":{"action":"accept","content":{"confirm":true}}}`, ids[n]), &struct{}{})
			p.await(ids[n])
		}
		note(p, n)
	}
	require.NoError(t, p.in.Close())
	require.NoError(t, p.cmd.Wait(), "the server ends by itself")

	made, runs := readEffects(t, dir)
	failed := 0
	for n, id := range ids {
		d := ended[n]
		require.Equal(t, id, d.TaskID)
		where := fmt.Sprintf("task %d (%s): %s, made %v, %d runs", n, tools[n%len(tools)], d.Status, made[n], runs[n])
		require.LessOrEqual(t, runs[n], 1+kills+answers[n], where)
		if d.Status == protocol.TaskFailed {
			failed++
			require.Contains(t, []string{"plain", "asking"}, tools[n%len(tools)], where)
			require.EqualError(t, d.Error, "the server restarted (code -32603)", where)
			require.LessOrEqual(t, len(made[n]), 1, where)
			continue
		}
		require.Equal(t, protocol.TaskCompleted, d.Status, where)
		kept := 0
		for label := range made[n] {
			if label == textOf(t, d) {
				kept++
			}
		}
		require.Equal(t, 1, kept, "%s: the label of the result was made", where)
		require.LessOrEqual(t, len(made[n]), 1+kills, where)
	}
	require.Len(t, ended, count)
	// These were held, and others may have been about to end when the process was killed.
	require.GreaterOrEqual(t, failed, 25, "the tasks that are not durable and were running")
}

// readEffects returns the labels that were made for each task, and how often its method began.
func readEffects(t *testing.T, dir string) (made map[int]map[string]bool, runs map[int]int) {
	text, err := os.ReadFile(filepath.Join(dir, "effects"))
	require.NoError(t, err)
	made, runs = map[int]map[string]bool{}, map[int]int{}
	keys, kept := map[int]string{}, map[int]string{}
	for line := range strings.Lines(string(text)) {
		var what, label, key string
		var n int
		_, _ = fmt.Sscan(line, &what, &n, &label, &key)
		switch what {
		case "run":
			runs[n]++
		case "made":
			require.False(t, made[n][label], "%s is made once", label)
			if made[n] == nil {
				made[n], keys[n] = map[string]bool{}, key
			}
			made[n][label] = true
			require.Empty(t, kept[n], "task %d: what was kept is not made again", n)
			require.Equal(t, keys[n], key, "task %d has one idempotency key", n)
		case "kept":
			if kept[n] == "" {
				kept[n] = label
			}
			require.Equal(t, kept[n], label, "task %d keeps its value", n)
		default:
			require.Fail(t, "unknown effect", "%q", line)
		}
	}
	return made, runs
}

// Deliver packs an order, and delivers it in a process that is not about to be killed.
func (s *shop) Deliver(ctx context.Context, in order) (string, error) {
	parcel, err := s.pack(ctx, in.N)
	if err != nil || s.held == math.MaxInt {
		return parcel, cmp.Or(err, s.effect("delivered %d %s", in.N, parcel))
	}
	<-ctx.Done()
	return "", context.Cause(ctx)
}

// No other process has the file, so nobody waits for the lease of the process that was killed, 30 s.
func TestADurableTaskContinuesAtOnceWhenItsProcessIsStartedAgain(t *testing.T) {
	testkit.MarkLong(t, "starts processes")
	dir := t.TempDir()
	p := start(t, dir, holdVar+"=50")
	var created protocol.CreateTaskResult
	p.call("tools/call", `"name":"deliver","arguments":{"n":4}`, &created)
	p.lines(3) // run, made and kept: the method is before its end
	p.kill()

	begun := time.Now()
	p = start(t, dir)
	p.call("server/discover", `"x":0`, &struct{}{}) // starts the server
	d := p.await(created.TaskID)
	require.Less(t, time.Since(begun), 2*time.Second)
	require.Equal(t, protocol.TaskCompleted, d.Status)
	p.kill()
	text, err := os.ReadFile(filepath.Join(dir, "effects"))
	require.NoError(t, err)
	parcel := textOf(t, d)
	require.Equal(t, 1, strings.Count(string(text), "made "), "the first effect is not repeated")
	require.Equal(t, []string{"run 4", "kept 4 " + parcel, "delivered 4 " + parcel}, strings.Split(strings.TrimSpace(string(text)), "\n")[3:])
}
