package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// question returns the member inputRequests with a form for each key.
func question(keys ...string) string {
	var all []string
	for _, key := range keys {
		all = append(all, fmt.Sprintf(`%q:{"method":"elicitation/create","params":{"message":%q,"requestedSchema":{"type":"object","properties":{}}}}`, key, key+"?"))
	}
	return `"inputRequests":{` + strings.Join(all, ",") + `}`
}

func completed() string { return task("complete", "completed", teaResult) }

func TestCallFollowsATaskToItsEnd(t *testing.T) {
	onTasks(t, func() *taskFake {
		return newTaskFake(
			task("complete", "working", `"pollIntervalMs":200,"statusMessage":"boiling"`),
			task("complete", "working", `"pollIntervalMs":400,"statusMessage":"boiling"`),
			task("task", "working", `"pollIntervalMs":400,"statusMessage":"steeping"`), // as in the examples of the specification
			completed())
	}, func(t *testing.T, f *taskFake, dial func(...client.DialOption) *client.Client) {
		c := dial(client.Tasks())
		var progress []string
		begun := time.Now()
		out, err := client.Call[string](t.Context(), c, "brew", nil, client.OnProgress(func(p *protocol.ProgressParams) {
			progress = append(progress, fmt.Sprint(p.Progress, p.Message))
		}), client.Meta("example.com/trace", "7"))
		require.NoError(t, err)
		require.Equal(t, "tea", out)
		require.Equal(t, []string{"1boiling", "2steeping"}, progress)
		var at []time.Duration
		for _, r := range f.all("tasks/get") {
			at = append(at, r.at.Sub(begun))
			require.JSONEq(t, `"t1"`, string(r.Param("taskId")))
			if r.name != "" { // HTTP
				require.Equal(t, "t1", r.name)
			}
		}
		require.Equal(t, []time.Duration{200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 1200 * time.Millisecond}, at)
		for _, r := range append(f.all("tools/call"), f.all("tasks/get")...) {
			require.Contains(t, string(r.Params), `"extensions":{"io.modelcontextprotocol/tasks":{}}`)
			require.Contains(t, string(r.Params), `"example.com/trace":"7"`)
		}
		require.Empty(t, f.all("tasks/cancel"))
	})
}

func TestErrorsOfTasksAreThoseOfTheTool(t *testing.T) {
	for _, test := range []struct {
		name, poll, want string
		check            func(t *testing.T, err error)
	}{
		{"error of the tool", task("complete", "completed", `"result":{"isError":true,"content":[{"type":"text","text":"no water"}]}`), `tool "brew": no water`,
			func(t *testing.T, err error) { require.IsType(t, &client.ToolError{}, err) }},
		{"protocol error", task("complete", "failed", `"statusMessage":"gave up","error":{"code":-32603,"message":"the server restarted"}`),
			`client: tools/call "brew": task "t1": it failed ("gave up"): the server restarted (code -32603)`, func(t *testing.T, err error) {
				rpc, ok := errors.AsType[*jsonrpc.Error](err)
				require.True(t, ok)
				require.Equal(t, -32603, rpc.Code)
				task, ok := errors.AsType[*client.TaskError](err)
				require.True(t, ok)
				require.Equal(t, "t1", task.ID)
			}},
		{"cancelled", task("complete", "cancelled", ""), `client: tools/call "brew": task "t1": the task was cancelled`,
			func(t *testing.T, err error) { require.ErrorIs(t, err, client.ErrTaskCancelled) }},
		{"expired", `"error":{"code":-32602,"message":"unknown task"}`, `client: tools/call "brew": task "t1": tasks/get: unknown task (code -32602)`,
			func(t *testing.T, err error) {}},
	} {
		t.Run(test.name, func(t *testing.T) {
			onTasks(t, func() *taskFake { return newTaskFake(test.poll) }, func(t *testing.T, f *taskFake, dial func(...client.DialOption) *client.Client) {
				c := dial(client.Tasks())
				_, err := client.Call[string](t.Context(), c, "brew", nil)
				require.EqualError(t, err, test.want)
				test.check(t, err)
			})
		})
	}
}

func TestQuestionsOfATaskAreAnsweredOnce(t *testing.T) {
	onTasks(t, func() *taskFake {
		return newTaskFake(
			task("complete", "input_required", question("kind", "cups")),
			task("complete", "input_required", question("cups")), // not processed yet
			task("complete", "working", ""),
			task("complete", "input_required", question("sugar")),
			completed())
	}, func(t *testing.T, f *taskFake, dial func(...client.DialOption) *client.Client) {
		user := &clerk{}
		c := dial(client.Tasks(), client.Handlers(user))
		out, err := client.Call[string](t.Context(), c, "brew", nil)
		require.NoError(t, err)
		require.Equal(t, "tea", out)
		require.Equal(t, []string{"cups?", "kind?", "sugar?"}, user.questions())
		var sent []string
		for _, r := range f.all("tasks/update") {
			require.JSONEq(t, `"t1"`, string(r.Param("taskId")))
			sent = append(sent, string(r.Param("inputResponses")))
		}
		require.Equal(t, []string{
			`{"cups":{"action":"accept","content":{"ok":true}}}`, `{"kind":{"action":"accept","content":{"ok":true}}}`, `{"sugar":{"action":"accept","content":{"ok":true}}}`,
		}, sent)
	})
}

func TestAServerThatRepeatsAQuestionIsGivenUp(t *testing.T) {
	onTasks(t, func() *taskFake { return newTaskFake(task("complete", "input_required", question("kind"))) }, func(t *testing.T, f *taskFake, dial func(...client.DialOption) *client.Client) {
		user := &clerk{}
		c := dial(client.Tasks(), client.Handlers(user))
		_, err := client.Call[string](t.Context(), c, "brew", nil)
		require.EqualError(t, err, `client: tools/call "brew": task "t1": the server still asks "kind", to which 3 responses were sent`)
		require.Len(t, user.questions(), 1, "the user is asked once")
		require.Len(t, f.all("tasks/update"), 3)
		synctest.Wait()
		require.Len(t, f.all("tasks/cancel"), 1)
	})
}

func TestATaskThatAsksWithoutEndIsGivenUp(t *testing.T) {
	onTasks(t, func() *taskFake {
		f := newTaskFake()
		n := 0
		f.on["tasks/get"] = func(*jsonrpc.Request) string {
			n++
			return task("complete", "input_required", question(fmt.Sprint("k", n)))
		}
		return f
	}, func(t *testing.T, f *taskFake, dial func(...client.DialOption) *client.Client) {
		c := dial(client.Tasks(), client.Handlers(&clerk{}), client.MaxRounds(3))
		_, err := client.Call[string](t.Context(), c, "brew", nil)
		require.EqualError(t, err, `client: tools/call "brew": task "t1": the server asked 3 times for input and still wants more; raise MaxRounds`)
	})
}

func TestAQuestionWithoutAHandlerEndsTheCall(t *testing.T) {
	for name, opts := range map[string][]client.DialOption{
		"without handlers":    nil,
		"the user rejects it": {client.Handlers(&clerk{err: client.ErrRejected})},
	} {
		t.Run(name, func(t *testing.T) {
			onTasks(t, func() *taskFake { return newTaskFake(task("complete", "input_required", question("kind"))) }, func(t *testing.T, f *taskFake, dial func(...client.DialOption) *client.Client) {
				c := dial(append(opts, client.Tasks())...)
				_, err := client.Call[string](t.Context(), c, "brew", nil)
				require.ErrorContains(t, err, `client: tools/call "brew": task "t1": input request elicitation/create: `)
				synctest.Wait()
				require.Empty(t, f.all("tasks/update"))
				require.Len(t, f.all("tasks/cancel"), 1)
			})
		})
	}
}

func TestGarbageAboutATaskIsAnError(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for _, test := range []struct{ name, call, poll, want string }{
		{"no ID", `"result":{"resultType":"task","status":"working"}`, "", "the task has no ID"},
		{"a long ID", `"result":{"resultType":"task","taskId":"` + long + `","status":"working"}`, "", "the ID of the task has 2000 bytes; at most 1024 are allowed"},
		{"an unknown status", task("task", "dreaming", ""), "", `the task has the unknown status "dreaming"`},
		{"no status", `"result":{"resultType":"task","taskId":"t1"}`, "", `the task has the unknown status ""`},
		{"a TTL beyond all numbers", `"result":{"resultType":"task","taskId":"t1","status":"working","ttlMs":1e300}`, "", `/ttlMs`},
		{"the form of 2025-11-25", `"result":{"resultType":"task","task":{"taskId":"t1","status":"working"}}`, "", "the task has no ID"},
		{"another ID", "", strings.Replace(completed(), "t1", "t2", 1), `it is about another task, "t2"`},
		{"an unknown status later", "", task("complete", "", ""), `the task has the unknown status ""`},
		{"not an object", "", `"result":[]`, "tasks/get: the server's response is invalid"},
		{"another result type", "", task("job", "working", ""), `task "t1": tasks/get "t1": the server's response is invalid: the resultType "job" is unknown`},
		{"questions in place of the state", "", `"result":{"resultType":"input_required","requestState":"s"}`, "this method cannot require input"},
		{"no result", "", task("complete", "completed", ""), "the task is completed and has no result"},
		{"a result that is not an object", "", task("complete", "completed", `"result":3`), "the task is completed and has no result"},
		{"a task as the result of a task", "", task("complete", "completed", `"result":{"resultType":"task","taskId":"t2","status":"working"}`), "the result of the task is not a complete one"},
		{"no error", "", task("complete", "failed", ""), "the task has failed and has no error"},
		{"too many questions", "", task("complete", "input_required", question(strings.Split(strings.Repeat("k ", 101)[:201], " ")...)), ""},
		{"content that is not a list", "", task("complete", "completed", `"result":{"content":7}`), "the server's response is invalid"},
	} {
		t.Run(test.name, func(t *testing.T) {
			onTasks(t, func() *taskFake {
				f := newTaskFake(test.poll)
				if test.call != "" {
					f.on["tools/call"] = steps(test.call)
				}
				return f
			}, func(t *testing.T, f *taskFake, dial func(...client.DialOption) *client.Client) {
				c := dial(client.Tasks(), client.Handlers(&clerk{}), client.Timeout(time.Minute))
				_, err := client.Call[string](t.Context(), c, "brew", nil)
				require.ErrorContains(t, err, test.want)
				if test.poll != "" && test.name != "too many questions" {
					require.Len(t, f.all("tasks/get"), 1, "it is not asked again")
				}
			})
		})
	}
}

func TestATaskCannotGoOnAfterItsEnd(t *testing.T) {
	onTasks(t, func() *taskFake { return newTaskFake(completed(), task("complete", "working", ""), completed()) }, func(t *testing.T, f *taskFake, dial func(...client.DialOption) *client.Client) {
		task := dial(client.Tasks()).Task("t1")
		state, err := task.Get(t.Context())
		require.NoError(t, err)
		require.Equal(t, protocol.TaskCompleted, state.Status)
		_, err = task.Get(t.Context())
		require.EqualError(t, err, `client: task "t1": tasks/get: the server's response is invalid: the task had ended with the status "completed", and now has the status "working"`)
		_, err = task.Get(t.Context())
		require.NoError(t, err)
	})
}

func TestATaskThatNeverEndsIsGivenUpAndCancelled(t *testing.T) {
	onTasks(t, func() *taskFake { return newTaskFake(task("complete", "working", "")) }, func(t *testing.T, f *taskFake, dial func(...client.DialOption) *client.Client) {
		c := dial(client.Tasks())
		begun := time.Now()
		_, err := client.Call[string](t.Context(), c, "brew", nil, client.TaskTimeout(time.Hour))
		require.EqualError(t, err, `client: tools/call "brew": task "t1": the task has not ended within 1h0m0s; raise TaskTimeout`)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Hour, time.Since(begun))
		synctest.Wait()
		require.Len(t, f.all("tasks/cancel"), 1)
		require.Less(t, len(f.all("tasks/get")), 800, "without an interval of the server, the pauses grow to 5 s")

		begun = time.Now()
		_, err = c.Task("t1").Wait(t.Context())
		require.EqualError(t, err, `client: task "t1": the task has not ended within 24h0m0s; raise TaskTimeout`)
		require.Equal(t, 24*time.Hour, time.Since(begun))
		synctest.Wait()
		require.Len(t, f.all("tasks/cancel"), 1, "Wait does not cancel the task")
	})
}

func TestTheTimeOfTheUserDoesNotCountForATask(t *testing.T) {
	onTasks(t, func() *taskFake {
		return newTaskFake(task("complete", "input_required", question("kind")), completed())
	}, func(t *testing.T, f *taskFake, dial func(...client.DialOption) *client.Client) {
		c := dial(client.Tasks(), client.Handlers(&clerk{wait: 9 * time.Hour}), client.TaskTimeout(time.Minute))
		out, err := client.Call[string](t.Context(), c, "brew", nil)
		require.NoError(t, err)
		require.Equal(t, "tea", out)
	})
}

func TestPollIntervalsOfTheServerAreBounded(t *testing.T) {
	for _, test := range []struct {
		interval string
		at       time.Duration
	}{
		{"-5", 100 * time.Millisecond},
		{"0", 100 * time.Millisecond},
		{"1", 100 * time.Millisecond},
		{"1500", 1500 * time.Millisecond},
		{"600000", 10 * time.Minute},
		{"9223372036854775807", time.Hour},
	} {
		t.Run(test.interval, func(t *testing.T) {
			onTasks(t, func() *taskFake {
				poll := task("complete", "working", `"pollIntervalMs":`+test.interval)
				f := newTaskFake(poll, poll, completed())
				f.on["tools/call"] = steps(task("task", "working", `"pollIntervalMs":`+test.interval))
				return f
			}, func(t *testing.T, f *taskFake, dial func(...client.DialOption) *client.Client) {
				c := dial(client.Tasks())
				_, err := client.Call[string](t.Context(), c, "brew", nil)
				require.NoError(t, err)
				polls := f.all("tasks/get")
				require.Equal(t, test.at, polls[2].at.Sub(polls[1].at))
			})
		})
	}
}

func TestATaskIsFollowedAcrossARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTaskFake("", "", "", `"error":{"code":-32603,"message":"starting"}`, task("complete", "input_required", question("kind")), "", completed())
		f.on["tasks/update"] = steps("", emptyAck)
		c := dial(t, "http://tasks.example.com/mcp", client.Tasks(), httpClient(f), client.Handlers(&clerk{}))
		out, err := client.Call[string](t.Context(), c, "brew", nil)
		require.NoError(t, err)
		require.Equal(t, "tea", out)

		f.on["tasks/get"] = steps("")
		before := len(f.all("tasks/get"))
		_, err = client.Call[string](t.Context(), c, "brew", nil)
		require.ErrorContains(t, err, `task "t1": `)
		require.ErrorContains(t, err, "503")
		require.Len(t, f.all("tasks/get"), before+10)
	})
}

func TestACanceledCallCancelsItsTask(t *testing.T) {
	onTasks(t, func() *taskFake { return newTaskFake(task("complete", "working", "")) }, func(t *testing.T, f *taskFake, dial func(...client.DialOption) *client.Client) {
		c := dial(client.Tasks())
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("the user left"))
		defer cancel()
		_, err := client.Call[string](ctx, c, "brew", nil)
		require.EqualError(t, err, `client: tools/call "brew": task "t1": the user left`)
		require.NoError(t, c.Close(), "a program that is interrupted closes the client at once")
		require.Len(t, f.all("tasks/cancel"), 1)
		require.Empty(t, f.all("notifications/cancelled"))
	})
}

func TestCloseEndsCallsThatFollowATask(t *testing.T) {
	onTasks(t, func() *taskFake { return newTaskFake(task("complete", "working", "")) }, func(t *testing.T, f *taskFake, dial func(...client.DialOption) *client.Client) {
		c := dial(client.Tasks())
		done := make(chan error, 2)
		go func() {
			_, err := client.Call[string](t.Context(), c, "brew", nil)
			done <- err
		}()
		go func() {
			_, err := c.Task("t1").Wait(t.Context())
			done <- err
		}()
		time.Sleep(10 * time.Second) // in the bubble
		require.NoError(t, c.Close())
		require.ErrorIs(t, <-done, transport.ErrClosed)
		require.ErrorIs(t, <-done, transport.ErrClosed)
	})
}

func TestACallThatEndsAtOnceIsStartedToo(t *testing.T) {
	onTasks(t, func() *taskFake {
		f := newTaskFake("")
		f.on["tools/call"] = steps(
			`"result":{"resultType":"complete","content":[{"type":"text","text":"tea"}]}`,
			`"result":{"resultType":"complete","isError":true,"content":[{"type":"text","text":"no water"}]}`,
			`"error":{"code":-32602,"message":"unknown tool"}`)
		return f
	}, func(t *testing.T, f *taskFake, dial func(...client.DialOption) *client.Client) {
		c := dial(client.Tasks())
		task, err := client.Start(t.Context(), c, "brew", nil)
		require.NoError(t, err)
		require.Empty(t, task.ID())
		out, err := client.Wait[string](t.Context(), task)
		require.NoError(t, err)
		require.Equal(t, "tea", out)
		_, err = task.Get(t.Context())
		require.EqualError(t, err, `client: task "": the call did not become a task`)

		task, err = client.Start(t.Context(), c, "brew", nil)
		require.NoError(t, err)
		_, err = task.Wait(t.Context())
		require.EqualError(t, err, `tool "brew": no water`)

		_, err = client.Start(t.Context(), c, "brew", nil)
		require.EqualError(t, err, `client: tools/call "brew": unknown tool (code -32602)`)
		require.Empty(t, f.all("tasks/get"))
	})
}

func TestWithoutTheOptionCallsDoNotBecomeTasks(t *testing.T) {
	onTasks(t, func() *taskFake { return newTaskFake("") }, func(t *testing.T, f *taskFake, dial func(...client.DialOption) *client.Client) {
		c := dial()
		_, err := client.Call[string](t.Context(), c, "brew", nil)
		require.EqualError(t, err, `client: tools/call "brew": the server's response is invalid: the resultType "task" is unknown`)
		require.NotContains(t, string(f.all("tools/call")[0].Params), "tasks")
		_, err = client.Start(t.Context(), c, "brew", nil)
		require.EqualError(t, err, `client: tools/call "brew": tasks need a client that is dialed with client.Tasks()`)
		_, err = c.Task("t1").Get(t.Context())
		require.EqualError(t, err, `client: task "t1": tasks need a client that is dialed with client.Tasks()`)
		require.Len(t, f.all("tools/call"), 1)
		require.Empty(t, f.all("tasks/get"))
	})
}

func TestAToolThatRunsOnlyAsATaskIsAClearError(t *testing.T) {
	onTasks(t, func() *taskFake {
		f := newTaskFake("")
		f.on["tools/call"] = steps(`"error":{"code":-32021,"message":"brew needs tasks","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}`,
			`"error":{"code":-32021,"message":"brew needs a user","data":{"requiredCapabilities":{"elicitation":{}}}}`)
		return f
	}, func(t *testing.T, f *taskFake, dial func(...client.DialOption) *client.Client) {
		c := dial()
		_, err := client.Call[string](t.Context(), c, "brew", nil)
		require.EqualError(t, err, `client: tools/call "brew": the tool runs only as a task; dial with client.Tasks() to call it: brew needs tasks (code -32021)`)
		require.ErrorIs(t, err, client.ErrTaskRequired)
		_, err = client.Call[string](t.Context(), c, "brew", nil)
		require.EqualError(t, err, `client: tools/call "brew": brew needs a user (code -32021)`)
	})
}

func TestALegacyToolThatRunsOnlyAsATaskIsAClearError(t *testing.T) {
	f := newLegacyFake(t, map[string]answer{
		"tools/list": result(`{"tools":[{"name":"brew","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}},{"name":"pour","inputSchema":{"type":"object"}}]}`),
		"tools/call": rpcError(-32601, "task augmentation required", ""),
	})
	c := dial(t, f.URL, client.Tasks())
	_, err := client.Call[string](t.Context(), c, "brew", nil)
	require.EqualError(t, err, `client: tools/call "brew": the tool runs only as a task of version 2025-11-25, which this client does not support: task augmentation required (code -32601)`)
	require.ErrorIs(t, err, client.ErrTaskRequired)
	_, err = client.Call[string](t.Context(), c, "pour", nil)
	require.EqualError(t, err, `client: tools/call "pour": task augmentation required (code -32601)`)
	for _, r := range append(f.all("initialize"), f.all("tools/call")...) {
		require.NotContains(t, string(r.Params), "tasks", "legacy versions do not have the extension")
	}
	_, err = client.Start(t.Context(), c, "brew", nil)
	require.EqualError(t, err, `client: tools/call "brew": version 2025-11-25 does not have the extension io.modelcontextprotocol/tasks`)
	tool, err := c.Tool(t.Context(), "brew")
	require.NoError(t, err)
	require.ErrorIs(t, c.Callable(tool), client.ErrTaskRequired)
	var tea struct {
		Brew func(ctx context.Context) error `mcp:"brew"`
	}
	require.ErrorContains(t, c.Bind(&tea), `tool "brew": the tool runs only as a task of version 2025-11-25, which this client does not support`)
}

func TestOpenQuestionsAreAnsweredWithoutWaiting(t *testing.T) {
	onTasks(t, func() *taskFake {
		return newTaskFake(task("complete", "input_required", question("cups", "kind")), completed())
	}, func(t *testing.T, f *taskFake, dial func(...client.DialOption) *client.Client) {
		user := &clerk{}
		asks := task("complete", "input_required", question("kind"))
		task := dial(client.Tasks(), client.Handlers(user)).Task("t1")
		state, err := task.Respond(t.Context())
		require.NoError(t, err)
		require.Len(t, state.InputRequests, 2)
		require.Equal(t, []string{"cups?", "kind?"}, user.questions())
		require.Len(t, f.all("tasks/update"), 2)
		state, err = task.Respond(t.Context())
		require.NoError(t, err)
		require.Equal(t, protocol.TaskCompleted, state.Status)

		silent := dial(client.Tasks()).Task("t1")
		f.on["tasks/get"] = steps(`"error":{"code":-32602,"message":"unknown task"}`, asks)
		_, err = silent.Respond(t.Context())
		require.ErrorContains(t, err, `client: task "t1": `)
		_, err = silent.Respond(t.Context())
		require.ErrorContains(t, err, `client: task "t1": input request elicitation/create: `)
		require.NoError(t, silent.Answer(t.Context(), "kind", &protocol.ElicitResult{Action: protocol.ElicitDecline}))
		require.Len(t, f.all("tasks/update"), 3)
		require.EqualError(t, silent.Answer(t.Context(), "kind", 7), `client: task "t1": the response must be a JSON object; int does not encode as one`)
	})
}

func TestALegacyTaskThatWasNotRequestedIsAnError(t *testing.T) {
	f := newLegacyFake(t, map[string]answer{
		"tools/call": result(`{"task":{"taskId":"t1","status":"working","createdAt":"2026-11-22T18:00:00Z","lastUpdatedAt":"2026-11-22T18:00:00Z","ttl":null}}`),
	})
	c := dial(t, f.URL)
	_, err := client.Call[string](t.Context(), c, "brew", nil)
	require.EqualError(t, err, "client: tools/call \"brew\": the server's response is invalid: it is a task, which was not requested")
}
