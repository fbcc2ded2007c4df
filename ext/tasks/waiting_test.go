package tasks_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/transport"
)

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Anybody can ask for the results of tasks that do not exist, and leave without waiting for the
// results of others.
func TestNothingIsKeptOfClientsThatWaitedForATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t)
		p := &peer{t: t, srv: o.srv}
		p.session = transport.NewSession("s1", p)
		p.result("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`)
		id := o.modern().start("work", `{"seconds":3600}`)
		for name, ask := range map[string]func(n int){
			"tasks that do not exist": func(n int) {
				p.fails("tasks/result", fmt.Sprintf(`{"taskId":"%d%s"}`, n, strings.Repeat("x", 1000)))
			},
			"a task that runs": func(int) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				p.rpc(ctx, "tasks/result", fmt.Sprintf(`{"taskId":%q}`, id))
			},
		} {
			const calls = 2000
			ask(0)
			before := heap()
			for n := range calls {
				ask(n)
			}
			require.Less(t, heap()-before, int64(calls*60), name)
		}
	})
}
