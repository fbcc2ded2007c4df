package client_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A Teahouse has tools that run as tasks.
type Teahouse struct {
	_ struct {
		Brew  mcpkit.Tool `task:"optional"`
		Spill mcpkit.Tool `task:"optional"`
		Break mcpkit.Tool `task:"optional"`
	}
	spilling chan struct{} // a token for each Spill that began
	spilled  chan error    // why each Spill ended
}

// A Pot is what Brew makes.
type Pot struct {
	Kind string `json:"kind"`
	Cups int    `json:"cups"`
}

// Brew asks which tea, and brews it.
func (*Teahouse) Brew(ctx context.Context, in struct {
	Cups int `json:"cups"`
}, call *mcpkit.Call) (Pot, error) {
	call.Progress(1, 2, "boiling")
	kind, err := mcpkit.Elicit[struct {
		Kind string `json:"kind"`
	}](ctx, "Which tea?")
	return Pot{kind.Kind, in.Cups}, err
}

// Spill waits until it is cancelled.
func (h *Teahouse) Spill(ctx context.Context, call *mcpkit.Call) error {
	call.Progress(1, 2, "spilling")
	h.spilling <- struct{}{}
	<-ctx.Done()
	h.spilled <- context.Cause(ctx)
	return ctx.Err()
}

// Break reports an error.
func (*Teahouse) Break() error { return mcpkit.Errorf("out of water") }

// A guest answers which tea, and counts the questions.
type guest struct {
	mu    sync.Mutex
	asked int // guarded by mu
}

// Elicit answers.
func (g *guest) Elicit(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	return &protocol.ElicitResult{Action: protocol.ElicitAccept, Content: []byte(`{"kind":"green"}`)}, nil
}

func newTeahouse() (*mcpkit.Server, *Teahouse, error) {
	house := &Teahouse{spilling: make(chan struct{}, 10), spilled: make(chan error, 10)}
	srv, err := mcpkit.New(house, tasks.New(tasks.PollInterval(10*time.Millisecond)), mcpkit.Logger(slog.New(slog.DiscardHandler)))
	return srv, house, err
}

func init() {
	children["teahouse"] = func() int {
		srv, _, err := newTeahouse()
		if err == nil {
			err = srv.Serve(context.Background())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
}

// onTeahouses runs a test with a server on each transport. House is nil if the server is another
// process.
func onTeahouses(t *testing.T, run func(t *testing.T, target any, house *Teahouse)) {
	for name, target := range map[string]func(t *testing.T, srv *mcpkit.Server) any{
		"memory": func(_ *testing.T, srv *mcpkit.Server) any { return srv },
		"http":   func(t *testing.T, srv *mcpkit.Server) any { return serveHTTP(t, srv) },
	} {
		t.Run(name, func(t *testing.T) {
			srv, house, err := newTeahouse()
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, srv.Close()) })
			run(t, target(t, srv), house)
		})
	}
	t.Run("stdio", func(t *testing.T) { run(t, child("teahouse"), nil) })
}

func TestATaskHasTheResultOfTheCall(t *testing.T) {
	t.Parallel()
	onTeahouses(t, func(t *testing.T, target any, _ *Teahouse) {
		for name, opts := range map[string][]client.DialOption{
			"as a task":          {client.Tasks()},
			"as a plain call":    nil,
			"on 2025-11-25":      {client.Version(protocol.V20251125)},
			"tasks, 2025-11-25 ": {client.Version(protocol.V20251125), client.Tasks()},
		} {
			t.Run(name, func(t *testing.T) {
				user := &guest{}
				c := dial(t, target, append(opts, client.Handlers(user))...)
				var progress []string
				pot, err := client.Call[Pot](t.Context(), c, "brew", map[string]int{"cups": 3}, client.OnProgress(func(p *protocol.ProgressParams) { progress = append(progress, p.Message) }))
				require.NoError(t, err)
				require.Equal(t, Pot{"green", 3}, pot)
				require.Equal(t, 1, user.asked)
				require.Contains(t, progress, "boiling")
				_, err = c.CallTool(t.Context(), "break", nil)
				require.EqualError(t, err, `tool "break": out of water`)
				require.IsType(t, &client.ToolError{}, err)
			})
		}
	})
}

func TestATaskOfOneClientIsFinishedByAnother(t *testing.T) {
	t.Parallel()
	onTeahouses(t, func(t *testing.T, target any, house *Teahouse) {
		first := dial(t, target, client.Tasks(), client.Handlers(&guest{}))
		task, err := client.Start(t.Context(), first, "brew", map[string]int{"cups": 3})
		require.NoError(t, err)
		require.NotEmpty(t, task.ID())
		second := first
		if house != nil { // a process on stdio ends with its client
			require.NoError(t, first.Close())
			second = dial(t, target, client.Tasks())
		}
		again := second.Task(task.ID())
		state := &protocol.DetailedTask{}
		for state.Status != protocol.TaskInputRequired {
			<-time.After(50 * time.Millisecond) // the server limits how often it is asked
			state, err = again.Get(t.Context())
			require.NoError(t, err)
			require.False(t, state.Status.Terminal())
		}
		require.Len(t, state.InputRequests, 1)
		for key := range state.InputRequests {
			require.NoError(t, again.Answer(t.Context(), key, &protocol.ElicitResult{Action: protocol.ElicitAccept, Content: []byte(`{"kind":"black"}`)}))
		}
		pot, err := client.Wait[Pot](t.Context(), again)
		require.NoError(t, err)
		require.Equal(t, Pot{"black", 3}, pot)
		pot, err = client.Wait[Pot](t.Context(), again)
		require.NoError(t, err, "the result can be read again")
		require.Equal(t, Pot{"black", 3}, pot)
		require.NoError(t, again.Cancel(t.Context()), "cancelling a task that has ended does nothing")

		_, err = second.Task("unknown").Wait(t.Context())
		require.ErrorContains(t, err, `client: task "unknown": tasks/get: `)
		require.ErrorContains(t, err, "(code -32602)")
	})
}

func TestTasksAreCancelled(t *testing.T) {
	t.Parallel()
	onTeahouses(t, func(t *testing.T, target any, house *Teahouse) {
		c := dial(t, target, client.Tasks())
		task, err := client.Start(t.Context(), c, "spill", nil)
		require.NoError(t, err)
		if house != nil {
			<-house.spilling
		}
		require.NoError(t, task.Cancel(t.Context()))
		_, err = task.Wait(t.Context())
		require.ErrorIs(t, err, client.ErrTaskCancelled)
		if house == nil {
			return
		}
		require.Error(t, <-house.spilled)
		ctx, cancel := context.WithCancel(t.Context())
		_, err = client.Call[string](ctx, c, "spill", nil, client.OnProgress(func(*protocol.ProgressParams) { cancel() }))
		require.ErrorIs(t, err, context.Canceled)
		require.Error(t, <-house.spilled, "the end of the context cancels the task at the server")
	})
}
