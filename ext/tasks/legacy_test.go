package tasks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// legacy is a client that has a session of the version, and the result of initialize.
func (o *opened) legacy(v protocol.Version, as *oauth.Principal) (*peer, string) {
	p := &peer{t: o.t, srv: o.srv, as: as}
	p.session = transport.NewSession("s1", p)
	init := p.result("initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"elicitation":{},"sampling":{}},"clientInfo":{"name":"test","version":"1"}}`, v))
	return p, init
}

var ann = &oauth.Principal{Subject: "ann"}

// legacyTask is a task as 2025-11-25 has it.
type legacyTask struct {
	TaskID, Status, StatusMessage string
	TTL, PollInterval             *int64
	CreatedAt, LastUpdatedAt      time.Time
}

func (p *peer) startLegacy(tool, args, task string) legacyTask {
	p.t.Helper()
	result := p.result("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s,"task":%s}`, tool, args, task))
	var r struct{ Task legacyTask }
	require.NoError(p.t, json.Unmarshal([]byte(result), &r))
	require.NotContains(p.t, result, "resultType")
	return r.Task
}

func (p *peer) getLegacy(id string) (task legacyTask) {
	p.t.Helper()
	require.NoError(p.t, json.Unmarshal([]byte(p.result("tasks/get", fmt.Sprintf(`{"taskId":%q}`, id))), &task))
	return task
}

func TestTasksOfVersion20251125(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t)
		p, init := o.legacy(protocol.V20251125, ann)
		require.JSONEq(t, `{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`, member(t, init, "capabilities", "tasks"))
		require.Empty(t, member(t, init, "capabilities", "extensions"), "the extension is for 2026-07-28")
		list := p.result("tools/list", `{}`)
		require.Contains(t, list, `"execution":{"taskSupport":"required"}`)
		require.NotContains(t, list, protocol.MetaTaskSupport)
		require.Contains(t, o.modern().result("tools/list", `{}`), `"io.github.mcpkit/task":"required"`)
		require.NotContains(t, o.modern().result("tools/list", `{}`), "taskSupport")

		task := p.startLegacy("work", `{"seconds":60}`, `{"ttl":120000}`)
		require.Equal(t, "working", task.Status)
		require.Equal(t, int64(120000), *task.TTL)
		require.Equal(t, int64(1000), *task.PollInterval)
		synctest.Wait()
		require.Equal(t, "half of it", p.getLegacy(task.TaskID).StatusMessage)

		begin := time.Now()
		result := p.result("tasks/result", fmt.Sprintf(`{"taskId":%q}`, task.TaskID)) // blocks
		require.Equal(t, time.Minute, time.Since(begin))
		require.JSONEq(t, fmt.Sprintf(`{"content":[{"type":"text","text":"done"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":%q}}}`, task.TaskID), result)
		require.Equal(t, "completed", p.getLegacy(task.TaskID).Status)

		failing := p.startLegacy("fail", `{}`, `{}`)
		require.Equal(t, int64(86400000), *failing.TTL)
		require.Equal(t, "true", member(t, p.result("tasks/result", fmt.Sprintf(`{"taskId":%q}`, failing.TaskID)), "isError"))
		require.Equal(t, "failed", p.getLegacy(failing.TaskID).Status, "tool errors are failures in this version")
		refusing := p.startLegacy("refuse", `{}`, `{}`)
		require.EqualError(t, p.fails("tasks/result", fmt.Sprintf(`{"taskId":%q}`, refusing.TaskID)), "no (code -32050)")

		time.Sleep(2 * time.Minute)
		require.Equal(t, -32602, p.fails("tasks/get", fmt.Sprintf(`{"taskId":%q}`, task.TaskID)).Code, "its ttl is over")
	})
}

func TestToolsOfVersion20251125SayWhetherTheyAreTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t)
		p, _ := o.legacy(protocol.V20251125, ann)
		require.EqualError(t, p.fails("tools/call", `{"name":"fail"}`), `tool "fail" is called as a task only (code -32601)`)
		require.EqualError(t, p.fails("tools/call", `{"name":"greet","arguments":{"Name":"x"},"task":{}}`), `tool "greet" cannot be called as a task (code -32601)`)
		require.EqualError(t, p.fails("tools/call", `{"name":"work","arguments":{"seconds":0},"task":7}`), `params.task is not an object (code -32602)`)
		require.EqualError(t, p.fails("tools/call", `{"name":"work","arguments":{"seconds":0},"task":{"ttl":"x"}}`), `params.task.ttl is not a number of milliseconds (code -32602)`)
		require.Contains(t, p.result("tools/call", `{"name":"work","arguments":{"seconds":0}}`), "done")

		old, init := o.legacy(protocol.V20250618, ann)
		require.NotContains(t, init, `"tasks"`)
		require.NotContains(t, old.result("tools/list", `{}`), "taskSupport")
		require.Contains(t, old.result("tools/call", `{"name":"work","arguments":{"seconds":0},"task":{}}`), "done", "the version does not have the member")
		require.Equal(t, -32601, old.fails("tools/call", `{"name":"fail"}`).Code)
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/list", "tasks/cancel"} {
			require.Equal(t, -32601, old.fails(method, `{"taskId":"x"}`).Code, method)
		}
	})
}

func TestResultsOfTasksAskTheUserInVersion20251125(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openWith(t, tasks.New(), mcpkit.Versions(protocol.V20251125)) // runs are of 2026-07-28 all the same
		p, _ := o.legacy(protocol.V20251125, ann)
		var asked []string
		p.answer = func(req *jsonrpc.Request) *jsonrpc.Response {
			asked = append(asked, text(t, string(req.Params), "message"))
			require.Contains(t, string(req.Params), `"io.modelcontextprotocol/related-task":{"taskId":"`)
			content := `{"place":"Oslo"}`
			if strings.HasPrefix(asked[len(asked)-1], "Pay") {
				content = `{"confirm":true}`
			}
			return &jsonrpc.Response{Result: json.RawMessage(`{"action":"accept","content":` + content + `}`)}
		}
		task := p.startLegacy("trip", `{}`, `{}`)
		synctest.Wait()
		require.Equal(t, "input_required", p.getLegacy(task.TaskID).Status)
		require.Empty(t, asked)
		result := p.result("tasks/result", fmt.Sprintf(`{"taskId":%q}`, task.TaskID))
		require.Equal(t, "ticket 7 to Oslo, paid true", contentOf(t, json.RawMessage(result)))
		require.Equal(t, []string{"Where to?", "Pay for Oslo?"}, asked)
		require.Equal(t, 1, noted(o.office, &o.made))
	})
}

func TestMalformedAnswersOfVersion20251125LeaveTheTaskWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t)
		p, _ := o.legacy(protocol.V20251125, ann)
		answer := `{"action":"agree"}`
		p.answer = func(*jsonrpc.Request) *jsonrpc.Response {
			return &jsonrpc.Response{Result: json.RawMessage(answer)}
		}
		id := p.startLegacy("both", `{}`, `{}`).TaskID
		synctest.Wait()
		err := p.fails("tasks/result", fmt.Sprintf(`{"taskId":%q}`, id))
		require.EqualError(t, err, `inputResponses: "1-first": the response to elicitation/create has the unknown action "agree" (code -32602)`)
		require.Equal(t, "input_required", p.getLegacy(id).Status)
		answer = `{"action":"accept","content":{"place":"Oslo"}}`
		require.Contains(t, p.result("tasks/result", fmt.Sprintf(`{"taskId":%q}`, id)), "Oslo and Oslo")
	})
}

func TestRefusedSamplingOfVersion20251125IsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t)
		require.NoError(t, o.srv.Add(mcpkit.NewTool("poem", func(ctx context.Context) (string, error) {
			_, err := mcpkit.Sample(ctx, &protocol.CreateMessageParams{MaxTokens: 5, Messages: []protocol.SamplingMessage{
				{Role: protocol.RoleUser, Content: protocol.SamplingContents{mcpkit.Text("a poem")}}}})
			return "a poem", err
		}).Tag("task", "optional")))
		p, _ := o.legacy(protocol.V20251125, ann)
		p.answer = func(*jsonrpc.Request) *jsonrpc.Response {
			return &jsonrpc.Response{Error: jsonrpc.Errorf(protocol.CodeUserRejected, "no")}
		}
		id := p.startLegacy("poem", `{}`, `{}`).TaskID
		synctest.Wait()
		require.ErrorContains(t, p.fails("tasks/result", fmt.Sprintf(`{"taskId":%q}`, id)), "the user declined")
		require.Equal(t, "input_required", p.getLegacy(id).Status)
	})
}

func TestQuestionsOfVersion20251125ComeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t)
		require.NoError(t, o.srv.Add(mcpkit.NewTool("quiz", func(ctx context.Context) error {
			var questions []func(context.Context) error
			for i := range 12 {
				questions = append(questions, func(ctx context.Context) error {
					_, err := mcpkit.Confirm(ctx, fmt.Sprint("question ", i))
					return err
				})
			}
			return mcpkit.Ask(ctx, questions...)
		}).Tag("task", "optional")))
		p, _ := o.legacy(protocol.V20251125, ann)
		var asked, want []string
		p.answer = func(req *jsonrpc.Request) *jsonrpc.Response {
			asked = append(asked, text(t, string(req.Params), "message"))
			return &jsonrpc.Response{Result: json.RawMessage(`{"action":"accept","content":{"confirm":true}}`)}
		}
		p.result("tasks/result", fmt.Sprintf(`{"taskId":%q}`, p.startLegacy("quiz", `{}`, `{}`).TaskID))
		for i := range 12 {
			want = append(want, fmt.Sprint("question ", i))
		}
		require.Equal(t, want, asked)
	})
}

func TestListAndCancelInVersion20251125(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t)
		p, _ := o.legacy(protocol.V20251125, ann)
		eve, _ := o.legacy(protocol.V20251125, &oauth.Principal{Subject: "eve"})
		nobody, _ := o.legacy(protocol.V20251125, nil)
		first := p.startLegacy("trip", `{}`, `{}`)
		other := o.modern()
		other.as = ann
		second := other.start("trip", `{}`)
		nobody.startLegacy("trip", `{}`, `{}`)
		synctest.Wait()

		ids := func(p *peer) (ids []string) {
			var list struct{ Tasks []legacyTask }
			require.NoError(t, json.Unmarshal([]byte(p.result("tasks/list", `{}`)), &list))
			for _, task := range list.Tasks {
				ids = append(ids, task.TaskID)
			}
			return ids
		}
		require.ElementsMatch(t, []string{first.TaskID, second}, ids(p))
		require.Empty(t, ids(eve))
		require.Empty(t, ids(nobody), "nothing tells callers without a principal apart")
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
			require.EqualError(t, eve.fails(method, fmt.Sprintf(`{"taskId":%q}`, first.TaskID)), fmt.Sprintf(`there is no task %q (code -32602)`, first.TaskID), method)
		}

		cancelled := p.result("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, first.TaskID))
		require.Equal(t, "cancelled", text(t, cancelled, "status"))
		require.EqualError(t, p.fails("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, first.TaskID)), "the task has ended already: it is cancelled (code -32602)")
		require.EqualError(t, p.fails("tasks/result", fmt.Sprintf(`{"taskId":%q}`, first.TaskID)), "the task was cancelled (code -32602)")
	})
}

func TestListsOfTasksHavePages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := open(t, tasks.MaxOpen(150)).legacy(protocol.V20251125, ann)
		for range 150 {
			p.startLegacy("trip", `{}`, `{}`)
		}
		seen, cursor, pages := map[string]bool{}, "", 0
		for {
			var list struct {
				Tasks      []legacyTask
				NextCursor string
			}
			require.NoError(t, json.Unmarshal([]byte(p.result("tasks/list", `{"cursor":"`+cursor+`"}`)), &list))
			for _, task := range list.Tasks {
				require.False(t, seen[task.TaskID])
				seen[task.TaskID] = true
			}
			pages++
			if cursor = list.NextCursor; cursor == "" {
				break
			}
		}
		require.Len(t, seen, 150)
		require.Equal(t, 2, pages)
	})
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Anybody can ask for the results of tasks that do not exist, and leave without waiting for the
// results of others.
func TestNothingIsKeptOfClientsThatWaitedForATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t)
		p := &peer{t: t, srv: o.srv}
		p.session = transport.NewSession("s1", p)
		p.result("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`)
		id := o.modern().start("work", `{"seconds":3600}`)
		for name, ask := range map[string]func(n int){
			"tasks that do not exist": func(n int) {
				p.fails("tasks/result", fmt.Sprintf(`{"taskId":"%d%s"}`, n, strings.Repeat("x", 1000)))
			},
			"a task that runs": func(int) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				p.rpc(ctx, "tasks/result", fmt.Sprintf(`{"taskId":%q}`, id))
			},
		} {
			const calls = 2000
			ask(0)
			before := heap()
			for n := range calls {
				ask(n)
			}
			require.Less(t, heap()-before, int64(calls*60), name)
		}
	})
}
