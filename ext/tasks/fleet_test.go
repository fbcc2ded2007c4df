package tasks_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A branch is a replica of an office.
type branch struct {
	*office
	srv    *mcpkit.Server
	engine *dying
	t      *testing.T
}

// dying is an engine that is cut off when its replica dies. Servers see it as that of many machines.
type dying struct {
	fleet.Engine
	deaf atomic.Bool // what it publishes is lost
}

func (d *dying) die() { _ = d.Close() } // without a word to the others

func (d *dying) Publish(ctx context.Context, topic string, data []byte) error {
	if d.deaf.Load() {
		return nil
	}
	return d.Engine.Publish(ctx, topic, data)
}

// branches starts replicas of an office, with tasks in their fleet.
func branches(t *testing.T, n int, opts ...tasks.Option) []*branch {
	t.Helper()
	engine := fleet.NewMemory(fleet.MemoryOptions{})
	t.Cleanup(func() { _ = engine.Close() })
	all := make([]*branch, n)
	for i := range all {
		all[i] = openBranch(t, engine, opts...)
	}
	return all
}

func openBranch(t *testing.T, engine *fleet.Local, opts ...tasks.Option) *branch {
	t.Helper()
	b := &branch{office: &office{}, engine: &dying{Engine: engine.Open()}, t: t}
	srv, err := mcpkit.New(b.office, quiet(), mcpkit.StateKeys(stateKey), mcpkit.Fleet(b.engine), tasks.New(opts...))
	require.NoError(t, err)
	require.NoError(t, srv.Register(&press{}))
	require.NoError(t, srv.Start(t.Context()))
	t.Cleanup(func() { _ = srv.Close() })
	b.srv = srv
	return b
}

// A press is another service of a branch.
type press struct {
	_ struct {
		Chatty mcpkit.Tool `task:"optional"`
		Bulk   mcpkit.Tool `task:"optional"`
	}
}

// Chatty reports progress every second.
func (*press) Chatty(call *mcpkit.Call, in workInput) string {
	for i := range in.Seconds {
		call.Progress(float64(i), float64(in.Seconds), fmt.Sprintf("step %d", i))
		time.Sleep(time.Second)
	}
	return "done"
}

// Bulk returns more than a fleet stores.
func (*press) Bulk() string { return strings.Repeat("x", fleet.MaxData) }

func (b *branch) modern() *peer { return &peer{t: b.t, srv: b.srv} }

func TestTasksAreThoseOfAllReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := branches(t, 3)
		id := all[0].modern().start("trip", `{}`)
		all[1].modern().await(id, protocol.TaskInputRequired)
		all[2].modern().update(id, accept("where", `{"place":"Oslo"}`))
		all[0].modern().await(id, protocol.TaskInputRequired)
		all[1].modern().update(id, accept("pay", `{"confirm":true}`))
		for _, b := range all {
			d := b.modern().await(id, protocol.TaskCompleted)
			require.Equal(t, "ticket 7 to Oslo, paid true", contentOf(t, d.Result))
		}
		made := 0
		for _, b := range all {
			made += noted(b.office, &b.office.made)
		}
		require.Equal(t, 1, made, "values of Once are made once")
		require.Equal(t, 1, noted(all[0].office, &all[0].office.runs))
		require.Equal(t, 1, noted(all[2].office, &all[2].office.runs), "the method goes on where the answer arrives")
	})
}

func TestTasksAreCancelledWhereTheyRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := branches(t, 2)
		id := all[0].modern().start("work", `{"seconds":600}`)
		synctest.Wait()
		all[1].modern().result("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, id))
		synctest.Wait() // no time passes
		require.Equal(t, []string{tasks.ErrCancelled.Error()}, noted(all[0].office, &all[0].office.causes))
		require.Equal(t, protocol.TaskCancelled, all[0].modern().get(id).Status)
	})
}

func TestTasksOfOthersAreNotFoundAtAnyReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := branches(t, 2)
		ann := all[0].modern()
		ann.as = &oauth.Principal{Subject: "ann"}
		id := ann.start("work", `{"seconds":1}`)
		for _, p := range []*peer{all[1].modern(), {t: t, srv: all[1].srv, as: &oauth.Principal{Subject: "bob"}}} {
			require.ErrorContains(t, p.fails("tasks/get", fmt.Sprintf(`{"taskId":%q}`, id)), "there is no task")
			require.ErrorContains(t, p.fails("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, id)), "there is no task")
		}
		ann.srv = all[1].srv
		ann.await(id, protocol.TaskCompleted)
	})
}

// TestTasksOutliveTheirReplica kills a replica: nothing of it reaches the engine any more.
func TestTasksOutliveTheirReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := fleet.NewMemory(fleet.MemoryOptions{})
		defer engine.Close()
		start := func(c *courier) (*dying, *peer) {
			d := &dying{Engine: engine.Open()}
			srv := mcpkit.MustNew(c, mcpkit.Fleet(d), tasks.New(), mcpkit.StateKeys(stateKey), quiet())
			require.NoError(t, srv.Start(t.Context()))
			t.Cleanup(func() { _ = srv.Close() })
			return d, &peer{t: t, srv: srv}
		}
		first := &courier{begun: make(chan string, 10), hang: true}
		d, p := start(first)
		second, third := &courier{begun: make(chan string, 10), packed: 2}, &courier{begun: make(chan string, 10), packed: 2}
		_, p2 := start(second)
		_, p3 := start(third)
		plain, safe, asking := p.start("plain", `{}`), p.start("safe", `{}`), p.start("asking", `{}`)
		p2.await(asking, protocol.TaskInputRequired)
		synctest.Wait()
		require.Equal(t, 2, first.count())
		d.die()

		begun := time.Now()
		require.EqualError(t, p2.await(plain, protocol.TaskFailed).Error, "the server restarted (code -32603)")
		require.Regexp(t, "parcel [12]", contentOf(t, p3.await(safe, protocol.TaskCompleted).Result))
		require.Less(t, time.Since(begun), 2*leaseTime)
		require.Equal(t, 1, len(second.begun)+len(third.begun), "one replica runs it")
		require.Equal(t, []int{2, 2}, []int{second.count(), third.count()}, "the value of Once is not made again")
		p3.update(asking, accept("where", `{"place":"Oslo"}`))
		require.Equal(t, "sent to Oslo", contentOf(t, p2.await(asking, protocol.TaskCompleted).Result))
	})
}

func TestSubscribersAtAnyReplicaAreNotified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := branches(t, 2)
		p := all[1].modern()
		id := all[0].modern().start("work", `{"seconds":100}`)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { // ends with ctx
			defer close(done)
			p.rpc(ctx, "subscriptions/listen", fmt.Sprintf(`{"notifications":{"taskIds":[%q]}}`, id))
		}()
		synctest.Wait()
		p.take()
		other := all[0].modern().start("trip", `{}`)
		synctest.Wait()
		require.Empty(t, p.take(), "the task %s is not theirs", other)
		time.Sleep(15 * time.Second) // the record has the progress now
		synctest.Wait()
		p.take()
		time.Sleep(84 * time.Second)
		synctest.Wait()
		require.Empty(t, p.take(), "nothing has changed")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"completed"}, statuses(t, p.take()))
		cancel()
		<-done
	})
}

// statuses returns the statuses of notifications about tasks, without those of progress.
func statuses(t *testing.T, notifications []string) (all []string) {
	t.Helper()
	for _, n := range notifications {
		if strings.Contains(n, `"notifications/tasks"`) {
			all = append(all, text(t, n, "params", "status"))
		}
	}
	return slices.Compact(all)
}

func TestSubscribersHearWhatADeadReplicaDidNotTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := branches(t, 2)
		p := all[1].modern()
		id := all[0].modern().start("work", `{"seconds":1000}`)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { // ends with ctx
			defer close(done)
			p.rpc(ctx, "subscriptions/listen", fmt.Sprintf(`{"notifications":{"taskIds":[%q]}}`, id))
		}()
		synctest.Wait()
		p.take()
		all[0].engine.deaf.Store(true)
		all[0].modern().result("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, id))
		synctest.Wait()
		require.Empty(t, p.take())
		time.Sleep(leaseTime)
		synctest.Wait()
		require.Equal(t, []string{"cancelled"}, statuses(t, p.take()))
		cancel()
		<-done
	})
}

func TestProgressReachesSubscribersAtOtherReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := branches(t, 2)
		p := all[1].modern()
		id := all[0].modern().start("chatty", `{"seconds":9}`)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { // ends with ctx
			defer close(done)
			p.rpc(ctx, "subscriptions/listen", fmt.Sprintf(`{"notifications":{"taskIds":[%q]}}`, id))
		}()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		messages := strings.Join(p.take(), "\n")
		for i := range 4 {
			require.Contains(t, messages, fmt.Sprintf("step %d", i+1))
		}
		cancel()
		<-done
	})
}

func TestWaitingTasksRunAtReplicasWithFreePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := branches(t, 2, tasks.MaxRunning(1))
		p := all[0].modern()
		first, second, third := p.start("work", `{"seconds":5}`), p.start("work", `{"seconds":5}`), p.start("work", `{"seconds":5}`)
		synctest.Wait()
		require.Equal(t, 1, noted(all[0].office, &all[0].office.runs))
		require.Equal(t, 1, noted(all[1].office, &all[1].office.runs), "at once")
		for _, id := range []string{first, second, third} {
			p.await(id, protocol.TaskCompleted)
		}
	})
}

func TestResultsThatAreTooLargeFailTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := branches(t, 1)[0]
		id := b.modern().start("bulk", `{}`)
		d := b.modern().await(id, protocol.TaskFailed)
		require.ErrorContains(t, d.Error, "the result is larger than the server keeps")
	})
}

func TestTasksNeedTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newProcess(newStore(t))
		o := &office{}
		srv := mcpkit.MustNew(o, quiet(), mcpkit.StateKeys(stateKey), mcpkit.Fleet(engine), tasks.New())
		require.NoError(t, srv.Start(t.Context()))
		defer srv.Close()
		p := &peer{t: t, srv: srv}
		id := p.start("work", `{"seconds":30}`)
		synctest.Wait()
		engine.killed.Store(true)
		result := p.result("tools/call", `{"name":"work","arguments":{"seconds":1}}`)
		require.Contains(t, result, "cannot reach its store at the moment; try again")
		require.Contains(t, result, `"isError":true`)
		require.ErrorContains(t, p.fails("tasks/get", fmt.Sprintf(`{"taskId":%q}`, id)), "cannot reach its store")
		require.Contains(t, p.result("tools/call", `{"name":"greet","arguments":{"Name":"Ann"}}`), "Hello, Ann!")
		time.Sleep(time.Minute) // longer than a lease
		engine.killed.Store(false)
		time.Sleep(fleet.Retry)
		require.Equal(t, "done", contentOf(t, p.await(id, protocol.TaskCompleted).Result))
		require.Equal(t, 1, noted(o, &o.runs))
	})
}

// The engine sees nothing of what a task is about.
func TestRecordsOfAFleetAreSealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := fleet.NewMemory(fleet.MemoryOptions{})
		defer engine.Close()
		p := openBranch(t, engine).modern()
		id := p.start("trip", `{}`)
		p.await(id, protocol.TaskInputRequired)
		r, err := engine.Get(t.Context(), "tasks", id)
		require.NoError(t, err)
		require.NotContains(t, string(r.Data), "trip")
		r.Data = bytes.Clone(r.Data)
		r.Data[len(r.Data)-1] ^= 1
		_, err = engine.Update(t.Context(), "tasks", r)
		require.NoError(t, err)
		require.Equal(t, -32603, p.fails("tasks/get", fmt.Sprintf(`{"taskId":%q}`, id)).Code)
	})
}
