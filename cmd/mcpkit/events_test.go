package main

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/events"
)

// A Ring is what the event bell_rang tells.
type Ring struct {
	Door int `json:"door"`
}

// EventTime returns a time that does not change.
func (Ring) EventTime() time.Time { return time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC) }

func TestEventsAreListedAndShown(t *testing.T) {
	rang := events.NewType("bell_rang", "Somebody rang.\nMore.", func(_ context.Context, r, want Ring) bool { return r == want })
	url, _ := serve(t, bare, &Lab{}, events.New(rang))
	out, _ := said(t, exitOK, "events", url)
	require.Equal(t, "poll,push,webhook bell_rang                Somebody rang.\n", out)
	out, _ = said(t, exitOK, "inspect", url)
	require.Contains(t, out, "extends MCP by io.modelcontextprotocol/events, beta\n")

	for output, want := range map[string]string{
		"text": `2026-11-28T09:00:00Z {"door":2}`,
		"json": `"timestamp": "2026-11-28T09:00:00Z"`,
	} {
		ctx, cancel := context.WithCancel(t.Context())
		var ringing sync.WaitGroup
		ringing.Go(func() { // until the command has ended
			for ctx.Err() == nil {
				_, _ = rang.Emit(ctx, Ring{1}), rang.Emit(ctx, Ring{2})
			}
		})
		var errs bytes.Buffer
		shown := &watcher{text: want, seen: cancel}
		args := []string{"events", url, "bell_rang", "door=2", "--output", output}
		require.Equal(t, exitInterrupted, run(ctx, args, streams{in: strings.NewReader(""), out: shown, err: &errs}), errs.String())
		require.NotContains(t, shown.String(), `"door":1`)
		ringing.Wait()
	}
	_, errs := said(t, exitConnection, "events", url, "doors")
	require.Contains(t, errs, `the server offers no stream and no polls of "doors"`)
}
