package tasks

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// methods returns the methods of both protocol families.
func (e *engine) methods() []*mcpkit.Method {
	named := func(m *mcpkit.Method) *mcpkit.Method { return m.NameParam("taskId").Negotiated() }
	return []*mcpkit.Method{
		named(mcpkit.NewMethod(protocol.MethodTasksGet, e.handleGet)).Versions(protocol.V20251125, ""),
		named(mcpkit.NewMethod(protocol.MethodTasksCancel, e.handleCancel)).Versions(protocol.V20251125, ""),
		named(mcpkit.NewMethod(protocol.MethodTasksUpdate, e.handleUpdate)),
		mcpkit.NewMethod(protocol.MethodTasksResult, e.handleResult).Versions(protocol.V20251125, protocol.V20251125),
		mcpkit.NewMethod(protocol.MethodTasksList, e.handleList).Versions(protocol.V20251125, protocol.V20251125),
	}
}

// params are the params of all methods about one task.
type params struct {
	id        string
	responses json.RawMessage
	cursor    string
}

// UnmarshalJSON reads the members that this package knows.
func (p *params) UnmarshalJSON(text []byte) error {
	p.id = jsonx.String(jsonx.Member(text, "taskId"))
	p.cursor = jsonx.String(jsonx.Member(text, "cursor"))
	p.responses = append(json.RawMessage(nil), jsonx.Member(text, "inputResponses")...)
	return nil
}

// handleGet answers tasks/get.
func (e *engine) handleGet(ctx context.Context, p params) (mcpkit.Result, error) {
	call := mcpkit.CallFrom(ctx)
	t, err := e.find(ctx, call, p.id)
	if err != nil {
		return nil, err
	}
	if !call.Version().Modern() {
		return e.legacy(t), nil
	}
	return e.detailed(t), nil
}

// maxEchoed limits what an error repeats of an ID, in bytes.
const maxEchoed = 64

// notFound is the error for a task that does not exist, has expired, or belongs to another caller,
// and for a caller that has lost the scopes of the tool.
func notFound(id string) error {
	if len(id) > maxEchoed {
		id = id[:maxEchoed]
	}
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "there is no task %q", id)
}

// find returns a task of the caller.
func (e *engine) find(ctx context.Context, call *mcpkit.Call, id string) (*task, error) {
	t, err := e.load(ctx, id)
	switch {
	case errors.Is(err, errNotFound):
		return nil, notFound(id)
	case err != nil:
		return nil, err
	case !e.admits(call, t):
		return nil, notFound(id)
	}
	return t, nil
}

// admits reports whether the caller made the task, and may still call its tool.
func (e *engine) admits(call *mcpkit.Call, t *task) bool {
	p := call.Principal()
	return t.Owner == ownerOf(p) && t.Run.Principal.Key() == p.Key() && e.runner.Permits(call, t.Run.Tool)
}

// wire returns the task as clients of 2026-07-28 see it.
func (e *engine) wire(t *task) protocol.Task {
	ttl, interval := t.Expires.Sub(t.Created).Milliseconds(), e.interval.Milliseconds()
	w := protocol.Task{
		TaskID: t.ID, Status: t.Status, StatusMessage: t.Message, CreatedAt: t.Created.UTC(), LastUpdatedAt: t.Updated,
		TTLMs: &ttl, PollIntervalMs: &interval,
	}
	if t.Status == protocol.TaskWorking {
		if message, at := e.progressOf(t.ID); message != "" {
			w.StatusMessage, w.LastUpdatedAt = message, at
		}
	}
	return w
}

// detailed returns the task with its result, error or questions.
func (e *engine) detailed(t *task) *protocol.DetailedTask {
	d := &protocol.DetailedTask{Task: e.wire(t)}
	switch t.Status {
	case protocol.TaskInputRequired:
		d.InputRequests = t.Run.Journal.Questions()
	case protocol.TaskCompleted:
		d.Result = t.Result
	case protocol.TaskFailed:
		d.Error = t.Error
	}
	return d
}

// acknowledge is the result of methods that change a task.
func acknowledge() (mcpkit.Result, error) { return struct{}{}, nil }

// handleUpdate answers tasks/update.
func (e *engine) handleUpdate(ctx context.Context, p params) (mcpkit.Result, error) {
	if err := e.answer(ctx, mcpkit.CallFrom(ctx), p.id, p.responses); err != nil {
		return nil, err
	}
	return acknowledge()
}

// handleCancel answers tasks/cancel.
func (e *engine) handleCancel(ctx context.Context, p params) (mcpkit.Result, error) {
	call := mcpkit.CallFrom(ctx)
	t, cancelled, err := e.cancelTask(ctx, call, p.id)
	switch {
	case err != nil:
		return nil, err
	case call.Version().Modern():
		return acknowledge()
	case !cancelled:
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the task has ended already: it is %s", t.Status)
	}
	return e.legacy(t), nil
}

// maySubscribe reports whether the caller may subscribe to a task.
func (e *engine) maySubscribe(ctx context.Context, id string) bool {
	t, err := e.find(ctx, mcpkit.CallFrom(ctx), id)
	if err != nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, known := e.told[id]; !known {
		e.told[id] = t.Version // which the subscriber knows, or asks for
	}
	return true
}
