package tasks_test

import (
	"context"
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

func TestCallersThatMayNoLongerCallAToolLoseItsTasks(t *testing.T) {
	onlyAdmins := mcpkit.Visible(func(_ context.Context, call *mcpkit.Call) (func(mcpkit.Entry) bool, string) {
		return func(mcpkit.Entry) bool { return call.Principal().Has("admin") }, ""
	})
	with := func(t *testing.T, tool mcpkit.Item, opts ...mcpkit.Option) *mcpkit.Server {
		srv := serve(t, nil, append(opts, tasks.New())...)
		require.NoError(t, srv.Add(tool))
		return srv
	}
	for name, build := range map[string]func(t *testing.T, tool *mcpkit.Builder) *mcpkit.Server{
		"scopes": func(t *testing.T, tool *mcpkit.Builder) *mcpkit.Server {
			return with(t, tool.Scopes("admin"), mcpkit.Authenticated())
		},
		"Visible": func(t *testing.T, tool *mcpkit.Builder) *mcpkit.Server { return with(t, tool, onlyAdmins) },
		"Visible of a mount": func(t *testing.T, tool *mcpkit.Builder) *mcpkit.Server {
			return mounted(t, "", with(t, tool), onlyAdmins)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &opened{&office{}, build(t, mcpkit.NewTool("erase", func(ctx context.Context) (string, error) {
					ok, err := mcpkit.Confirm(ctx, "Erase?", mcpkit.Key("sure"))
					return fmt.Sprint("erased: ", ok), err
				}).Tag("task", "optional")), t}
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
		})
	}
}

// openSmall serves an office in which the tasks of an owner may take 640 kB. Its tool keep keeps a text,
// and asks.
func openSmall(t *testing.T) *opened {
	o := open(t, tasks.MaxRunning(4), tasks.Limits(256, 20_000, 640_000))
	require.NoError(t, o.srv.Add(mcpkit.NewTool("keep", func(ctx context.Context, in struct{ Bytes int }) (string, error) {
		kept, err := mcpkit.Once(ctx, "kept", func() (string, error) { return strings.Repeat("x", in.Bytes), nil })
		if err != nil {
			return "", err
		}
		said, err := mcpkit.Elicit[place](ctx, "Where?", mcpkit.Key("where"))
		return kept + said.Place, err
	}).Tag("task", "optional")))
	return o
}

func TestTasksDoNotFillTheMemory(t *testing.T) {
	const full = "the tasks of the caller may take 640000 bytes altogether; try again when one has ended"
	large := strings.Repeat("x", 100_000)
	synctest.Test(t, func(t *testing.T) {
		o := openSmall(t)
		eve, p := o.modern(), o.modern()
		eve.as, p.as = &oauth.Principal{Subject: "eve"}, ann
		asking := eve.start("keep", `{"Bytes":1}`)
		eve.await(asking, protocol.TaskInputRequired)
		for range 3 { // and wait for their turn
			eve.start("work", `{"seconds":600}`)
		}
		var last string
		for range 4 {
			last = eve.start("greet_later", fmt.Sprintf(`{"Name":%q}`, large))
		}
		refused := eve.result("tools/call", fmt.Sprintf(`{"name":"greet_later","arguments":{"Name":%q}}`, large))
		require.Contains(t, refused, full, "arguments")
		require.Equal(t, "true", member(t, refused, "isError"))
		answer := fmt.Sprintf(`{"taskId":%q,"inputResponses":%s}`, asking, accept("where", fmt.Sprintf(`{"place":%q}`, large+large)))
		require.Contains(t, eve.fails("tasks/update", answer).Message, full, "answers")
		require.Equal(t, protocol.TaskInputRequired, eve.get(asking).Status)
		greedy := eve.start("keep", `{"Bytes":100000}`)
		require.Equal(t, full, contentOf(t, eve.await(greedy, protocol.TaskCompleted).Result), "values of Once")

		p.await(p.start("keep", `{"Bytes":100000}`), protocol.TaskInputRequired) // others have their own space
		eve.result("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, last))
		eve.await(eve.start("keep", `{"Bytes":50000}`), protocol.TaskInputRequired)
	})
}

func TestResultsReplaceThoseThatEndedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openSmall(t)
		eve, p := o.modern(), o.modern()
		eve.as, p.as = &oauth.Principal{Subject: "eve"}, ann
		other := p.start("bulk", `{"Bytes":100000}`)
		p.await(other, protocol.TaskCompleted)
		var ids []string
		for range 8 { // there is space for six
			ids = append(ids, eve.start("bulk", `{"Bytes":100000}`))
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

// What a start costs does not depend on what others have started and cancelled before.
func TestStartsAndCancelsOfOneCallerDoNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t)
		engine := &faulty{Engine: store.Open()}
		var calls atomic.Int64
		engine.before = func(string, string) error { calls.Add(1); return nil }
		o := openOn(t, engine)
		eve, p := o.modern(), o.modern()
		eve.as, p.as = &oauth.Principal{Subject: "eve"}, ann
		cost := func() int64 {
			before := calls.Load()
			id := p.start("work", `{"seconds":600}`)
			p.result("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, id))
			synctest.Wait()
			return calls.Load() - before
		}
		alone := cost()
		for range 63 {
			eve.start("work", `{"seconds":600}`)
		}
		synctest.Wait()
		for range 300 {
			eve.result("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, eve.start("work", `{"seconds":600}`)))
		}
		synctest.Wait()
		require.Less(t, cost(), 2*alone)
		n, err := store.Count(t.Context(), "tasks", "")
		require.NoError(t, err)
		require.Equal(t, 256+2, n, "of eve, and of ann")
	})
}

// A process dies when a task has ended, and before the account of its owner says so.
func TestTasksOfDeadProcessesDoNotCountForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t)
		engine := &faulty{Engine: store.Open()}
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
		engine := &faulty{Engine: newStore(t)}
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
	r, ok := result.(*protocol.CallToolResult)
	if !ok {
		return result, nil
	}
	own := *r
	own.Content = nil
	for _, c := range r.Content {
		own.Content = append(own.Content, &protocol.TextContent{Text: strings.ToUpper(c.(*protocol.TextContent).Text)})
	}
	return &own, nil
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
