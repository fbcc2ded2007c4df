package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
)

func tasksCommand(std streams) *cobra.Command {
	return remoteCommand(std, &cobra.Command{
		Use:   "tasks SERVER ID [wait | answer | cancel]",
		Short: "Show a task that a call has become, or act on it",
		Long: `Shows the task with the ID, which mcpkit call --start prints: its status, its
questions, and its result or error.

wait follows the task to its end, asks its questions, and writes its result like
mcpkit call. An interrupt does not cancel it. answer asks its questions and does
not wait. cancel asks the server to cancel it.

Servers do not list tasks. Over HTTP, the task belongs to the caller: send the
credentials of the call.`,
	}, runTasks, answerFlags, saveFlag)
}

// runTasks is the command tasks.
func runTasks(ctx context.Context, r *remote) error {
	acts := map[string]func(context.Context, *client.Task) error{
		"": r.showTask, "wait": r.awaitTask, "answer": r.answerTask, "cancel": r.cancelTask,
	}
	word := ""
	switch {
	case len(r.rest) == 0:
		return r.usage("the ID of the task is missing; mcpkit call --start %s TOOL prints it", r.target)
	case len(r.rest) > 1:
		word = r.rest[1]
	}
	act := acts[word]
	if act == nil || len(r.rest) > 2 {
		return r.usage("after the ID, write wait, answer, cancel or nothing")
	}
	r.opts = append(r.opts, client.Tasks())
	return r.with(ctx, func(c *client.Client) error { return act(ctx, c.Task(r.rest[0])) })
}

// start calls a tool, and writes the ID of the task if the call has become one. Then the result is
// nil.
func (r *remote) start(ctx context.Context, c *client.Client, name string, in any, opts []client.CallOption) (*protocol.CallToolResult, error) {
	task, err := client.Start(ctx, c, name, in, opts...)
	switch {
	case err != nil:
		return nil, err
	case task.ID() == "":
		return task.Wait(ctx)
	}
	return nil, r.write(map[string]string{"taskId": task.ID()}, func() { r.out.printf("%s\n", clean(task.ID())) })
}

func (r *remote) showTask(ctx context.Context, task *client.Task) error {
	d, err := task.Get(ctx)
	if err != nil {
		return err
	}
	return r.writeTask(d)
}

func (r *remote) awaitTask(ctx context.Context, task *client.Task) error {
	res, err := task.Wait(ctx, r.callOptions()...)
	if res == nil || err != nil && !r.asJSON {
		return err
	}
	return errors.Join(err, r.write(res, func() { r.writeToolResult(res) }, res.Content...))
}

func (r *remote) answerTask(ctx context.Context, task *client.Task) error {
	d, err := task.Respond(ctx)
	switch {
	case err != nil:
		return err
	case len(d.InputRequests) == 0:
		r.say("the task asks nothing")
	}
	return r.showTask(ctx, task)
}

func (r *remote) cancelTask(ctx context.Context, task *client.Task) error {
	if err := task.Cancel(ctx); err != nil {
		return err
	}
	return r.showTask(ctx, task)
}

// writeTask writes the state of a task.
func (r *remote) writeTask(d *protocol.DetailedTask) error {
	res := new(protocol.CallToolResult)
	if d.Result == nil {
		res = nil
	} else if err := jsonx.Unmarshal(d.Result, res); err != nil {
		return fmt.Errorf("the result of the task is not one of a tool: %w", err)
	}
	return r.write(d, func() {
		line := func(name, text string) {
			if text != "" {
				r.out.line(r.out.paint(faint, fmt.Sprintf("%-9s", name)), text)
			}
		}
		line("status", r.out.paint(bold, clean(string(d.Status))))
		line("message", cleanLine(d.StatusMessage))
		line("created", moment(d.CreatedAt))
		line("updated", moment(d.LastUpdatedAt))
		for _, key := range slices.Sorted(maps.Keys(d.InputRequests)) {
			q := d.InputRequests[key]
			text := jsonx.String(jsonx.Member(q.Params, "message"))
			if text == "" {
				text = q.Method
			}
			line("question", cleanLine(text))
		}
		if d.Error != nil {
			line("error", r.out.paint(red, clean(d.Error.Error())))
		}
		if res != nil {
			r.writeToolResult(res)
		}
	})
}

// moment returns a time for people, "" if it is not known.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
