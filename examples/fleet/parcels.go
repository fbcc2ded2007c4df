package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// effects are the lines that a delivery writes once. Each of its runs also writes the line "run".
var effects = []string{"packed", "sent"}

const (
	undisturbedRuns = 2 // of a delivery: until its question, and with the answer
	resultTries     = 20
)

// deliver starts a task, answers its question, and waits for its end.
func (c *customer) deliver(ctx context.Context) {
	id := fmt.Sprintf("%s-%d", c.name, len(c.parcels)+1)
	c.parcels = append(c.parcels, id)
	k := kind{tool: "deliver", args: map[string]string{"id": id}}
	begun := time.Now()
	wait, err := c.startTask(ctx, k)
	if ctx.Err() != nil {
		return
	}
	c.r.add(func() { c.r.Calls++ })
	switch {
	case err != nil && c.wasInFlight(begun, err):
		c.r.add(func() { c.r.InFlight++ })
		return
	case err != nil:
		c.fail(k, err)
		return
	}
	text, err := wait(ctx)
	if ctx.Err() != nil {
		return
	}
	runs := c.shop.books.count("run", id)
	c.r.add(func() {
		switch {
		case err == nil && text == "delivered "+id:
			c.r.Tasks++
			if runs > undisturbedRuns {
				c.r.Continued++
			}
			for _, effect := range effects {
				if c.shop.books.count(effect, id) == 0 {
					c.r.Undone++
				}
			}
		case err != nil && strings.Contains(err.Error(), "the process ended 3 times"):
			c.r.GivenUp++
		default:
			c.r.LostTasks++
			c.r.Failed = append(c.r.Failed, fmt.Sprintf("%s: the task of %s, which ran %d times, returned %q after %s: %v", c.name, id, runs, text, time.Since(begun).Round(time.Millisecond), err))
		}
	})
}

// startTask starts a task. The function waits for its result.
func (c *customer) startTask(ctx context.Context, k kind) (wait func(context.Context) (string, error), err error) {
	if c.version.Modern() {
		task, err := client.Start(ctx, c.client, k.tool, k.args)
		if err != nil {
			return nil, err
		}
		if task.ID() == "" {
			return nil, errors.New("the call did not become a task")
		}
		return func(ctx context.Context) (string, error) { return client.Wait[string](ctx, task) }, nil
	}
	var made struct {
		Task protocol.Task `json:"task"`
	}
	params := map[string]any{"name": k.tool, "arguments": k.args, "task": struct{}{}}
	if err := c.client.Request(ctx, protocol.MethodToolsCall, params, &made); err != nil {
		return nil, err
	}
	return func(ctx context.Context) (string, error) { return c.legacyResult(ctx, made.Task.TaskID) }, nil
}

// legacyResult waits for the result of a task of 2025-11-25, whose client answers the questions of
// the task on the stream of this request. If the replica dies, the client asks again.
func (c *customer) legacyResult(ctx context.Context, id string) (string, error) {
	for try := 1; ; try++ {
		begun := time.Now()
		var result protocol.CallToolResult
		err := c.client.Request(ctx, protocol.MethodTasksResult, protocol.TaskParams{TaskID: id}, &result)
		switch {
		case err == nil && len(result.Content) == 1:
			if text, ok := result.Content[0].(*protocol.TextContent); ok && !result.IsError {
				return text.Text, nil
			}
			return "", fmt.Errorf("the result of the task is %+v", result)
		case err == nil:
			return "", errors.New("the result of the task has no content")
		case try == resultTries || ctx.Err() != nil || !c.wasInFlight(begun, err):
			return "", err
		}
	}
}

// commonTools are those that both versions of the program have.
var commonTools = []string{"colour", "count", "deliver", "describe", "order", "pin", "where"}

// list lists the tools, each page from another replica. It returns false if the connection is over.
func (c *customer) list(ctx context.Context) bool {
	k := kind{tool: "tools/list"}
	begun := time.Now()
	var names []string
	for tool, err := range c.client.Tools(ctx, client.Fresh()) {
		switch {
		case ctx.Err() != nil:
			return true
		case err != nil && c.overSSE() && (c.shop.proxy.brokeSince(c.name, begun) || c.client.Ping(ctx) != nil):
			c.r.add(func() { c.r.InFlight++ })
			return c.client.Ping(ctx) == nil
		case err != nil:
			c.fail(k, err)
			return true
		}
		names = append(names, tool.Name)
	}
	c.r.add(func() { c.r.Calls++ })
	names = slices.DeleteFunc(names, func(name string) bool { return name == "hours" })
	if !slices.Equal(names, commonTools) {
		c.fail(k, fmt.Errorf("the tools are %q", names))
	}
	return true
}

// isUnknownTool reports whether a server does not have the tool.
func isUnknownTool(err error) bool {
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && refused.Code == jsonrpc.CodeInvalidParams && strings.Contains(refused.Message, "hours")
}
