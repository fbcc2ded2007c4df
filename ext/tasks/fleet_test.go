package tasks_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A branch is a replica of an office.
type branch struct {
	*opened
	engine *faulty
}

// branches starts replicas of an office, with tasks in their fleet.
func branches(t *testing.T, n int, opts ...tasks.Option) []branch {
	t.Helper()
	store, all := newStore(t), make([]branch, n)
	for i := range all {
		engine := &faulty{Engine: store.Open()}
		all[i] = branch{openOn(t, engine, opts...), engine}
	}
	return all
}

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
		require.Equal(t, 1, noted(all[0].office, &all[0].runs))
		require.Equal(t, 1, noted(all[2].office, &all[2].runs), "the method goes on where the answer arrives")
	})
}

func TestTasksAreCancelledWhereTheyRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := branches(t, 2)
		id := all[0].modern().start("work", `{"seconds":600}`)
		synctest.Wait()
		all[1].modern().result("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, id))
		synctest.Wait() // no time passes
		require.Equal(t, []string{tasks.ErrCancelled.Error()}, noted(all[0].office, &all[0].causes))
		require.Equal(t, protocol.TaskCancelled, all[0].modern().get(id).Status)
	})
}

func TestSubscribersAtAnyReplicaAreNotified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := branches(t, 2)
		p := all[1].modern()
		id := all[0].modern().start("work", `{"seconds":100}`)
		listen(p, id)
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
		listen(p, id)
		p.take()
		all[0].engine.deaf.Store(true)
		all[0].modern().result("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, id))
		synctest.Wait()
		require.Empty(t, p.take())
		time.Sleep(lease)
		synctest.Wait()
		require.Equal(t, []string{"cancelled"}, statuses(t, p.take()))
	})
}

func TestProgressReachesSubscribersAtOtherReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := branches(t, 2)
		p := all[1].modern()
		id := all[0].modern().start("chatty", `{"seconds":9}`)
		listen(p, id)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		messages := strings.Join(p.take(), "\n")
		for i := range 4 {
			require.Contains(t, messages, fmt.Sprintf("step %d", i+1))
		}
	})
}

func TestWaitingTasksRunAtReplicasWithFreePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := branches(t, 2, tasks.MaxRunning(1))
		p := all[0].modern()
		first, second, third := p.start("work", `{"seconds":5}`), p.start("work", `{"seconds":5}`), p.start("work", `{"seconds":5}`)
		synctest.Wait()
		require.Equal(t, 1, noted(all[0].office, &all[0].runs))
		require.Equal(t, 1, noted(all[1].office, &all[1].runs), "at once")
		for _, id := range []string{first, second, third} {
			p.await(id, protocol.TaskCompleted)
		}
	})
}

func TestResultsThatAreTooLargeFailTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t).modern()
		d := p.await(p.start("bulk", fmt.Sprintf(`{"Bytes":%d}`, fleet.MaxData)), protocol.TaskFailed)
		require.ErrorContains(t, d.Error, "the result is larger than the server keeps")
	})
}

func TestTasksNeedTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := branches(t, 1)[0]
		p := b.modern()
		id := p.start("work", `{"seconds":30}`)
		synctest.Wait()
		b.engine.killed.Store(true)
		result := p.result("tools/call", `{"name":"work","arguments":{"seconds":1}}`)
		require.Contains(t, result, "cannot reach its store at the moment; try again")
		require.Contains(t, result, `"isError":true`)
		require.ErrorContains(t, p.fails("tasks/get", fmt.Sprintf(`{"taskId":%q}`, id)), "cannot reach its store")
		require.Contains(t, p.result("tools/call", `{"name":"greet","arguments":{"Name":"Ann"}}`), "Hello, Ann!")
		time.Sleep(time.Minute) // longer than a lease
		b.engine.killed.Store(false)
		time.Sleep(fleet.Retry)
		require.Equal(t, "done", contentOf(t, p.await(id, protocol.TaskCompleted).Result))
		require.Equal(t, 1, noted(b.office, &b.runs))
	})
}

// The engine sees nothing of what a task is about.
func TestRecordsOfAFleetAreSealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newStore(t)
		p := openOn(t, engine.Open()).modern()
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
