package tasks_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

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
