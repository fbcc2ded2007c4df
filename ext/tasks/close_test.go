package tasks_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// heldStore blocks Create.
type heldStore struct {
	tasks.Store
	release chan struct{}
}

func (s heldStore) Create(ctx context.Context, r *tasks.Record, limits tasks.Limits) error {
	<-s.release
	return s.Store.Create(ctx, r, limits)
}

func TestCloseWaitsForTasksThatAreBeingCreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := heldStore{&tasks.MemoryStore{}, make(chan struct{})}
		o := openWith(t, tasks.New(tasks.StoreIn(store)))
		var all sync.WaitGroup
		closed := make(chan struct{})
		o.srv.UseFor(mcpkit.OnTool("work"), func(next mcpkit.Handler) mcpkit.Handler {
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
		close(store.release)
		all.Wait()
		synctest.Wait()
	})
}
