package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

func TestTasksWhoseGoroutineExitsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t)
		require.NoError(t, o.srv.Add(mcpkit.NewTool("exit", func() string { runtime.Goexit(); return "" }).Tag("task", "optional,durable")))
		p := o.modern()
		d := p.await(p.start("exit", `{}`), protocol.TaskFailed)
		require.Equal(t, "the method ended its goroutine", d.StatusMessage)
		require.Less(t, d.LastUpdatedAt.Sub(d.CreatedAt), time.Second)
	})
}

func TestRootsInATaskOfVersion20251125(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t)
		require.NoError(t, o.srv.Add(mcpkit.NewTool("roots", func(ctx context.Context) (string, error) {
			roots, err := mcpkit.Roots(ctx)
			return fmt.Sprint(len(roots)), err
		}).Tag("task", "optional")))
		p := &peer{t: t, srv: o.srv, as: ann}
		p.session = transport.NewSession("s1", p)
		p.result("initialize", `{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"test","version":"1"}}`)
		p.answer = func(req *jsonrpc.Request) *jsonrpc.Response {
			require.Equal(t, "roots/list", req.Method)
			return &jsonrpc.Response{ID: req.ID, Result: json.RawMessage(`{"roots":[{"uri":"file:///a"}]}`)}
		}
		task := p.startLegacy("roots", `{}`, `{}`)
		require.Contains(t, p.result("tasks/result", fmt.Sprintf(`{"taskId":%q}`, task.TaskID)), `"text":"1"`)
	})
}

func TestCallersThatLostTheScopesOfAToolLoseItsTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openWith(t, tasks.New(), mcpkit.Authenticated())
		require.NoError(t, o.srv.Add(mcpkit.NewTool("erase", func(ctx context.Context) (string, error) {
			ok, err := mcpkit.Confirm(ctx, "Erase?", mcpkit.Key("sure"))
			return fmt.Sprint("erased: ", ok), err
		}).Scopes("admin").Tag("task", "optional")))
		admin, lesser := o.modern(), o.modern()
		admin.as, lesser.as = &oauth.Principal{Subject: "ann", Scopes: []string{"admin"}}, ann
		id := admin.start("erase", `{}`)
		admin.await(id, protocol.TaskInputRequired)
		legacy, _ := o.legacy(protocol.V20251125, ann)
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			params := fmt.Sprintf(`{"taskId":%q,"inputResponses":%s}`, id, accept("sure", `{"confirm":true}`))
			require.EqualError(t, lesser.fails(method, params), fmt.Sprintf("there is no task %q (code -32602)", id), method)
		}
		require.Equal(t, -32602, legacy.fails("tasks/result", fmt.Sprintf(`{"taskId":%q}`, id)).Code)
		require.JSONEq(t, `[]`, member(t, legacy.result("tasks/list", `{}`), "tasks"))
		require.Equal(t, protocol.TaskInputRequired, admin.get(id).Status)
		admin.update(id, accept("sure", `{"confirm":true}`))
		require.Equal(t, "erased: true", contentOf(t, admin.await(id, protocol.TaskCompleted).Result))
		require.EqualError(t, lesser.fails("tasks/get", fmt.Sprintf(`{"taskId":%q}`, id)), fmt.Sprintf("there is no task %q (code -32602)", id))
	})
}

func TestTasksDoNotFillTheMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openWith(t, tasks.New(tasks.MaxRunning(1)))
		require.NoError(t, o.srv.Add(mcpkit.NewTool("keep", func(ctx context.Context, in struct{ Text string }) (string, error) {
			said, err := mcpkit.Elicit[place](ctx, "Where?", mcpkit.Key("where"))
			return in.Text + said.Place, err
		}).Tag("task", "optional")))
		big := strings.Repeat("x", 4<<20)
		keep := fmt.Sprintf(`{"name":"keep","arguments":{"Text":%q}}`, big)
		eve := o.modern()
		eve.as = &oauth.Principal{Subject: "eve"}
		asking := text(t, eve.result("tools/call", keep), "taskId")
		eve.await(asking, protocol.TaskInputRequired)
		last := eve.start("work", `{"seconds":60}`) // the others wait for their turn
		for range 14 {
			last = text(t, eve.result("tools/call", keep), "taskId")
		}
		refused := eve.result("tools/call", keep)
		require.Contains(t, refused, "the tasks of the caller may take 67108864 bytes altogether; try again when one has ended")
		require.Equal(t, "true", member(t, refused, "isError"))
		large := fmt.Sprintf(`{"taskId":%q,"inputResponses":%s}`, asking, accept("where", fmt.Sprintf(`{"place":%q}`, big)))
		require.Contains(t, eve.fails("tasks/update", large).Message, "the tasks of the caller may take")
		require.Equal(t, protocol.TaskInputRequired, eve.get(asking).Status, "the answer was not taken")

		p := o.modern()
		p.as = ann
		p.start("trip", `{}`)

		eve.result("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, last))
		eve.start("trip", `{}`)
	})
}

func TestResultsReplaceThoseThatEndedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t)
		require.NoError(t, o.srv.Add(mcpkit.NewTool("bulk", func() string { return strings.Repeat("x", 7<<20) }).Tag("task", "optional")))
		eve, p := o.modern(), o.modern()
		eve.as, p.as = &oauth.Principal{Subject: "eve"}, ann
		other := p.start("bulk", `{}`)
		p.await(other, protocol.TaskCompleted)
		var ids []string
		for range 11 { // 64 MiB have space for nine
			ids = append(ids, eve.start("bulk", `{}`))
			eve.await(ids[len(ids)-1], protocol.TaskCompleted)
		}
		for _, id := range ids[:2] {
			eve.fails("tasks/get", fmt.Sprintf(`{"taskId":%q}`, id))
		}
		for _, id := range ids[2:] {
			require.Equal(t, protocol.TaskCompleted, eve.get(id).Status)
		}
		require.Equal(t, protocol.TaskCompleted, p.get(other).Status, "others keep theirs")
	})
}

func TestTasksCanBeCancelledWhenTheirOwnerHasNoSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openWith(t, tasks.New())
		require.NoError(t, o.srv.Add(mcpkit.NewTool("hoard", func(ctx context.Context) (string, error) {
			_, err := mcpkit.Once(ctx, "hoard", func() (string, error) { return strings.Repeat("x", 7<<20), nil })
			if err == nil {
				_, err = mcpkit.Elicit[place](ctx, "Where?", mcpkit.Key("where"))
			}
			return "", err
		}).Tag("task", "optional")))
		p := o.modern()
		var ids []string
		for range 10 {
			ids = append(ids, p.start("hoard", `{}`))
			p.await(ids[len(ids)-1], protocol.TaskInputRequired)
		}
		require.Contains(t, p.result("tools/call", `{"name":"hoard"}`), "the tasks of the caller may take 67108864 bytes altogether")
		for _, id := range ids {
			p.result("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, id))
		}
		p.start("hoard", `{}`)
	})
}

// A process dies when a task has ended, and before the account of its owner says so.
func TestTasksOfDeadProcessesDoNotCountForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t)
		engine := newFaulty(store.Open())
		o := openOn(t, engine, tasks.MaxOpen(2))
		p := o.modern()
		open := p.start("trip", `{}`)
		p.await(open, protocol.TaskInputRequired)
		time.Sleep(time.Second)
		done := p.start("work", `{"seconds":1}`)
		engine.before = func(op, set string) error {
			if set == "tasks-owners" {
				return errors.New("the process is dead")
			}
			return nil
		}
		p.await(done, protocol.TaskCompleted)
		p = openOn(t, store.Open(), tasks.MaxOpen(2)).modern()
		require.Contains(t, p.result("tools/call", `{"name":"trip"}`), "has 2 tasks that have not ended", "the oldest one is open indeed")
		p.result("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, open))
		p.start("trip", `{}`)
		p.start("trip", `{}`)
		require.Contains(t, p.result("tools/call", `{"name":"trip"}`), "has 2 tasks that have not ended")
	})
}

func TestTasksThatAreCreatedWhileOthersEndDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, release := heldEngine(t)
		o := openOn(t, engine, tasks.MaxRunning(1))
		go o.modern().rpc(t.Context(), "tools/call", `{"name":"work","arguments":{"seconds":1}}`)
		synctest.Wait()
		go o.modern().rpc(t.Context(), "tools/call", `{"name":"work","arguments":{"seconds":1}}`)
		synctest.Wait() // both are being created: the second one has no place
		release <- struct{}{}
		time.Sleep(1500 * time.Millisecond)
		release <- struct{}{}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, 2, noted(o.office, &o.runs))
	})
}

// hasty says that all leases have ended, as after a computer has slept.
type hasty struct{ fleet.Engine }

func (h hasty) Due(ctx context.Context, set string, within time.Duration, limit int) ([]fleet.Record, error) {
	return h.Engine.Due(ctx, set, within+time.Hour, limit)
}

func TestTasksThatRunHereGoOnWhenTheirLeaseWasLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOn(t, hasty{newStore(t)})
		p := o.modern()
		long, once := p.start("work", `{"seconds":100}`), p.start("trip", `{}`)
		for range 3 {
			p.await(p.start("work", `{"seconds":1}`), protocol.TaskCompleted) // then the others are claimed
		}
		require.Equal(t, "done", contentOf(t, p.await(long, protocol.TaskCompleted).Result))
		p.update(once, accept("where", `{"place":"Oslo"}`))
		p.await(once, protocol.TaskInputRequired)
		require.Equal(t, 1, noted(o.office, &o.made))
		require.Equal(t, 6, noted(o.office, &o.runs))
	})
}

func TestResultsAreKeptWhenTheDiskWasFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		engine := newFaulty(newStore(t))
		engine.before = func(op, _ string) error {
			if full.Load() && (op == "Create" || op == "Update") {
				return errors.New("/var/lib/tasks.db: no space left on device")
			}
			return nil
		}
		o := openOn(t, engine)
		p := o.modern()
		id, asking := p.start("work", `{"seconds":5}`), p.start("trip", `{}`)
		p.await(asking, protocol.TaskInputRequired)
		full.Store(true)
		time.Sleep(20 * time.Second)
		require.Equal(t, protocol.TaskWorking, p.get(id).Status)
		refused := p.result("tools/call", `{"name":"trip"}`)
		require.Equal(t, "true", member(t, refused, "isError"))
		require.NotContains(t, refused, "/var/lib", "clients do not see errors of the store")
		for _, method := range []string{"tasks/update", "tasks/cancel"} {
			err := p.fails(method, fmt.Sprintf(`{"taskId":%q,"inputResponses":%s}`, asking, accept("where", `{"place":"Oslo"}`)))
			require.Equal(t, -32603, err.Code)
			require.NotContains(t, err.Message, "/var/lib")
		}
		require.Equal(t, protocol.TaskInputRequired, p.get(asking).Status)
		full.Store(false)
		require.Equal(t, "done", contentOf(t, p.await(id, protocol.TaskCompleted).Result))
		require.Equal(t, 2, noted(o.office, &o.runs), "no method ran again")
	})
}

// inCapitals returns the result of a tool with its texts in capitals.
func inCapitals(_ context.Context, _ *mcpkit.Call, result mcpkit.Result) (mcpkit.Result, error) {
	r, ok := result.(*mcpkit.ToolResult)
	if !ok {
		return result, nil
	}
	r = r.Clone()
	for i, c := range r.Content {
		r.Content[i] = &protocol.TextContent{Text: strings.ToUpper(c.(*protocol.TextContent).Text)}
	}
	return r, nil
}

func TestGuardsSeeTheTextsOfTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t)
		o.srv.Use(middleware.GuardResult(inCapitals))
		p := o.modern()
		d := p.await(p.start("work", `{"seconds":1}`), protocol.TaskCompleted)
		require.Equal(t, "DONE", contentOf(t, d.Result))
		legacy, _ := o.legacy(protocol.V20251125, ann)
		id := legacy.startLegacy("work", `{"seconds":1}`, `{}`).TaskID
		require.Contains(t, legacy.result("tasks/result", fmt.Sprintf(`{"taskId":%q}`, id)), "DONE")
	})
}
