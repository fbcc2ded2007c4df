package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

var (
	// ErrTaskCancelled is the error of a task that was cancelled, by this client or another one.
	ErrTaskCancelled = errors.New("the task was cancelled")

	// ErrTaskRequired is the error of a call of a tool that runs only as a task, if the client
	// cannot call it as one: it was dialed without [Tasks], or the server has only the tasks of
	// 2025-11-25, which this client does not support.
	ErrTaskRequired = errors.New("the tool runs only as a task")
)

// A TaskError is the error of a call that became a task, or of following a task. If the task goes
// on at the server, [Client.Task] returns it by its ID.
type TaskError struct {
	ID  string
	Err error
}

// Error returns the ID and the reason.
func (e *TaskError) Error() string { return fmt.Sprintf("task %q: %v", e.ID, e.Err) }

// Unwrap returns the reason. It is a [*jsonrpc.Error] if the task failed, or if the server does not
// have it: -32602, perhaps since its time is over.
func (e *TaskError) Unwrap() error { return e.Err }

// Tasks lets a modern server run a tool as a task that outlives the request (extension
// io.modelcontextprotocol/tasks). The server decides for each call.
//
// [Call], [Client.CallTool] and [Client.Bind] follow a task to its end: they ask for it at the
// interval that the server sets, from 100 ms to 1 hour, let the [Handlers] answer its questions,
// and pass its status messages to [OnProgress]. If their ctx is done first, or they cannot follow
// the task, they cancel it. [Start] and [Client.Task] leave the task to the caller.
func Tasks() DialOption {
	return Extension(protocol.ExtensionTasks, nil, Since(protocol.V20260728), OnResult(protocol.ResultTask, followResult))
}

// TaskTimeout is how long a call follows a task, and how long [Task.Wait] waits. Less than or equal
// to 0 means no limit. The time in which the server waits for a response of this client does not
// count. As an option of Dial, it is the default of all calls; without it, the default is 24 hours.
func TaskTimeout(d time.Duration) Option {
	return bothOption{
		func(c *config) error { c.taskTimeout = d; return nil },
		func(c *callConfig) { c.taskTimeout = d },
	}
}

// A Task is a call of a tool that runs at the server. It outlives the client: the ID is all that
// another client needs, with the same credentials. A Task is safe for concurrent use.
type Task struct {
	c    *Client
	id   string
	tool string       // "" if the task was made from its ID
	cc   *callConfig  // the options of Start
	done *startedCall // set if the call ended at once

	mu  sync.Mutex
	end *protocol.DetailedTask // the final state; guarded by mu
}

// A startedCall is the outcome of a call that did not become a task.
type startedCall struct {
	result *protocol.CallToolResult
	err    error
}

// Start calls a tool like [Client.CallTool], and returns without waiting for its result if the
// server makes a task of the call. If the server runs the tool at once instead, the task has ended:
// its ID is "", and [Task.Wait] returns the result. The client must be dialed with [Tasks].
//
// Questions that the server asks before it makes the task are answered before Start returns.
func Start(ctx context.Context, c *Client, name string, in any, opts ...CallOption) (*Task, error) {
	if err := c.declaresTasks(); err != nil {
		return nil, fmt.Errorf("%s: %w", title(protocol.MethodToolsCall, name), err)
	}
	t := &Task{c: c, tool: name}
	take := OnResult(protocol.ResultTask, func(_ context.Context, r *ExtensionResult) (json.RawMessage, error) {
		if _, err := t.take(r); err != nil {
			return nil, err
		}
		return nil, errStarted
	})
	result, err := c.CallTool(ctx, name, in, append(opts[:len(opts):len(opts)], take)...)
	switch {
	case t.id != "" && errors.Is(err, errStarted):
		return t, nil
	case result == nil:
		return nil, err
	}
	t.done = &startedCall{result, err}
	return t, nil
}

// errStarted ends the call of Start when it has become a task.
var errStarted = errors.New("the call has become a task")

// take reads the result of a call that has become a task.
func (t *Task) take(r *ExtensionResult) (*protocol.Task, error) {
	begun := new(protocol.CreateTaskResult)
	err := jsonx.Unmarshal(r.Raw, begun)
	if err == nil {
		err = checkTask(&begun.Task)
	}
	if err != nil {
		return nil, invalid(protocol.MethodToolsCall, "%v", err)
	}
	cc := r.cc.further()
	cc.progress = r.cc.progress
	t.id, t.cc = begun.TaskID, &cc
	return &begun.Task, nil
}

// maxTaskIDBytes limits the ID of a task, which becomes a header over HTTP.
const maxTaskIDBytes = 1024

// checkTask checks what a server says about a task.
func checkTask(t *protocol.Task) error {
	switch {
	case t.TaskID == "":
		return errors.New("the task has no ID")
	case len(t.TaskID) > maxTaskIDBytes:
		return fmt.Errorf("the ID of the task has %d bytes; at most %d are allowed", len(t.TaskID), maxTaskIDBytes)
	case !t.Status.Known():
		return fmt.Errorf("the task has the unknown status %.60q", t.Status)
	}
	return nil
}

// Task returns the task with the ID, which [Task.ID] of a task returned: in this process or an
// earlier one. It sends nothing. The client must be dialed with [Tasks].
func (c *Client) Task(id string) *Task { return &Task{c: c, id: id} }

// ID returns the ID of the task: keep it, for example in a file, to ask for the task later. A
// program with the ID and the credentials of the caller can read the result, so keep it secret.
// The ID is "" if the server ran the tool at once.
func (t *Task) ID() string { return t.id }

// Get asks the server for the state of the task: its status, the questions that wait for a response,
// and the result or the error when it has ended. It returns an error if the call did not become a
// task.
func (t *Task) Get(ctx context.Context, opts ...CallOption) (*protocol.DetailedTask, error) {
	cc := t.options(opts)
	d, err := t.get(ctx, &cc)
	if err != nil {
		return nil, fmt.Errorf("client: %w", t.fault(err))
	}
	return d, nil
}

// Answer responds to a question of the task, by its key in [protocol.DetailedTask.InputRequests].
// The response is a *protocol.ElicitResult, *protocol.CreateMessageResult or
// *protocol.ListRootsResult. The server ignores responses to questions that it no longer asks.
func (t *Task) Answer(ctx context.Context, key string, response any, opts ...CallOption) error {
	raw, err := jsonx.Marshal(response)
	if err == nil && jsonx.Kind(raw) != '{' {
		err = fmt.Errorf("the response must be a JSON object; %T does not encode as one", response)
	}
	if err == nil {
		cc := t.options(opts)
		err = t.answer(ctx, &cc, protocol.InputResponses{key: raw})
	}
	if err != nil {
		return fmt.Errorf("client: %w", t.fault(err))
	}
	return nil
}

// Respond asks the server for the state of the task like [Task.Get], and lets the [Handlers] of the
// client answer the questions that wait for a response. The state is the one before the responses.
func (t *Task) Respond(ctx context.Context, opts ...CallOption) (*protocol.DetailedTask, error) {
	cc := t.options(opts)
	f := &follower{t: t, cc: &cc, answers: map[string]*taskAnswer{}, deadline: new(deadline)}
	ctx, stop := t.c.untilClose(ctx)
	defer stop()
	d, err := t.get(ctx, &cc)
	if err == nil {
		err = f.answer(ctx, d)
	}
	if err != nil {
		return nil, fmt.Errorf("client: %w", t.fault(t.c.orClosed(err)))
	}
	return d, nil
}

// Cancel asks the server to cancel the task. It returns when the server has accepted that, which
// is before the task ends; the tool may still finish. [Task.Wait] returns how the task ended.
func (t *Task) Cancel(ctx context.Context, opts ...CallOption) error {
	cc := t.options(opts)
	if _, err := t.request(ctx, &cc, protocol.MethodTasksCancel, &protocol.TaskParams{TaskID: t.id}); err != nil {
		return fmt.Errorf("client: %w", t.fault(err))
	}
	return nil
}

// Wait follows the task to its end and returns the result of the tool, with errors as those of
// [Client.CallTool]. The [Handlers] of the client answer the questions of the task; without a
// handler for a question, Wait returns an error, and [Task.Answer] can respond. If the task failed
// or was cancelled, or if Wait cannot follow it, the error is a [*TaskError].
//
// The end of ctx ends only Wait. It does not cancel the task.
func (t *Task) Wait(ctx context.Context, opts ...CallOption) (*protocol.CallToolResult, error) {
	if t.done != nil {
		return t.done.result, t.done.err
	}
	cc := t.options(opts)
	raw, err := t.follow(ctx, &cc, nil)
	if err != nil {
		return nil, fmt.Errorf("client: %w", t.fault(t.c.orClosed(err)))
	}
	return t.c.toolResult(ctx, t.tool, raw, &cc)
}

// Wait is like [Task.Wait], and decodes the output as [Call] does.
func Wait[Out any](ctx context.Context, t *Task, opts ...CallOption) (Out, error) {
	var out Out
	r, err := t.Wait(ctx, opts...)
	if err != nil {
		return out, err
	}
	return out, t.c.output(t.tool, r, reflect.ValueOf(&out).Elem())
}

// options returns the options of Start, with opts.
func (t *Task) options(opts []CallOption) callConfig {
	cc := t.c.callConfig(nil)
	if t.cc != nil {
		cc = t.cc.further()
		cc.progress = t.cc.progress
	}
	for _, o := range opts {
		o.call(&cc)
	}
	return cc
}

// fault adds the ID to err.
func (t *Task) fault(err error) error { return &TaskError{t.id, err} }

// declaresTasks returns an error if the client cannot ask for tasks.
func (c *Client) declaresTasks() error {
	switch {
	case c.cfg.extensions[protocol.ExtensionTasks] == nil:
		return errors.New("tasks need a client that is dialed with client.Tasks()")
	case !c.modern():
		return fmt.Errorf("version %s does not have the extension %s", c.Version(), protocol.ExtensionTasks)
	}
	return nil
}

// request sends a request about the task.
func (t *Task) request(ctx context.Context, cc *callConfig, method string, params any) (json.RawMessage, error) {
	if err := t.c.declaresTasks(); err != nil {
		return nil, err
	}
	if t.id == "" {
		return nil, errors.New("the call did not become a task")
	}
	// Repeating any of the requests does no harm.
	r := request{method: method, name: t.id, params: params, reads: true}
	own := cc.further()
	raw, err := t.c.doAs(ctx, &r, &own)
	if err == nil {
		return raw, nil
	}
	// The error says for which task already.
	switch err := errors.Unwrap(err).(type) {
	case *InvalidResponseError, *timeoutError:
		return nil, err
	default:
		return nil, fmt.Errorf("%s: %w", method, err)
	}
}

// get asks for the state of the task and checks it.
func (t *Task) get(ctx context.Context, cc *callConfig) (*protocol.DetailedTask, error) {
	raw, err := t.request(ctx, cc, protocol.MethodTasksGet, &protocol.TaskParams{TaskID: t.id})
	if err != nil {
		return nil, err
	}
	d := new(protocol.DetailedTask)
	if err = jsonx.Unmarshal(raw, d); err == nil {
		err = t.check(d)
	}
	if err != nil {
		return nil, invalid(protocol.MethodTasksGet, "%v", err)
	}
	return d, nil
}

// check checks a state of the task, and keeps the final one.
func (t *Task) check(d *protocol.DetailedTask) error {
	if err := checkTask(&d.Task); err != nil {
		return err
	}
	switch {
	case d.TaskID != t.id:
		return fmt.Errorf("it is about another task, %.60q", d.TaskID)
	case d.Status == protocol.TaskCompleted && jsonx.Kind(d.Result) != '{':
		return errors.New("the task is completed and has no result")
	case d.Result != nil && !isFinal(d.Result):
		return errors.New("the result of the task is not a complete one")
	case d.Status == protocol.TaskFailed && d.Error == nil:
		return errors.New("the task has failed and has no error")
	case len(d.InputRequests) > maxQuestions:
		return fmt.Errorf("it contains %d input requests; at most %d are allowed", len(d.InputRequests), maxQuestions)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end != nil && t.end.Status != d.Status {
		return fmt.Errorf("the task had ended with the status %q, and now has the status %q", t.end.Status, d.Status)
	}
	if d.Status.Terminal() {
		t.end = d
	}
	return nil
}

// isFinal reports whether raw has no resultType or that of a complete result.
func isFinal(raw []byte) bool {
	kind, ok := resultType(raw)
	return ok && (kind == "" || kind == protocol.ResultComplete)
}

// onlyAsTask returns the error of a call for err, the response of the server. It says so if the tool
// runs only as a task.
func (c *Client) onlyAsTask(ctx context.Context, a *agreement, r *request, err error) error {
	rpc, ok := err.(*jsonrpc.Error)
	switch {
	case !ok || r.method != protocol.MethodToolsCall:
	case a.version.Modern():
		required := jsonx.Member(jsonx.Member(rpc.Data, "requiredCapabilities"), "extensions")
		if rpc.Code == protocol.CodeMissingClientCapability && jsonx.Member(required, protocol.ExtensionTasks) != nil && c.declaresTasks() != nil {
			return fmt.Errorf("%w; dial with client.Tasks() to call it: %w", ErrTaskRequired, rpc)
		}
	case a.version == protocol.V20251125 && rpc.Code == jsonrpc.CodeMethodNotFound:
		if t, _ := c.Tool(ctx, r.name); t != nil && t.OnlyAsTask() {
			return fmt.Errorf("%w: %w", c.Callable(t), rpc)
		}
	}
	return err
}

// Callable returns nil if the client can call the tool, which is one of the server's list, and an
// error that wraps [ErrTaskRequired] if the tool runs only as a task and the client cannot call it
// as one. Lists of modern servers may not say so; then it returns nil, and the call has the error.
func (c *Client) Callable(t *protocol.Tool) error {
	switch {
	case !t.OnlyAsTask():
		return nil
	case !c.modern():
		return fmt.Errorf("%w of version %s, which this client does not support", ErrTaskRequired, c.Version())
	case c.declaresTasks() != nil:
		return fmt.Errorf("%w; dial with client.Tasks() to call it", ErrTaskRequired)
	}
	return nil
}

// answer responds to questions of the task.
func (t *Task) answer(ctx context.Context, cc *callConfig, responses protocol.InputResponses) error {
	_, err := t.request(ctx, cc, protocol.MethodTasksUpdate, &protocol.UpdateTaskParams{TaskID: t.id, InputResponses: responses})
	return err
}

// cancelTaskPatience limits the request that cancels the task of a canceled call.
const cancelTaskPatience = 5 * time.Second

// abandon cancels the task in the background, since its caller no longer waits.
func (t *Task) abandon(cc *callConfig) {
	t.c.background(func(context.Context) {
		// Also while Close waits for it, so not with the context of the client.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.c.base), cancelTaskPatience)
		defer cancel()
		a, id := t.c.agreed.Load(), t.c.nextID()
		own := cc.further()
		params, err := jsonx.Marshal(&protocol.TaskParams{TaskID: t.id})
		var req *jsonrpc.Request
		if err == nil {
			req, err = t.c.compose(a, id, protocol.MethodTasksCancel, params, protocol.Inputs{}, &own, "")
		}
		if err == nil {
			_, err = t.c.conn.roundTrip(ctx, &exchange{req: req, version: a.version, name: t.id})
		}
		if err != nil && !errors.Is(err, transport.ErrClosed) {
			t.c.log.Debug("client: a task was not cancelled", "task", clip(t.id), "error", err)
		}
	})
}

// followResult follows the task that a call has become, for Tasks.
func followResult(ctx context.Context, r *ExtensionResult) (json.RawMessage, error) {
	t := &Task{c: r.c, tool: r.Tool}
	begun, err := t.take(r)
	if err != nil {
		return nil, err
	}
	raw, err := t.follow(ctx, t.cc, begun)
	if err == nil {
		return raw, nil
	}
	t.mu.Lock()
	over := t.end != nil
	t.mu.Unlock()
	if !over {
		t.abandon(t.cc)
	}
	return nil, t.fault(err)
}
