package tasks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

func TestCallsBecomeTasksForClientsThatDeclareThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t)
		p := o.modern()
		require.Equal(t, `{}`, member(t, p.result("server/discover", `{}`), "capabilities", "extensions", "io.modelcontextprotocol/tasks"))
		require.Empty(t, member(t, p.result("server/discover", `{}`), "capabilities", "tasks"))

		created := p.result("tools/call", `{"name":"work","arguments":{"seconds":60}}`)
		var task map[string]any
		require.NoError(t, json.Unmarshal([]byte(created), &task))
		delete(task, "_meta")
		id := task["taskId"].(string)
		require.Len(t, id, 32)
		require.Equal(t, map[string]any{
			"resultType": "task", "taskId": id, "status": "working", "ttlMs": 86400000.0, "pollIntervalMs": 1000.0,
			"createdAt": "2000-01-01T00:00:00Z", "lastUpdatedAt": "2000-01-01T00:00:00Z",
		}, task)
		synctest.Wait()
		d := p.get(id)
		require.Equal(t, protocol.TaskWorking, d.Status)
		require.Equal(t, "half of it", d.StatusMessage)

		time.Sleep(time.Minute)
		synctest.Wait()
		d = p.get(id)
		require.Equal(t, protocol.TaskCompleted, d.Status)
		require.Equal(t, "done", contentOf(t, d.Result))
		require.Equal(t, time.Minute, d.LastUpdatedAt.Sub(d.CreatedAt))
		require.Empty(t, p.take(), "no notifications of progress")

		p.plain = true
		require.Equal(t, "done", contentOf(t, json.RawMessage(p.result("tools/call", `{"name":"work","arguments":{"seconds":1}}`))))
		require.Contains(t, p.result("tools/call", `{"name":"greet","arguments":{"Name":"Ann"},"task":{"ttl":1}}`), "Hello, Ann!")
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			err := p.fails(method, fmt.Sprintf(`{"taskId":%q}`, id))
			require.Equal(t, -32021, err.Code, method)
			require.JSONEq(t, `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`, string(err.Data))
		}
		err := p.fails("tools/call", `{"name":"fail"}`)
		require.Equal(t, -32021, err.Code)
		require.JSONEq(t, `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`, string(err.Data))
		require.Equal(t, -32601, p.fails("tasks/list", `{}`).Code)
		require.Equal(t, -32601, p.fails("tasks/result", `{"taskId":"x"}`).Code)
	})
}

func TestOutcomesOfTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t).modern()
		d := p.await(p.start("fail", `{}`), protocol.TaskCompleted)
		require.Equal(t, "it cannot be done", contentOf(t, d.Result))
		require.Equal(t, "true", member(t, string(d.Result), "isError"))

		d = p.await(p.start("refuse", `{}`), protocol.TaskFailed)
		require.EqualError(t, d.Error, "no (code -32050)")
		require.Equal(t, "no", d.StatusMessage)
		require.Nil(t, d.Result)

		d = p.await(p.start("burst", `{}`), protocol.TaskCompleted)
		require.Contains(t, contentOf(t, d.Result), "internal error (ref ")

		d = p.await(p.start("timed", `{}`), protocol.TaskCompleted)
		require.Equal(t, "timed out after 5s", contentOf(t, d.Result))

		d = p.await(p.start("work", `{"seconds":"many"}`), protocol.TaskCompleted)
		require.Contains(t, contentOf(t, d.Result), "/seconds")
	})
}

func TestTasksAskTheUserAndNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t, tasks.TTL(30*24*time.Hour))
		p := o.modern()
		id := p.start("trip", `{}`)
		d := p.await(id, protocol.TaskInputRequired)
		require.Equal(t, "Where to?", text(t, string(d.InputRequests["where"].Params), "message"))
		require.Empty(t, o.modern().get(id).Result)

		time.Sleep(7 * 24 * time.Hour)
		p.update(id, accept("other", `{}`))
		require.Equal(t, protocol.TaskInputRequired, p.get(id).Status, "unknown keys are ignored")
		p.update(id, accept("where", `{"place":"Oslo"}`))
		d = p.await(id, protocol.TaskInputRequired)
		require.Equal(t, "Pay for Oslo?", text(t, string(d.InputRequests["pay"].Params), "message"))
		p.update(id, accept("where", `{"place":"Rome"}`))
		p.update(id, accept("pay", `{"confirm":true}`))
		d = p.await(id, protocol.TaskCompleted)
		require.Equal(t, "ticket 7 to Oslo, paid true", contentOf(t, d.Result))
		require.Equal(t, 1, noted(o.office, &o.made))
		require.Equal(t, 3, noted(o.office, &o.runs))
		p.update(id, accept("pay", `{"confirm":false}`))
		require.Equal(t, protocol.TaskCompleted, p.get(id).Status)
		require.Equal(t, -32602, p.fails("tasks/update", fmt.Sprintf(`{"taskId":%q,"inputResponses":7}`, id)).Code)
	})
}

func TestMalformedAnswersAreRefusedAndTheTaskWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t).modern()
		id := p.start("both", `{}`)
		p.await(id, protocol.TaskInputRequired)
		err := p.fails("tasks/update", fmt.Sprintf(`{"taskId":%q,"inputResponses":{`+
			`"1-first":{"action":"accept","content":{"place":"Rome"}},"2-second":{"action":"agree"}}}`, id))
		require.EqualError(t, err, `inputResponses: "2-second": the response to elicitation/create has the unknown action "agree" (code -32602)`)
		require.Len(t, p.get(id).InputRequests, 2, "nothing of the update is taken")
		p.update(id, `{"1-first":{"action":"accept","content":{"place":"Rome"}},"2-second":{"action":"accept","content":{"place":"Oslo"}}}`)
		require.Equal(t, "Rome and Oslo", contentOf(t, p.await(id, protocol.TaskCompleted).Result))
	})
}

// Middleware may ask before the call becomes a task, which then has the answers.
func TestMiddlewareAsksInTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t)
		o.srv.Use(func(next mcpkit.Handler) mcpkit.Handler {
			return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
				if call.Method() != "tools/call" {
					return next(ctx, call)
				}
				if _, err := mcpkit.Elicit[place](ctx, "Who?", mcpkit.Key("user_name")); err != nil {
					return nil, err
				}
				return next(ctx, call)
			}
		})
		p := o.modern()
		first := p.result("tools/call", `{"name":"work","arguments":{"seconds":1}}`)
		require.Equal(t, `"input_required"`, member(t, first, "resultType"), first)
		second := p.result("tools/call", `{"name":"work","arguments":{"seconds":1},"requestState":`+member(t, first, "requestState")+
			`,"inputResponses":`+accept("user_name", `{"place":"Ann"}`)+`}`)
		require.Equal(t, `"task"`, member(t, second, "resultType"), second)
		require.Equal(t, "done", contentOf(t, p.await(text(t, second, "taskId"), protocol.TaskCompleted).Result))
	})
}

func TestCancelledTasksStayCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t)
		p := o.modern()
		id := p.start("work", `{"seconds":60}`)
		synctest.Wait()
		require.NotContains(t, p.result("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, id)), "taskId")
		require.Equal(t, protocol.TaskCancelled, p.get(id).Status)
		synctest.Wait()
		require.Equal(t, []string{"tasks: the task was cancelled"}, noted(o.office, &o.causes))

		deaf := p.start("deaf", `{"seconds":60}`)
		synctest.Wait()
		p.result("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, deaf))
		time.Sleep(2 * time.Minute)
		require.Equal(t, protocol.TaskCancelled, p.get(deaf).Status, "a method that goes on does not change that")

		asks := p.start("trip", `{}`)
		p.await(asks, protocol.TaskInputRequired)
		p.result("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, asks))
		p.update(asks, accept("where", `{"place":"Oslo"}`))
		require.Equal(t, protocol.TaskCancelled, p.get(asks).Status)

		done := p.start("fail", `{}`)
		p.await(done, protocol.TaskCompleted)
		p.result("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, done))
		require.Equal(t, protocol.TaskCompleted, p.get(done).Status)
	})
}

func TestTasksBelongToTheirPrincipal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		o := openWith(t, tasks.New(), mcpkit.Logger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
		ann, eve, nobody := o.modern(), o.modern(), o.modern()
		ann.as = &oauth.Principal{Subject: "ann"}
		eve.as = &oauth.Principal{Subject: "eve"}
		id := ann.start("trip", `{}`)
		ann.await(id, protocol.TaskInputRequired)
		public := nobody.start("trip", `{}`)
		for _, test := range []struct {
			who *peer
			id  string
		}{{eve, id}, {nobody, id}, {ann, public}, {eve, strings.Repeat("f", 32)}, {eve, ""}} {
			want := fmt.Sprintf(`there is no task %q (code -32602)`, test.id)
			require.EqualError(t, test.who.fails("tasks/get", fmt.Sprintf(`{"taskId":%q}`, test.id)), want)
			require.EqualError(t, test.who.fails("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, test.id)), want)
			require.EqualError(t, test.who.fails("tasks/update", fmt.Sprintf(`{"taskId":%q,"inputResponses":%s}`, test.id, accept("where", `{"place":"x"}`))), want)
		}
		require.Equal(t, protocol.TaskInputRequired, ann.get(id).Status)
		require.Len(t, ann.get(id).InputRequests, 1)
		require.NotContains(t, log.String(), id, "the log does not have what grants access")
	})
}

// listen opens a subscription to tasks, and ends it with the test.
func listen(p *peer, ids ...string) {
	text, err := json.Marshal(ids)
	require.NoError(p.t, err)
	ctx, cancel := context.WithCancel(p.t.Context())
	done := make(chan struct{})
	go func() { // ends with the test
		defer close(done)
		p.rpc(ctx, "subscriptions/listen", `{"notifications":{"taskIds":`+string(text)+`}}`)
	}()
	p.t.Cleanup(func() { cancel(); <-done })
	synctest.Wait()
}

func TestSubscribersAreNotifiedOfTheirTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t)
		ann, eve := o.modern(), o.modern()
		ann.as, eve.as = &oauth.Principal{Subject: "ann"}, &oauth.Principal{Subject: "eve"}
		id := ann.start("work", `{"seconds":60}`)
		listen(ann, id, "other")
		listen(eve, id)
		require.Contains(t, strings.Join(ann.take(), ""), `"taskIds":["`+id+`"]`)
		require.Contains(t, strings.Join(eve.take(), ""), `"taskIds":[]`)
		time.Sleep(time.Hour)
		synctest.Wait()
		sent := strings.Join(ann.take(), "\n")
		require.Contains(t, sent, `"method":"notifications/tasks"`)
		require.Contains(t, sent, `"status":"completed"`)
		require.Contains(t, sent, `"done"`)
		require.Empty(t, eve.take())

		stranger := o.modern()
		stranger.plain = true
		require.Equal(t, -32021, stranger.fails("subscriptions/listen", `{"notifications":{"taskIds":["`+id+`"]}}`).Code)
	})
}

func TestTasksExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t)
		o := openOn(t, store.Open(), tasks.TTL(time.Minute))
		p := o.modern()
		id := p.start("work", `{"seconds":3600}`)
		done := p.start("fail", `{}`)
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, id := range []string{id, done} {
			require.EqualError(t, p.fails("tasks/get", fmt.Sprintf(`{"taskId":%q}`, id)), fmt.Sprintf(`there is no task %q (code -32602)`, id))
		}
		require.Equal(t, []string{"context deadline exceeded"}, noted(o.office, &o.causes))
		time.Sleep(time.Minute)
		n, err := store.Count(t.Context(), "tasks", "")
		require.NoError(t, err)
		require.Zero(t, n, "they are deleted")
	})
}

func TestPrincipalsHaveQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t, tasks.MaxOpen(2), tasks.Limits(3, 5, 64<<20))
		ann, eve := o.modern(), o.modern()
		ann.as, eve.as = &oauth.Principal{Subject: "ann"}, &oauth.Principal{Subject: "eve"}
		first, second := ann.start("trip", `{}`), ann.start("trip", `{}`)
		refused := ann.result("tools/call", `{"name":"trip"}`)
		require.Contains(t, refused, "the caller has 2 tasks that have not ended, which is the most it may have; try again when one has ended")
		require.Equal(t, "true", member(t, refused, "isError"))
		eve.start("trip", `{}`)

		ann.result("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, first))
		third := ann.start("trip", `{}`)
		time.Sleep(time.Second)
		ann.result("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, second))
		fourth := ann.start("trip", `{}`)
		ann.fails("tasks/get", fmt.Sprintf(`{"taskId":%q}`, first)) // the one that ended first
		for _, id := range []string{second, third, fourth} {
			ann.get(id)
		}
		eve.start("trip", `{}`)
		require.Contains(t, o.modern().result("tools/call", `{"name":"trip"}`), "the server has too many tasks; try again later")
	})
}

func TestRefusedTasksTakeNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t, tasks.MaxRunning(1), tasks.MaxOpen(2))
		p := o.modern()
		first, second := p.start("work", `{"seconds":10}`), p.start("work", `{"seconds":10}`)
		for range 3 {
			require.Contains(t, p.result("tools/call", `{"name":"work","arguments":{"seconds":10}}`), "has 2 tasks that have not ended")
		}
		time.Sleep(21 * time.Second)
		for _, id := range []string{first, second} {
			require.Equal(t, protocol.TaskCompleted, p.get(id).Status)
		}
	})
}

func TestMirroredTaskIDsMustMatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t).modern()
		id := p.start("trip", `{}`)
		p.header = transport.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tasks/get"}, "Mcp-Name": {id}}
		p.get(id)
		p.header["Mcp-Name"] = []string{"other"}
		require.Equal(t, -32020, p.fails("tasks/get", fmt.Sprintf(`{"taskId":%q}`, id)).Code)
		delete(p.header, "Mcp-Name")
		require.Equal(t, -32020, p.fails("tasks/get", fmt.Sprintf(`{"taskId":%q}`, id)).Code)
	})
}

// Timeout is for requests, and RateLimit has counted the one that made the task.
func TestLimitsOfMiddlewareAreForRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t)
		o.srv.Use(middleware.Timeout(time.Second), middleware.RateLimit(0.001, 1))
		p := o.modern()
		id := p.start("work", `{"seconds":60}`)
		require.Contains(t, p.result("tools/call", `{"name":"work","arguments":{"seconds":1}}`), "too many calls")
		require.Equal(t, "done", contentOf(t, p.await(id, protocol.TaskCompleted).Result))
	})
}

// A trail is what calls of tools have passed.
type trail struct {
	mu    sync.Mutex
	steps []string // guarded by mu
}

// at returns middleware that leaves its name, and that of the tool.
func (tr *trail) at(place string) mcpkit.Middleware {
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			if call.Method() == protocol.MethodToolsCall {
				tr.mu.Lock()
				tr.steps = append(tr.steps, fmt.Sprintf("%s %s run=%v", place, call.Name(), call.Run() != nil))
				tr.mu.Unlock()
			}
			return next(ctx, call)
		}
	}
}

// take returns the steps since the last take.
func (tr *trail) take() []string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	steps := tr.steps
	tr.steps = nil
	return steps
}

// mounted serves a server within an outer one, and returns the outer one.
func mounted(t *testing.T, prefix string, inner *mcpkit.Server, opts ...mcpkit.MountOption) *mcpkit.Server {
	t.Helper()
	outer := mcpkit.MustNew(nil, quiet(), mcpkit.Name("outer", "1"), tasks.New())
	require.NoError(t, outer.Mount(prefix, inner, opts...))
	require.NoError(t, outer.Start(t.Context()))
	t.Cleanup(func() { _ = outer.Close() })
	return outer
}

func TestRunsOfMountedServersPassTheMiddlewareOfAllServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tr trail
		inner := open(t)
		inner.srv.Use(tr.at("inner"))
		middle := mcpkit.MustNew(nil, quiet(), mcpkit.Name("middle", "1"), tasks.New())
		middle.Use(tr.at("middle"))
		require.NoError(t, middle.Mount("office", inner.srv, mcpkit.Around(tr.at("around"))))
		outer := mounted(t, "all", middle)
		outer.Use(tr.at("outer"))
		p := &peer{t: t, srv: outer}
		var run []string
		for _, at := range []string{"outer", "middle", "around", "inner"} {
			run = append(run, at+" all_office_trip run=true")
		}
		id := p.start("all_office_trip", `{}`)
		p.await(id, protocol.TaskInputRequired)
		require.Equal(t, slices.Concat([]string{"outer all_office_trip run=false"}, run), tr.take())
		p.update(id, accept("where", `{"place":"Oslo"}`))
		p.await(id, protocol.TaskInputRequired)
		p.update(id, accept("pay", `{"confirm":true}`))
		require.Equal(t, "ticket 7 to Oslo, paid true", contentOf(t, p.await(id, protocol.TaskCompleted).Result))
		require.Equal(t, slices.Concat(run, run), tr.take())
		require.Equal(t, 1, noted(inner.office, &inner.made))

		direct := inner.modern()
		direct.await(direct.start("trip", `{}`), protocol.TaskInputRequired)
		require.Equal(t, []string{"inner trip run=false", "inner trip run=true"}, tr.take(), "a client of the inner server calls it alone")
	})
}

func TestRunsOfMountedServersGetTheArgumentsOfOuterMiddlewareOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := open(t)
		require.NoError(t, inner.srv.Add(mcpkit.NewTool("echo", func(in struct{ Text string }) string { return in.Text }).Tag("task", "optional")))
		outer := mounted(t, "office", inner.srv)
		outer.Use(func(next mcpkit.Handler) mcpkit.Handler {
			return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
				if call.Method() == protocol.MethodToolsCall {
					longer := strings.Replace(string(call.Arguments()), `"}`, `!"}`, 1)
					if err := call.SetArguments(json.RawMessage(longer)); err != nil {
						return nil, err
					}
				}
				return next(ctx, call)
			}
		})
		p := &peer{t: t, srv: outer}
		require.Equal(t, "hi!", contentOf(t, p.await(p.start("office_echo", `{"Text":"hi"}`), protocol.TaskCompleted).Result))
	})
}

// The tasks of a server with a mounted one are those of its own extension.
func TestServersWithTasksAreMountedInServersWithTasks(t *testing.T) {
	inner := mcpkit.MustNew(&office{}, quiet(), tasks.New())
	err := mcpkit.MustNew(nil, quiet()).Mount("office", inner)
	require.ErrorContains(t, err, `it has the extension "io.modelcontextprotocol/tasks", which runs tools after their requests: give it to the outer server, too`)
	var log bytes.Buffer
	outer := mcpkit.MustNew(nil, mcpkit.Logger(slog.New(slog.NewTextHandler(&log, nil))), tasks.New())
	require.NoError(t, outer.Mount("office", inner))
	require.Empty(t, log.String(), "nothing is left out")
}

// survey asks two questions, one after the other.
func survey(ctx context.Context) (string, error) {
	for _, key := range []string{"first", "second"} {
		if _, err := mcpkit.Confirm(ctx, key+"?", mcpkit.Key(key)); err != nil {
			return "", err
		}
	}
	return "thanks", nil
}

func TestRateTagCountsCallsAndNotRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openWith(t, tasks.New(tasks.TTL(10*time.Hour)))
		require.NoError(t, o.srv.Add(mcpkit.NewTool("survey", survey).Rate("40/h").Tag("task", "optional")))
		p := o.modern()
		p.as = ann
		var ids []string
		for range 40 {
			ids = append(ids, p.start("survey", `{}`))
		}
		refused := p.result("tools/call", `{"name":"survey"}`)
		require.Equal(t, "true", member(t, refused, "isError"))
		require.Contains(t, refused, "too many calls; try again in 1m30s", "the call is refused at once, and does not become a task")
		require.Contains(t, refused, `"retryAfterMs":90000`)
		eve := o.modern()
		eve.as = &oauth.Principal{Subject: "eve"}
		eve.start("survey", `{}`)

		for _, id := range ids {
			p.await(id, protocol.TaskInputRequired)
			p.update(id, accept("first", `{"confirm":true}`))
			p.await(id, protocol.TaskInputRequired)
			p.update(id, accept("second", `{"confirm":true}`))
			require.Equal(t, "thanks", contentOf(t, p.await(id, protocol.TaskCompleted).Result))
		}
	})
}

func TestRunsWithAnswersDoNotTakeKeptResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t)
		asks := true
		require.NoError(t, o.srv.Add(mcpkit.NewTool("look", func(ctx context.Context) (string, error) {
			if !asks {
				return "no question", nil
			}
			ok, err := mcpkit.Confirm(ctx, "Look?", mcpkit.Key("look"))
			return fmt.Sprint("looked: ", ok), err
		}).Hints("readonly").Cache("1h,public").Tag("task", "optional")))
		p := o.modern()
		id := p.start("look", `{}`)
		p.await(id, protocol.TaskInputRequired)
		asks = false
		p.await(p.start("look", `{}`), protocol.TaskCompleted)
		asks = true
		p.update(id, accept("look", `{"confirm":true}`))
		require.Equal(t, "looked: true", contentOf(t, p.await(id, protocol.TaskCompleted).Result))
	})
}
