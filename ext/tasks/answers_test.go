package tasks_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol"
)

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
