package mcptest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/mcptest"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Kiln burns pots.
type Kiln struct {
	_ struct {
		Burn mcpkit.Tool `task:"optional"`
		Look mcpkit.Tool
	}
}

// Burn burns a pot if the user agrees.
func (*Kiln) Burn(ctx context.Context, call *mcpkit.Call) (string, error) {
	call.Progress(1, 2, "heating")
	if ok, err := mcpkit.Confirm(ctx, "Glaze it?"); err != nil || !ok {
		return "", mcpkit.Errorf("broken")
	}
	return "burned", nil
}

// Look looks at the pot.
func (*Kiln) Look() string { return "clay" }

func newKiln(t *testing.T) *mcptest.Server {
	return mcptest.New(t, &Kiln{}, tasks.New(tasks.PollInterval(10*time.Millisecond)))
}

// An owner can be asked.
type owner struct{}

func (owner) Elicit(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	return &protocol.ElicitResult{Action: protocol.ElicitCancel}, nil
}

// docs:begin tasks

func TestBurningIsATask(t *testing.T) {
	s := newKiln(t).Tasks()
	s.Answer("Glaze it?", true).Call("burn", nil).OK().AsTask().Text("burned")
	s.Answer("Glaze it?", false).Call("burn", nil).AsTask().Error("broken")
	s.Call("look", nil).OK().Text("clay")
}

func TestTheTaskOutlivesItsClient(t *testing.T) {
	s := newKiln(t)
	id := s.Tasks().Handlers(owner{}).Start("burn", nil).ID()
	later := s.Tasks().HTTP().Answer("Glaze it?", true)
	later.Await(later.Client().Task(id)).OK().Text("burned")
}

// docs:end tasks

func TestACallThatIsNotATaskFailsTheTest(t *testing.T) {
	require.Contains(t, failures(t, func(t testing.TB) {
		mcptest.New(t, &Kiln{}, tasks.New()).Tasks().Call("look", nil).AsTask()
	})[0], "want: a task\n got: a call that was not a task")
	require.Contains(t, failures(t, func(t testing.TB) {
		mcptest.New(t, &Kiln{}, tasks.New()).Tasks().Start("look", nil)
	})[0], "mcptest: start look: the server ran the tool in the call; give the tool the tag task")
}
