package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/tasks"
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

func TestResultsInMemoryReplaceThoseThatEndedBefore(t *testing.T) {
	store, data := &tasks.MemoryStore{}, make([]byte, 40<<20)
	add := func(id, owner string, data []byte) (*tasks.Record, error) {
		r := &tasks.Record{ID: id, Owner: owner, State: tasks.Ready, Data: data, Expires: time.Now().Add(time.Hour)}
		return r, store.Create(t.Context(), r, tasks.Limits{})
	}
	for _, owner := range []string{"a", "b", "c", "d", "e", "f"} {
		for _, id := range []string{"1", "2", "3"} {
			r, err := add(owner+id, owner, nil)
			require.NoError(t, err)
			r.State, r.Data = tasks.Ended, data
			require.NoError(t, store.Update(t.Context(), r), "a result is kept")
			all, err := store.List(t.Context(), owner, "", 9)
			require.NoError(t, err)
			require.Len(t, all, 1, "those before have made room for it")
			require.Equal(t, owner+id, all[0].ID)
		}
	}
	var full *tasks.LimitError
	_, err := add("g1", "g", data)
	require.ErrorAs(t, err, &full)
	require.Equal(t, tasks.LimitError{Total: true, Bytes: true, Limit: 256 << 20}, *full)
	r, err := add("a4", "a", nil)
	require.NoError(t, err)
	r.State = tasks.Asleep
	require.NoError(t, store.Update(t.Context(), r))
	r.Data = data
	require.NoError(t, store.Update(t.Context(), r), "one that ended has made room for it")
	r.Data = make([]byte, 65<<20)
	require.ErrorAs(t, store.Update(t.Context(), r), &full)
	require.Equal(t, tasks.LimitError{Bytes: true, Limit: 64 << 20}, *full)
}

func TestTasksCanBeCancelledWhileOthersFillTheMemory(t *testing.T) {
	store := &tasks.MemoryStore{}
	put := func(id string, state tasks.State) *tasks.Record {
		r := &tasks.Record{ID: id, Owner: "ann", State: state, Expires: time.Now().Add(time.Hour), Data: []byte("{}")}
		require.NoError(t, store.Create(t.Context(), r, tasks.Limits{}))
		return r
	}
	asking, running := put("asking", tasks.Asleep), put("running", tasks.Ready)
	running.Data = make([]byte, 65<<20) // a value of Once
	require.NoError(t, store.Update(t.Context(), running))
	asking.Data = []byte("{ }")
	require.Error(t, store.Update(t.Context(), asking), "no space for answers")
	asking.State, asking.Data = tasks.Ended, []byte("{}")
	require.NoError(t, store.Update(t.Context(), asking))
}

func TestTasksThatAreCreatedWhileOthersEndDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := heldStore{&tasks.MemoryStore{}, make(chan struct{})}
		o := openWith(t, tasks.New(tasks.StoreIn(store), tasks.MaxRunning(1)), mcpkit.StateKeys(stateKey))
		go o.modern().rpc(t.Context(), "tools/call", `{"name":"work","arguments":{"seconds":1}}`)
		synctest.Wait()
		go o.modern().rpc(t.Context(), "tools/call", `{"name":"work","arguments":{"seconds":1}}`)
		synctest.Wait() // both are being created: the second one has no place
		store.release <- struct{}{}
		time.Sleep(2 * time.Second)
		store.release <- struct{}{}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, 2, noted(o.office, &o.runs))
	})
}

// hastyStore claims before leases have ended, as after a computer has slept.
type hastyStore struct{ tasks.Store }

func (s hastyStore) Claim(ctx context.Context, before, until time.Time) (*tasks.Record, error) {
	return s.Store.Claim(ctx, before.Add(time.Minute), until.Add(2*time.Minute))
}

func TestTasksThatRunHereGoOnWhenTheirLeaseWasLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openWith(t, tasks.New(tasks.StoreIn(hastyStore{&tasks.MemoryStore{}})), mcpkit.StateKeys(stateKey))
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

// sluggishStore takes its time, once, like a disk that is busy.
type sluggishStore struct {
	tasks.Store
	before, after atomic.Value // the ID of a task for whose Extend it sleeps, before or after it
	claims        time.Duration
}

func (s *sluggishStore) Extend(ctx context.Context, id string, fence int64, until time.Time) error {
	if s.before.CompareAndSwap(id, "") {
		time.Sleep(tasks.DefaultLease)
	}
	err := s.Store.Extend(ctx, id, fence, until)
	if s.after.CompareAndSwap(id, "") {
		time.Sleep(4 * tasks.DefaultLease / 3)
	}
	return err
}

func (s *sluggishStore) Claim(ctx context.Context, before, until time.Time) (*tasks.Record, error) {
	r, err := s.Store.Claim(ctx, before, until)
	time.Sleep(s.claims)
	return r, err
}

func TestTasksGoOnThatAreClaimedHereWhileTheirLeaseIsExtended(t *testing.T) {
	for _, slow := range []string{"before", "after"} {
		synctest.Test(t, func(t *testing.T) {
			var log strings.Builder
			store := &sluggishStore{Store: &tasks.MemoryStore{}}
			o := openWith(t, tasks.New(tasks.StoreIn(store)), mcpkit.StateKeys(stateKey), mcpkit.Logger(slog.New(slog.NewTextHandler(&log, nil))))
			require.NoError(t, o.srv.Add(mcpkit.NewTool("report", func(ctx context.Context, call *mcpkit.Call, in workInput) (string, error) {
				for i := range in.Seconds {
					call.Progress(float64(i), 0, fmt.Sprint("step ", i)) // each tick has something to write
					select {
					case <-time.After(time.Second):
					case <-ctx.Done():
						return "", context.Cause(ctx)
					}
				}
				return "reported", nil
			}).Tag("task", "optional")))
			p := o.modern()
			long, loud := p.start("work", `{"seconds":200}`), p.start("report", `{"seconds":200}`)
			time.Sleep(15 * time.Second)
			if slow == "before" { // at the next tick, until their leases have ended
				store.before.Store(loud)
				time.Sleep(31 * time.Second)
			} else { // until what Extend has given has ended
				store.after.Store(loud)
				time.Sleep(37 * time.Second)
			}
			for range 3 {
				p.await(p.start("work", `{"seconds":1}`), protocol.TaskCompleted) // then they are claimed
			}
			require.Equal(t, "reported", contentOf(t, p.await(loud, protocol.TaskCompleted).Result), slow)
			require.Equal(t, "done", contentOf(t, p.await(long, protocol.TaskCompleted).Result), slow)
			require.NotContains(t, log.String(), "a lease is not renewed")
		})
	}
}

func TestResultsAreKeptOfTasksThatAreClaimedHereAsTheyEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &sluggishStore{Store: hastyStore{&tasks.MemoryStore{}}, claims: 2 * time.Second}
		o := openWith(t, tasks.New(tasks.StoreIn(store)), mcpkit.StateKeys(stateKey))
		require.NoError(t, o.srv.Add(mcpkit.NewTool("pack", func(ctx context.Context) (int, error) {
			time.Sleep(10 * time.Second)
			return mcpkit.Once(ctx, "packed", func() (int, error) { return 7, nil })
		}).Tag("task", "optional")))
		p := o.modern()
		long, packed := p.start("work", `{"seconds":10}`), p.start("pack", `{}`)
		p.start("work", `{"seconds":8}`) // then the others are being claimed
		p.start("work", `{"seconds":9}`)
		require.Equal(t, "done", contentOf(t, p.await(long, protocol.TaskCompleted).Result))
		require.Equal(t, "7", contentOf(t, p.await(packed, protocol.TaskCompleted).Result))
	})
}

// fullStore refuses to write while it is full, as on a disk without space.
type fullStore struct {
	tasks.Store
	full atomic.Bool
}

func (s *fullStore) Create(ctx context.Context, r *tasks.Record, limits tasks.Limits) error {
	if s.full.Load() {
		return errors.New("/var/lib/tasks.db: no space left on device")
	}
	return s.Store.Create(ctx, r, limits)
}

func (s *fullStore) Update(ctx context.Context, r *tasks.Record) error {
	if s.full.Load() {
		return errors.New("/var/lib/tasks.db: no space left on device")
	}
	return s.Store.Update(ctx, r)
}

func (s *fullStore) Extend(ctx context.Context, id string, fence int64, until time.Time) error {
	if s.full.Load() {
		return errors.New("/var/lib/tasks.db: no space left on device")
	}
	return s.Store.Extend(ctx, id, fence, until)
}

func TestResultsAreKeptWhenTheDiskWasFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fullStore{Store: &tasks.MemoryStore{}}
		o := openWith(t, tasks.New(tasks.StoreIn(store)), mcpkit.StateKeys(stateKey))
		p := o.modern()
		id, asking := p.start("work", `{"seconds":5}`), p.start("trip", `{}`)
		p.await(asking, protocol.TaskInputRequired)
		store.full.Store(true)
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
		store.full.Store(false)
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
