package tasks_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A courier is a service whose methods are killed.
type courier struct {
	_ struct {
		Plain  mcpkit.Tool `task:"optional"`
		Safe   mcpkit.Tool `task:"optional,durable"`
		Asking mcpkit.Tool `task:"optional"`
	}
	begun chan string // gets the tool that has begun
	hang  bool        // the methods do not return before their context ends

	mu     sync.Mutex
	packed int      // guarded by mu
	keys   []string // guarded by mu
	causes []string // why contexts ended; guarded by mu
}

// counts returns how often Once made a value, and the keys.
func (c *courier) counts() (packed int, keys []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.packed, slices.Clone(c.keys)
}

func (c *courier) count() int { n, _ := c.counts(); return n }

func (c *courier) work(ctx context.Context, name string) (string, error) {
	n, err := mcpkit.Once(ctx, "packed", func() (int, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.keys = append(c.keys, mcpkit.OnceKey(ctx, "packed"))
		c.packed++
		return c.packed, nil
	})
	if err != nil {
		return "", err
	}
	c.begun <- name
	if c.hang {
		<-ctx.Done()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.causes = append(c.causes, context.Cause(ctx).Error())
		return "", ctx.Err()
	}
	return fmt.Sprintf("parcel %d", n), nil
}

func (c *courier) Plain(ctx context.Context) (string, error) { return c.work(ctx, "plain") }
func (c *courier) Safe(ctx context.Context) (string, error)  { return c.work(ctx, "safe") }
func (c *courier) Asking(ctx context.Context) (string, error) {
	to, err := mcpkit.Elicit[place](ctx, "Where to?", mcpkit.Key("where"))
	return "sent to " + to.Place, err
}

// start starts a process of the courier's server.
func (c *courier) start(t *testing.T, store *fleet.Local, opts ...mcpkit.Option) (*faulty, *peer) {
	t.Helper()
	proc := &faulty{Engine: store.Open()}
	return proc, &peer{t: t, srv: serve(t, c, append(opts, tasks.New(), mcpkit.Fleet(proc))...)}
}

// release starts a process of another build of the courier's server.
func release(t *testing.T, store *fleet.Local, build any) *peer {
	t.Helper()
	return &peer{t: t, srv: serve(t, build, mcpkit.Name("courier", "2"), tasks.New(), mcpkit.Fleet(store.Open()))}
}

func TestAfterACrashDurableTasksGoOnAndOthersFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t)
		c := &courier{begun: make(chan string, 10), hang: true}
		proc, p := c.start(t, store)
		plain, safe, asking := p.start("plain", `{}`), p.start("safe", `{}`), p.start("asking", `{}`)
		synctest.Wait()
		require.Equal(t, 2, c.count())
		p.await(asking, protocol.TaskInputRequired)
		proc.killed.Store(true)

		again := &courier{begun: make(chan string, 10), packed: 2}
		_, p = again.start(t, store)
		d := p.await(plain, protocol.TaskFailed)
		require.EqualError(t, d.Error, "the server restarted (code -32603)")
		require.Equal(t, "the server restarted", d.StatusMessage)
		d = p.await(safe, protocol.TaskCompleted)
		require.Regexp(t, "parcel [12]", contentOf(t, d.Result))
		require.Equal(t, 2, again.count(), "the value of Once is not made again")
		require.Len(t, again.begun, 1)
		p.update(asking, accept("where", `{"place":"Oslo"}`))
		require.Equal(t, "sent to Oslo", contentOf(t, p.await(asking, protocol.TaskCompleted).Result))
	})
}

func TestATaskThatKillsItsProcessThreeTimesFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t)
		var id string
		for i := range 3 {
			c := &courier{begun: make(chan string, 10), hang: true}
			proc, p := c.start(t, store)
			if i == 0 {
				id = p.start("safe", `{}`)
			}
			require.Equal(t, "safe", <-c.begun, "process %d runs it", i+1)
			proc.killed.Store(true)
		}
		c := &courier{begun: make(chan string, 10)}
		_, p := c.start(t, store)
		d := p.await(id, protocol.TaskFailed)
		require.EqualError(t, d.Error, "the process ended 3 times while the task was running (code -32603)")
		require.Empty(t, c.begun)
	})
}

// The value that was being made when the process was killed is made again, with the same key.
func TestValuesOfOnceThatWereNotKeptAreMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t)
		c := &courier{begun: make(chan string, 10)}
		var proc *faulty
		proc, p := c.start(t, store, tasksMiddleware(func(call *mcpkit.Call) {
			if call.Run() != nil {
				proc.killed.Store(true)
			}
		}))
		id := p.start("safe", `{}`)
		synctest.Wait()
		require.Equal(t, 1, c.count())
		again := &courier{begun: make(chan string, 10), packed: 1}
		_, p = again.start(t, store)
		require.Equal(t, "parcel 2", contentOf(t, p.await(id, protocol.TaskCompleted).Result))
		_, first := c.counts()
		_, second := again.counts()
		require.Equal(t, first, second)
	})
}

// tasksMiddleware is an option that sees each call of a tool.
func tasksMiddleware(see func(*mcpkit.Call)) mcpkit.Option {
	return mcpkit.Around(func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			see(call)
			return next(ctx, call)
		}
	})
}

// changed is the courier after a new release: Safe takes an argument.
type changed struct {
	_ struct {
		Safe mcpkit.Tool `task:"optional,durable"`
	}
}

func (changed) Safe(struct{ Fast bool }) string { return "sent" }

func TestTasksWhoseToolHasChangedFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t)
		c := &courier{begun: make(chan string, 10), hang: true}
		proc, p := c.start(t, store)
		id, plain := p.start("safe", `{}`), p.start("asking", `{}`)
		synctest.Wait()
		proc.killed.Store(true)
		p = release(t, store, &changed{})
		require.EqualError(t, p.await(id, protocol.TaskFailed).Error, "the arguments of the tool have changed since the task began (code -32603)")
		p.update(plain, accept("where", `{"place":"Oslo"}`))
		require.EqualError(t, p.await(plain, protocol.TaskFailed).Error, `unknown tool "asking" (code -32602)`)
	})
}

// rebuilt is the courier after a release that has renamed what Once keeps.
type rebuilt struct {
	_ struct {
		Safe mcpkit.Tool `task:"optional,durable"`
	}
}

func (rebuilt) Safe(ctx context.Context) (int, error) {
	return mcpkit.Once(ctx, "wrapped", func() (int, error) { return 9, nil })
}

func TestANewBuildHasToUseWhatWasKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t)
		c := &courier{begun: make(chan string, 10), hang: true}
		proc, p := c.start(t, store)
		id := p.start("safe", `{}`)
		synctest.Wait()
		proc.killed.Store(true)
		p = release(t, store, &rebuilt{})
		require.EqualError(t, p.await(id, protocol.TaskFailed).Error, `this build of the tool no longer uses what mcpkit.Once has kept as "packed"; `+
			`a new build may change what a tool does after its kept values, and must keep their keys while tasks are open (code -32603)`)
	})
}

func TestCancelledTasksAreNotClaimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t)
		c := &courier{begun: make(chan string, 10), hang: true}
		proc, p := c.start(t, store)
		id := p.start("safe", `{}`)
		require.Equal(t, "safe", <-c.begun)
		proc.killed.Store(true) // it still has the lease
		again := &courier{begun: make(chan string, 10)}
		_, p = again.start(t, store)
		p.result("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, id))
		time.Sleep(10 * lease)
		require.Empty(t, again.begun)
		require.Equal(t, protocol.TaskCancelled, p.get(id).Status)
	})
}

func TestATaskThatIsCancelledWhileItIsClaimedDoesNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cancel atomic.Pointer[func()]
		var updates atomic.Int32
		engine := &faulty{Engine: newStore(t), after: func(op, set string) {
			f := cancel.Load()
			if f != nil && op == "Update" && set == "tasks" && updates.Add(1) == 2 { // the first one ends the task before
				(*f)()
			}
		}}
		o := openOn(t, engine, tasks.MaxRunning(1))
		p := o.modern()
		p.start("work", `{"seconds":1}`)
		id := p.start("work", `{"seconds":1}`)
		cancel.Store(new(func() { p.result("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, id)) }))
		time.Sleep(5 * time.Second)
		require.Equal(t, 1, noted(o.office, &o.runs))
		require.Equal(t, protocol.TaskCancelled, p.get(id).Status)
	})
}

func TestClosingTheServerHandsDurableTasksOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t)
		c := &courier{begun: make(chan string, 10), hang: true}
		_, p := c.start(t, store)
		plain, safe := p.start("plain", `{}`), p.start("safe", `{}`)
		synctest.Wait()
		begin := time.Now()
		require.NoError(t, p.srv.Close())
		again := &courier{begun: make(chan string, 10), packed: 2}
		_, p = again.start(t, store)
		synctest.Wait()
		require.Equal(t, protocol.TaskCompleted, p.get(safe).Status)
		require.Zero(t, time.Since(begin), "it does not wait for the end of a lease")
		require.EqualError(t, p.get(plain).Error, "the server restarted (code -32603)")
		require.Equal(t, 2, again.count())
	})
}

// Two processes share the store. One of them loses its lease, because it does not reach the store
// in time, and its method ends.
func TestOneProcessRunsATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t)
		slow, other := &courier{begun: make(chan string, 10), hang: true}, &courier{begun: make(chan string, 10), packed: 1}
		proc, p := slow.start(t, store)
		_, q := other.start(t, store)
		id := p.start("safe", `{}`)
		time.Sleep(5 * lease)
		require.Empty(t, other.begun, "leases are renewed")
		proc.killed.Store(true)
		time.Sleep(2 * lease)
		proc.killed.Store(false)
		require.Equal(t, "parcel 1", contentOf(t, q.await(id, protocol.TaskCompleted).Result))
		time.Sleep(lease)
		synctest.Wait()
		require.Equal(t, []string{"tasks: the lease of the task is lost"}, slow.causes)
		require.Equal(t, "parcel 1", contentOf(t, p.await(id, protocol.TaskCompleted).Result), "the late outcome of the other is dropped")
		require.Len(t, other.begun, 1)
		require.Len(t, slow.begun, 1)
	})
}

func TestOptionsRefuseWhatIsNotAllowed(t *testing.T) {
	_, err := mcpkit.New(&office{}, tasks.New(tasks.TTL(0), nil))
	require.ErrorContains(t, err, "tasks: TTL(0s): the least is 1s")
	require.ErrorContains(t, err, "tasks: option 2 is nil")
}

// lateEngine acknowledges updates of tasks after readers have seen them, like a store across a network.
func lateEngine(t *testing.T) *faulty {
	engine := &faulty{Engine: newStore(t)}
	engine.after = func(op, set string) {
		if op == "Update" && set == "tasks" {
			time.Sleep(3 * time.Second)
		}
	}
	return engine
}

func TestAnswersRunATaskWhoseQuestionIsStillBeingStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOn(t, lateEngine(t))
		p := o.modern()
		id := p.start("trip", `{}`)
		p.await(id, protocol.TaskInputRequired)
		p.update(id, accept("where", `{"place":"Oslo"}`))
		began := time.Now()
		p.await(id, protocol.TaskInputRequired)
		require.Less(t, time.Since(began), 10*time.Second)
	})
}

func TestAnswersThatArriveTogetherRunTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOn(t, lateEngine(t))
		p := o.modern()
		id := p.start("both", `{}`)
		p.await(id, protocol.TaskInputRequired)
		time.Sleep(10 * time.Second)
		began := time.Now()
		first := make(chan struct{})
		go func() { // ends with the test
			defer close(first)
			p.update(id, accept("1-first", `{"place":"Oslo"}`))
		}()
		time.Sleep(time.Second)
		p.update(id, accept("2-second", `{"place":"Rome"}`))
		<-first
		require.Equal(t, "Oslo and Rome", contentOf(t, p.await(id, protocol.TaskCompleted).Result))
		require.Less(t, time.Since(began), 20*time.Second)
	})
}

// heldEngine blocks the creation of tasks.
func heldEngine(t *testing.T) (engine *faulty, release chan struct{}) {
	engine, release = &faulty{Engine: newStore(t)}, make(chan struct{})
	engine.before = func(op, set string) error {
		if op == "Create" && set == "tasks" {
			<-release
		}
		return nil
	}
	return engine, release
}

func TestCloseWaitsForTasksThatAreBeingCreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, release := heldEngine(t)
		o := openOn(t, engine)
		var all sync.WaitGroup
		closed := make(chan struct{})
		o.srv.Use(func(next mcpkit.Handler) mcpkit.Handler {
			return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
				if call.Run() != nil {
					select {
					case <-closed:
						t.Error("the method runs after the server was closed")
					default:
					}
				}
				return next(ctx, call)
			}
		})
		all.Go(func() { o.modern().rpc(t.Context(), "tools/call", `{"name":"work","arguments":{"seconds":1}}`) })
		synctest.Wait()
		all.Go(func() {
			_ = o.srv.Close()
			close(closed)
		})
		synctest.Wait()
		close(release)
		all.Wait()
		synctest.Wait()
	})
}
