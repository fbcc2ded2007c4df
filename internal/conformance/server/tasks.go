package main

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// Jobs has the tools that the suite calls as tasks.
type Jobs struct {
	_ struct {
		Greet            mcpkit.Tool
		SlowCompute      mcpkit.Tool `task:"optional"`
		FailingJob       mcpkit.Tool `task:"required"`
		ProtocolErrorJob mcpkit.Tool `task:"optional"`
		ConfirmDelete    mcpkit.Tool `task:"optional,durable"`
		MultiInput       mcpkit.Tool `task:"optional,durable"`
		TestToolWithTask mcpkit.Tool `task:"optional"`
	}
}

// Greet greets somebody in the request.
func (*Jobs) Greet(in applicant) string { return "Hello, " + in.Name + "!" }

type computation struct {
	Seconds float64 `json:"seconds,omitempty"`
	Label   string  `json:"label,omitempty"`
}

// SlowCompute takes some seconds.
func (*Jobs) SlowCompute(ctx context.Context, in computation) (string, error) {
	select {
	case <-time.After(time.Duration(in.Seconds * float64(time.Second))):
		return "computed " + in.Label, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// FailingJob ends with a tool error.
func (*Jobs) FailingJob() error { return mcpkit.Errorf("the job failed") }

// ProtocolErrorJob ends with a protocol error.
func (*Jobs) ProtocolErrorJob() error {
	return jsonrpc.Errorf(jsonrpc.CodeInternalError, "the job broke")
}

type deletion struct {
	Filename string `json:"filename,omitempty"`
}

// ConfirmDelete asks before it deletes a file.
func (*Jobs) ConfirmDelete(ctx context.Context, in deletion) (string, error) {
	ok, err := mcpkit.Confirm(ctx, "Delete "+in.Filename+"?")
	if err != nil {
		return "", err
	}
	if !ok {
		return "kept " + in.Filename, nil
	}
	return "deleted " + in.Filename, nil
}

type applicant struct {
	Name string `json:"name"`
}

type approval struct {
	Confirm bool `json:"confirm"`
}

// MultiInput asks two questions at once.
func (*Jobs) MultiInput(ctx context.Context) (string, error) {
	var who applicant
	var ok approval
	err := mcpkit.Ask(ctx, func(ctx context.Context) (err error) {
		who, err = mcpkit.Elicit[applicant](ctx, "What is your name?", mcpkit.Key("name"))
		return err
	}, func(ctx context.Context) (err error) {
		ok, err = mcpkit.Elicit[approval](ctx, "Do you agree?", mcpkit.Key("confirm"))
		return err
	})
	return fmt.Sprintf("%s agreed: %v", who.Name, ok.Confirm), err
}

// TestToolWithTask greets the user, whom askFirst may have asked in the request.
func (*Jobs) TestToolWithTask(ctx context.Context) (string, error) {
	who, err := nameOf(ctx)
	return "Hello, " + who.Name + "!", err
}

func nameOf(ctx context.Context) (applicant, error) {
	return mcpkit.Elicit[applicant](ctx, "What is your name?", mcpkit.Key("user_name"))
}

// askFirst is middleware that asks before the call becomes a task, which then has the answer. In legacy
// versions only the method asks, since there each question goes to the client.
func askFirst(next mcpkit.Handler) mcpkit.Handler {
	return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
		if call.Version().Modern() && call.Method() == protocol.MethodToolsCall && call.Name() == "test_tool_with_task" {
			if _, err := nameOf(ctx); err != nil {
				return nil, err
			}
		}
		return next(ctx, call)
	}
}
