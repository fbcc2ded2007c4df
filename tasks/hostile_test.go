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
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/tasks"
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
