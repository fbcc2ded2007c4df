package tasks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/tasks"
	"github.com/mcpkit/mcpkit-go/transport"
)

func TestARefusedTaskGivesNoPlaceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, tasks.MaxRunning(1), tasks.MaxOpen(2)).modern()
		first, second := p.start("work", `{"seconds":5}`), p.start("work", `{"seconds":5}`)
		for range 3 {
			require.Contains(t, p.result("tools/call", `{"name":"work","arguments":{"seconds":5}}`), "the caller has 2 tasks that have not ended")
		}
		p.await(first, protocol.TaskCompleted)
		p.await(second, protocol.TaskCompleted)
	})
}

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
