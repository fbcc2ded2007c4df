package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// traveller answers the questions of Book.
type traveller struct{ asked []string }

func (u *traveller) Elicit(_ context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	u.asked = append(u.asked, p.Message)
	content := `{"confirm":true}`
	if strings.HasPrefix(p.Message, "When") {
		content = `{"from":"2026-12-01"}`
	}
	return &protocol.ElicitResult{Action: protocol.ElicitAccept, Content: json.RawMessage(content)}, nil
}

var inOslo = map[string]string{"city": "Oslo"}

func bookAtOnce(t *testing.T, c *client.Client) string {
	text, err := client.Call[string](t.Context(), c, "book", inOslo)
	require.NoError(t, err)
	return text
}

// bookAsTask starts a task and then follows it.
func bookAsTask(t *testing.T, c *client.Client) string {
	task, err := client.Start(t.Context(), c, "book", inOslo)
	require.NoError(t, err)
	require.NotEmpty(t, task.ID(), "it is a task")
	text, err := client.Wait[string](t.Context(), c.Task(task.ID()))
	require.NoError(t, err)
	return text
}

// bookAsLegacyTask does so in version 2025-11-25.
func bookAsLegacyTask(t *testing.T, c *client.Client) string {
	var created struct {
		Task protocol.Task `json:"task"`
	}
	require.NoError(t, c.Request(t.Context(), protocol.MethodToolsCall, map[string]any{"name": "book", "arguments": inOslo, "task": map[string]any{}}, &created))
	require.NotEmpty(t, created.Task.TaskID, "it is a task")
	var result protocol.CallToolResult
	require.NoError(t, c.Request(t.Context(), protocol.MethodTasksResult, map[string]any{"taskId": created.Task.TaskID}, &result))
	require.Len(t, result.Content, 1)
	return result.Content[0].(*protocol.TextContent).Text
}

func TestBookAsCallAndAsTask(t *testing.T) {
	for _, test := range []struct {
		name    string
		version protocol.Version
		book    func(*testing.T, *client.Client) string
	}{
		{"call", protocol.V20251125, bookAtOnce},
		{"task", protocol.V20251125, bookAsLegacyTask},
		{"call without tasks", protocol.V20260728, bookAtOnce},
		{"call that becomes a task", protocol.V20260728, bookAtOnce},
		{"task", protocol.V20260728, bookAsTask},
	} {
		for _, via := range []string{"stdio", "HTTP"} {
			t.Run(fmt.Sprintf("%s over %s, %s", test.version, via, test.name), func(t *testing.T) {
				t.Parallel()
				var target any = client.Command(os.Args[0], asProgram)
				if via == "HTTP" {
					target = startHTTP(t)
				}
				u := &traveller{}
				opts := []client.DialOption{client.Version(test.version), client.Handlers(u)}
				if !strings.Contains(test.name, "without") {
					opts = append(opts, client.Tasks())
				}
				c, err := client.Dial(t.Context(), target, opts...)
				require.NoError(t, err)
				defer c.Close()
				require.Equal(t, "booked room 1 in Oslo from 2026-12-01", test.book(t, c))
				require.Equal(t, []string{"When do you want to go to Oslo?", "Pay 240 euros for room 1 in Oslo from 2026-12-01?"}, u.asked)
				ledger, err := client.Call[Ledger](t.Context(), c, "ledger", nil)
				require.NoError(t, err)
				require.Equal(t, Ledger{Holds: 1, Paid: []string{"room 1 in Oslo from 2026-12-01"}}, ledger)
			})
		}
	}
}
