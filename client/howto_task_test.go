package client_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// docs:begin task-call

// brew calls a tool that may take long.
func brew(ctx context.Context, target any, show func(text string), opts ...client.DialOption) (string, error) {
	c, err := client.Dial(ctx, target, append(opts, client.Tasks())...)
	if err != nil {
		return "", err
	}
	defer c.Close()
	return client.Call[string](ctx, c, "brew", nil,
		client.OnProgress(func(p *protocol.ProgressParams) { show(p.Message) }))
}

// docs:end task-call

// startBrewing starts a task and writes its ID to a file.
func startBrewing(ctx context.Context, c *client.Client, file string) error {
	task, err := client.Start(ctx, c, "brew", nil)
	if err != nil {
		return err
	}
	if task.ID() == "" { // the server ran the tool at once
		_, err = task.Wait(ctx)
		return err
	}
	return os.WriteFile(file, []byte(task.ID()), 0o600)
}

// docs:begin task-resume

// finishBrewing waits for the task of the file, in another process perhaps.
func finishBrewing(ctx context.Context, c *client.Client, file string) (string, error) {
	id, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	return client.Wait[string](ctx, c.Task(string(id)))
}

// docs:end task-resume

// answerLater looks at a task without waiting for it, and answers its questions.
func answerLater(ctx context.Context, task *client.Task, answer func(*protocol.InputRequest) any) (done bool, err error) {
	state, err := task.Get(ctx)
	if err != nil {
		return false, err
	}
	for key, question := range state.InputRequests {
		if err := task.Answer(ctx, key, answer(&question)); err != nil {
			return false, err
		}
	}
	return state.Status.Terminal(), nil
}

func TestHowToCallToolsThatRunAsTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, file := t.Context(), filepath.Join(t.TempDir(), "id")
		working := task("complete", "working", `"statusMessage":"boiling"`)
		f := newTaskFake(working, completed(), working, task("complete", "input_required", question("kind")), completed(), completed(), task("complete", "cancelled", ""))
		var shown []string
		out, err := brew(ctx, "http://tasks.example.com/mcp", func(text string) { shown = append(shown, text) }, httpClient(f))
		require.NoError(t, err)
		require.Equal(t, "tea", out)
		require.Equal(t, []string{"boiling"}, shown)

		c := dial(t, "http://tasks.example.com/mcp", client.Tasks(), httpClient(f))
		require.NoError(t, startBrewing(ctx, c, file))
		for range 2 {
			done, err := answerLater(ctx, c.Task("t1"), func(*protocol.InputRequest) any { return &protocol.ElicitResult{Action: protocol.ElicitDecline} })
			require.NoError(t, err)
			require.False(t, done)
		}
		require.Len(t, f.all("tasks/update"), 1)
		out, err = finishBrewing(ctx, c, file)
		require.NoError(t, err)
		require.Equal(t, "tea", out)
		done, err := answerLater(ctx, c.Task("t1"), nil)
		require.NoError(t, err)
		require.True(t, done)
		_, err = c.Task("t1").Wait(ctx)
		require.ErrorIs(t, err, client.ErrTaskCancelled)
	})
}
