package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// declare declares the tasks of version 2025-11-25.
func declare(caps *protocol.ServerCapabilities, v protocol.Version) {
	if v == protocol.V20251125 {
		caps.Tasks = json.RawMessage(`{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`)
	}
}

// interceptLegacy makes a task of a call of version 2025-11-25 whose client asks for one.
func (e *engine) interceptLegacy(
	ctx context.Context, call *mcpkit.Call, m mode, tagged bool, next mcpkit.Handler,
) (mcpkit.Result, error) {
	wish := jsonx.Member(call.Params(), "task")
	if call.Version() != protocol.V20251125 {
		wish = nil // earlier versions do not have the member
	}
	switch {
	case wish == nil && m.required:
		return nil, refuseTask("tool %q is called as a task only", call.Name())
	case wish == nil:
		return next(ctx, call)
	case !tagged:
		return nil, refuseTask("tool %q cannot be called as a task", call.Name())
	case jsonx.Kind(wish) != '{':
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.task is not an object")
	}
	ttl := e.ttl
	if raw := jsonx.Member(wish, "ttl"); raw != nil && string(raw) != "null" {
		ms, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil || ms < 0 {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.task.ttl is not a number of milliseconds")
		}
		if ms < e.ttl.Milliseconds() {
			ttl = max(time.Duration(ms)*time.Millisecond, time.Second)
		}
	}
	return e.createTask(ctx, call, m, ttl, func(t protocol.Task) mcpkit.Result {
		return map[string]any{"task": newLegacyTask(t)}
	})
}

// A legacyTask is a task as clients of 2025-11-25 see it.
type legacyTask struct {
	TaskID        string              `json:"taskId"`
	Status        protocol.TaskStatus `json:"status"`
	StatusMessage string              `json:"statusMessage,omitzero"`
	CreatedAt     time.Time           `json:"createdAt"`
	LastUpdatedAt time.Time           `json:"lastUpdatedAt"`
	TTL           *int64              `json:"ttl"`
	PollInterval  *int64              `json:"pollInterval"`
}

// legacy returns the task as clients of 2025-11-25 see it: a tool error is a failure, too.
func (e *engine) legacy(t *task) legacyTask {
	w := e.wire(t)
	if w.Status == protocol.TaskCompleted && t.IsError {
		w.Status = protocol.TaskFailed
	}
	return newLegacyTask(w)
}

func newLegacyTask(w protocol.Task) legacyTask {
	return legacyTask{w.TaskID, w.Status, w.StatusMessage, w.CreatedAt, w.LastUpdatedAt, w.TTLMs, w.PollIntervalMs}
}

// related returns an object with the _meta that names the task.
func related(object json.RawMessage, id string) json.RawMessage {
	task := append(jsonx.AppendString([]byte(`{"taskId":`), id), '}')
	return jsonx.With(object, "_meta", jsonx.With(jsonx.Member(object, "_meta"), protocol.MetaRelatedTask, task))
}

// handleResult answers tasks/result: it waits until the task has ended, and asks the client the
// questions of the task meanwhile.
func (e *engine) handleResult(ctx context.Context, p params) (mcpkit.Result, error) {
	for {
		if r, err := e.awaitResult(ctx, p.id); r != nil || err != nil {
			return r, err
		}
	}
}

// awaitResult returns the result of a task that has ended. Otherwise it asks the questions of the
// task, or waits for a change, and returns nil.
func (e *engine) awaitResult(ctx context.Context, id string) (mcpkit.Result, error) {
	call := mcpkit.CallFrom(ctx)
	changed, forget := e.next(id)
	defer forget()
	t, err := e.find(ctx, call, id)
	if err != nil {
		return nil, err
	}
	switch t.Status {
	case protocol.TaskCompleted:
		return related(t.Result, id), nil
	case protocol.TaskFailed:
		return nil, t.Error
	case protocol.TaskCancelled:
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the task was cancelled")
	case protocol.TaskInputRequired:
		return nil, e.ask(ctx, call, id, t)
	}
	return nil, e.await(ctx, changed)
}

// await waits for a change, and looks again after some time: another process may have made it.
func (e *engine) await(ctx context.Context, changed <-chan struct{}) error {
	select {
	case <-changed:
	case <-time.After(max(e.interval, time.Second)):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// ask asks the client the questions of the task, one after another in the order of their keys, and
// gives the task the answers.
func (e *engine) ask(ctx context.Context, call *mcpkit.Call, id string, t *task) error {
	questions := t.Run.Journal.Questions()
	for _, key := range slices.Sorted(maps.Keys(questions)) {
		question := questions[key]
		answer, err := call.Ask(ctx, question.Method, related(question.Params, id))
		if errors.Is(err, mcpkit.ErrDeclined) && question.Method == protocol.MethodElicitationCreate {
			answer, err = json.RawMessage(`{"action":"decline"}`), nil
		}
		if err != nil {
			return err
		}
		text, err := jsonx.Marshal(map[string]json.RawMessage{key: answer})
		if err != nil {
			return err
		}
		if err := e.answer(ctx, call, id, text); err != nil {
			return err
		}
	}
	return nil
}

// listPage is how many tasks a page of tasks/list has.
const listPage = 100

// handleList answers tasks/list with the tasks of the principal. Callers without one get an empty
// list, since nothing tells them apart.
func (e *engine) handleList(ctx context.Context, p params) (mcpkit.Result, error) {
	call := mcpkit.CallFrom(ctx)
	list := struct {
		Tasks      []legacyTask `json:"tasks"`
		NextCursor string       `json:"nextCursor,omitzero"`
	}{Tasks: []legacyTask{}}
	if call.Principal() == nil {
		return list, nil
	}
	if p.cursor != "" && fleet.CheckNames(p.cursor) != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the cursor is not one that this server gave")
	}
	records, err := e.tasks().List(ctx, groupOf(ownerOf(call.Principal())), p.cursor, listPage)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if t, err := decode(r); err == nil && e.admits(call, t) {
			list.Tasks = append(list.Tasks, e.legacy(t))
		}
	}
	if len(records) == listPage {
		list.NextCursor = records[len(records)-1].Key
	}
	return list, nil
}
