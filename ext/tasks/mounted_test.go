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
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
)

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
