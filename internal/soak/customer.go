package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

const (
	patience        = time.Minute     // a call, with its repeats
	taskPatience    = 3 * time.Minute // a task, which waits for 30 s whenever its replica is killed
	undisturbedRuns = 2               // of a task: until its question, and with the answer
)

// A customer is a client of one version that makes one call after the other.
type customer struct {
	name    string
	version protocol.Version
	tasks   bool // it runs tasks, instead of calls
	proxy   *proxy
	books   *ledger
	report  *report

	client  *client.Client
	ended   chan struct{} // closed when listen has returned
	changes atomic.Int64  // that it was notified of
	last    int           // the ID of the last order or task
}

// Elicit answers the questions of the desk.
func (c *customer) Elicit(_ context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	content := `{"confirm":true}`
	if p.Message == "Which colour?" {
		content = `{"name":"red"}`
	}
	return &protocol.ElicitResult{Action: protocol.ElicitAccept, Content: []byte(content)}, nil
}

func (c *customer) connect(ctx context.Context, url string) (err error) {
	if c.client, err = client.Dial(ctx, url+"/mcp", client.Version(c.version), client.Handlers(c), client.Tasks(),
		client.Header(headerClient, c.name), client.Logger(slog.New(slog.DiscardHandler))); err != nil {
		return err
	}
	for _, err := range c.client.Tools(ctx) { // the client learns their hints
		if err != nil {
			return err
		}
	}
	sub, err := c.client.Subscribe(ctx, boardURI)
	if err != nil {
		return err
	}
	c.ended = make(chan struct{})
	// Ends with the client.
	go func() {
		defer close(c.ended)
		c.listen(ctx, sub)
	}()
	return nil
}

// listen counts changes until the client is closed. A client gives its subscription up after ten
// streams in a row that replicas took with them within a second; the customer then subscribes again.
func (c *customer) listen(ctx context.Context, sub *client.Subscription) {
	var err error
	for ctx.Err() == nil && !errors.Is(err, transport.ErrClosed) {
		if err == nil {
			err = c.hear(ctx, sub)
		} else if sub, err = c.client.Subscribe(ctx, boardURI); err == nil {
			c.report.add(&c.report.Renewed)
			c.changes.Add(1) // it may have missed some
		}
	}
}

// hear counts the changes of one subscription, and returns why it ended.
func (c *customer) hear(ctx context.Context, sub *client.Subscription) (ended error) {
	for _, err := range sub.All(ctx) {
		if ended = err; err == nil {
			c.changes.Add(1)
			c.report.add(&c.report.Changes)
		}
	}
	return ended
}

func (c *customer) close() {
	_ = c.client.Close()
	<-c.ended
}

// run makes calls until stop is closed.
func (c *customer) run(ctx context.Context, stop <-chan struct{}) {
	for ctx.Err() == nil {
		select {
		case <-stop:
			return
		case <-time.After(rand.N(20 * time.Millisecond)):
		}
		c.last++
		id := fmt.Sprintf("%s-%d", c.name, c.last)
		switch {
		case c.tasks:
			c.deliver(ctx, id)
		case c.last%8 == 0:
			c.list(ctx)
		default:
			c.call(ctx, id)
		}
	}
}

func (c *customer) callTool(ctx context.Context, tool, id string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var args any
	if id != "" {
		args = map[string]string{"id": id}
	}
	return client.Call[string](ctx, c.client, tool, args)
}

// call makes one call, and checks its result and effect.
func (c *customer) call(ctx context.Context, id string) {
	calls := []struct{ tool, id, want, effect string }{
		{"count", "", "counted", ""},
		{"order", id, "ordered " + id, "order " + id},
		{"pin", id, "pinned " + id, "note " + id},
		{"colour", "", "red", ""},
	}
	if c.version < protocol.V20250618 {
		calls = calls[:3] // there are no questions
	}
	k := calls[rand.IntN(len(calls))]
	begun := time.Now()
	text, err := c.callTool(ctx, k.tool, k.id)
	switch {
	case ctx.Err() != nil:
	case err != nil && k.tool == "order" && c.wasInFlight(begun, err):
		c.report.add(&c.report.InFlight)
	case err != nil || text != k.want:
		c.report.fail("%s: %s returned %q after %s: %v", c.name, k.tool, text, time.Since(begun), err)
	case k.effect != "" && c.books.count(k.effect) == 0:
		c.report.fail("%s: %s succeeded without its effect", c.name, k.effect)
	default:
		c.report.add(&c.report.Calls)
		if k.effect != "" {
			c.report.add(&c.report.Orders)
		}
	}
}

// list lists the tools, each page from another replica.
func (c *customer) list(ctx context.Context) {
	var names []string
	for tool, err := range c.client.Tools(ctx, client.Fresh()) {
		if err != nil {
			if ctx.Err() == nil {
				c.report.fail("%s: tools/list: %v", c.name, err)
			}
			return
		}
		names = append(names, tool.Name)
	}
	if got := strings.Join(names, " "); got != "colour count deliver order pin ring" {
		c.report.fail("%s: the tools are %q", c.name, got)
	}
	c.report.add(&c.report.Calls)
}

// wasInFlight reports whether a request that began then, and failed with err, was in flight at a
// replica that was killed. If the stream of the request was cut before, another replica says so.
func (c *customer) wasInFlight(begun time.Time, err error) bool {
	return c.proxy.lostSince(c.name, begun) || strings.Contains(err.Error(), "the process that ran the request has ended")
}

// deliver starts a task, answers its question, waits for its end, and checks its effects.
func (c *customer) deliver(ctx context.Context, id string) {
	begun := time.Now()
	wait, err := c.startTask(ctx, id)
	if err != nil {
		switch {
		case ctx.Err() != nil:
		case c.wasInFlight(begun, err):
			c.report.add(&c.report.InFlight)
		default:
			c.report.fail("%s: starting a task: %v", c.name, err)
		}
		return
	}
	bounded, cancel := context.WithTimeout(ctx, taskPatience)
	defer cancel()
	text, err := wait(bounded)
	switch {
	case ctx.Err() != nil:
	case err != nil && strings.Contains(err.Error(), "the process ended 3 times"):
		c.report.add(&c.report.GivenUp)
	case err != nil || text != "delivered "+id:
		c.report.fail("%s: task %s returned %q after %s: %v", c.name, id, text, time.Since(begun), err)
	case c.books.count("packed "+id) == 0 || c.books.count("sent "+id) == 0:
		c.report.fail("%s: task %s was completed without its effects", c.name, id)
	default:
		c.report.add(&c.report.Tasks)
		if c.books.count("run "+id) > undisturbedRuns {
			c.report.add(&c.report.Moved)
		}
	}
}

// startTask starts a task. The function waits for its result.
func (c *customer) startTask(ctx context.Context, id string) (wait func(context.Context) (string, error), err error) {
	args := map[string]string{"id": id}
	if c.version.Modern() {
		task, err := client.Start(ctx, c.client, "deliver", args)
		if err == nil && task.ID() == "" {
			err = errors.New("the call did not become a task")
		}
		return func(ctx context.Context) (string, error) { return client.Wait[string](ctx, task) }, err
	}
	// The client has no methods for the tasks of 2025-11-25.
	var made struct {
		Task protocol.Task `json:"task"`
	}
	params := map[string]any{"name": "deliver", "arguments": args, "task": struct{}{}}
	err = c.client.Request(ctx, protocol.MethodToolsCall, params, &made)
	return func(ctx context.Context) (string, error) { return c.legacyResult(ctx, made.Task.TaskID) }, err
}

// legacyResult waits for the result of a task of 2025-11-25. The questions of the task come on the
// stream of this request. If its replica dies, the client asks again.
func (c *customer) legacyResult(ctx context.Context, id string) (string, error) {
	for {
		begun := time.Now()
		var result protocol.CallToolResult
		// A task whose replica was killed waits for as long as the client waits for a response by default.
		err := c.client.Request(ctx, protocol.MethodTasksResult, protocol.TaskParams{TaskID: id}, &result,
			client.Timeout(taskPatience))
		switch {
		case err == nil && len(result.Content) == 1:
			text, ok := result.Content[0].(*protocol.TextContent)
			if ok && !result.IsError {
				return text.Text, nil
			}
			return "", fmt.Errorf("the result of the task is %+v", result)
		case err == nil:
			return "", errors.New("the result of the task has no content")
		case ctx.Err() != nil || !c.wasInFlight(begun, err):
			return "", err
		}
	}
}
