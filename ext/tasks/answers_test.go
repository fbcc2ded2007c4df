package tasks_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// lateStore acknowledges updates after readers have seen them, like a store across a network.
type lateStore struct{ tasks.Store }

func (s lateStore) Update(ctx context.Context, r *tasks.Record) error {
	err := s.Store.Update(ctx, r)
	if r.State == tasks.Asleep {
		time.Sleep(3 * time.Second)
	}
	return err
}

func TestAnswersRunATaskWhoseQuestionIsStillBeingStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openWith(t, tasks.New(tasks.StoreIn(lateStore{&tasks.MemoryStore{}})), mcpkit.StateKeys(stateKey))
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
		o := openWith(t, tasks.New(tasks.StoreIn(lateStore{&tasks.MemoryStore{}})), mcpkit.StateKeys(stateKey))
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
