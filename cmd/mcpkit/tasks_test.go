package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// A Garage repairs cars, which takes long.
type Garage struct {
	_ struct {
		Repair mcpkit.Tool `task:"optional" desc:"Repairs a car."`
		Scrap  mcpkit.Tool `task:"required" desc:"Scraps a car."`
		Wash   mcpkit.Tool `desc:"Washes a car."`
		Paint  mcpkit.Tool `hidden:"true" desc:"Paints a car."`
	}
}

func (*Garage) Repair(ctx context.Context, call *mcpkit.Call) (string, error) {
	call.Progress(1, 2, "lifting")
	ok, err := mcpkit.Confirm(ctx, "Change the oil?")
	if err != nil || !ok {
		return "", mcpkit.Errorf("not repaired")
	}
	return "repaired", nil
}

func (*Garage) Paint(ctx context.Context) error {
	_, err := mcpkit.Confirm(ctx, "In red?")
	return err
}

func (*Garage) Scrap() string { return "scrapped" }
func (*Garage) Wash() string  { return "washed" }

// serveGarage serves tasks over HTTP and returns the URL.
func serveGarage(t *testing.T) string {
	t.Helper()
	url, _ := serve(t, bare, &Garage{}, tasks.New(tasks.PollInterval(10*time.Millisecond)))
	return url
}

func TestCallFollowsTasks(t *testing.T) {
	url := serveGarage(t)
	out, errs := said(t, exitOK, "call", "--yes", url, "repair")
	require.Equal(t, "repaired\n", out)
	require.Contains(t, errs, "lifting")
	out, _ = said(t, exitOK, "call", url, "scrap")
	require.Equal(t, "scrapped\n", out)
	out, _ = said(t, exitOK, "call", "--start", url, "wash")
	require.Equal(t, "washed\n", out, "a tool that does not run as a task")
	_, errs = said(t, exitFault, "call", "--start", url, "paint")
	require.Contains(t, errs, `the server asks "In red?" before the call is a task; run the command in a terminal, or write --answer name=value or --yes`)
	_, errs = said(t, exitProtocol, "call", "--protocol-version", "2025-11-25", url, "scrap")
	require.Contains(t, errs, "the tool runs only as a task of version 2025-11-25, which this client does not support")
}

func TestListMarksToolsThatRunOnlyAsTasks(t *testing.T) {
	url := serveGarage(t)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		out, _ := said(t, exitOK, "list", "--protocol-version", version, url)
		require.Equal(t, "tool      repair                   Repairs a car.\n"+
			"task tool scrap                    Scraps a car.\n"+
			"tool      wash                     Washes a car.\n", out)
	}
}

func TestTasksAreShownAnsweredAndCancelled(t *testing.T) {
	url := serveGarage(t)
	start := func() string {
		out, _ := said(t, exitOK, "call", "--start", url, "repair")
		return strings.TrimSpace(out)
	}
	id := start()
	out := ""
	for !strings.Contains(out, "input_required") { // soon: the method asks at once
		<-time.After(50 * time.Millisecond) // the server limits how often it is asked
		out, _ = said(t, exitOK, "tasks", url, id)
	}
	require.Contains(t, out, "question  Change the oil?\n")
	_, errs := said(t, exitOK, "tasks", "--yes", url, id, "answer")
	require.NotContains(t, errs, "asks nothing")
	out, _ = said(t, exitOK, "tasks", url, id, "wait")
	require.Equal(t, "repaired\n", out)
	out, errs = said(t, exitOK, "tasks", "-o", "json", url, id, "answer")
	require.Contains(t, errs, "mcpkit tasks: the task asks nothing\n")
	var state struct{ Status string }
	require.NoError(t, json.Unmarshal([]byte(out), &state))
	require.Equal(t, "completed", state.Status)
	out, _ = said(t, exitOK, "tasks", url, id)
	require.Contains(t, out, "\nrepaired\n")

	id = start()
	said(t, exitOK, "tasks", url, id, "cancel")
	_, errs = said(t, exitFault, "tasks", url, id, "wait")
	require.Contains(t, errs, "the task was cancelled")

	_, errs = said(t, exitProtocol, "tasks", url, "unknown")
	require.Contains(t, errs, `client: task "unknown": tasks/get: `)
	_, errs = said(t, exitUsage, "tasks", url)
	require.Equal(t, "mcpkit tasks: the ID of the task is missing; mcpkit call --start "+url+" TOOL prints it\n", errs)
	_, errs = said(t, exitUsage, "tasks", url, id, "stop")
	require.Equal(t, "mcpkit tasks: after the ID, write wait, answer, cancel or nothing\n", errs)
}
