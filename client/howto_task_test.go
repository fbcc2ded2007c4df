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

func TestHowToCallToolsThatRunAsTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, file := t.Context(), filepath.Join(t.TempDir(), "id")
		f := newTaskFake(task("complete", "working", `"statusMessage":"boiling"`), completed())
		var shown []string
		out, err := brew(ctx, "http://tasks.example.com/mcp", func(text string) { shown = append(shown, text) }, httpClient(f))
		require.NoError(t, err)
		require.Equal(t, "tea", out)
		require.Equal(t, []string{"boiling"}, shown)
		require.NoError(t, os.WriteFile(file, []byte("t1"), 0o600))
		out, err = finishBrewing(ctx, dial(t, "http://tasks.example.com/mcp", client.Tasks(), httpClient(f)), file)
		require.NoError(t, err)
		require.Equal(t, "tea", out)
	})
}
