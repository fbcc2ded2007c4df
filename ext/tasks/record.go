package tasks

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// A task is the data of a record: the journal from which the method runs again.
type task struct {
	Run     *mcpkit.Run         `json:"run"` // the tool, its arguments, the principal, answers and values of Once
	Schema  string              `json:"schema"`
	Durable bool                `json:"durable,omitempty"`
	Status  protocol.TaskStatus `json:"status"`
	Message string              `json:"message,omitempty"`
	Updated time.Time           `json:"updated"`
	Starts  int                 `json:"starts,omitempty"` // of the method since it last ended or asked
	Result  json.RawMessage     `json:"result,omitempty"`
	IsError bool                `json:"isError,omitempty"`
	Error   *jsonrpc.Error      `json:"error,omitempty"`
}

// end ends the task.
func (t *task) end(status protocol.TaskStatus, message string) {
	t.Status, t.Message, t.Starts = status, message, 0
	t.Run.Journal, t.Run.Arguments = mcpkit.Journal{}, nil // no longer needed
}

// fail ends the task because the method could not be run to its end.
func (t *task) fail(format string, args ...any) {
	t.Error = jsonrpc.Errorf(jsonrpc.CodeInternalError, format, args...)
	t.end(protocol.TaskFailed, t.Error.Message)
}

// take takes over how a run ended.
func (t *task) take(out mcpkit.Outcome) {
	t.Run.Journal, t.Starts = out.Journal, 0
	switch {
	case out.Asked:
		t.Status = protocol.TaskInputRequired
	case out.Err != nil:
		t.Error = out.Err
		t.end(protocol.TaskFailed, out.Err.Message)
	default:
		t.Result, t.IsError = out.Result, out.IsError
		t.end(protocol.TaskCompleted, t.Message)
	}
}

// state returns the state of the record.
func (t *task) state() recordState {
	switch {
	case t.Status.Terminal():
		return stateEnded
	case t.Status == protocol.TaskInputRequired:
		return stateAsleep
	}
	return stateReady
}

// encode puts the task into the record.
func (t *task) encode(r *record) (err error) {
	t.Updated = now()
	r.State = t.state()
	r.Data, err = jsonx.Marshal(t)
	return err
}

// now returns the time as the protocol writes it, in milliseconds.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// newID returns an ID of 128 random bits.
func newID() string {
	var id [16]byte
	rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// ownerOf returns the digest of a principal; "" for callers without one.
func ownerOf(p *oauth.Principal) string {
	if p == nil {
		return ""
	}
	return digest([]byte(p.Key()))
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
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
func (e *engine) find(ctx context.Context, call *mcpkit.Call, id string) (*record, *task, error) {
	r, t, err := e.load(ctx, id)
	switch {
	case errors.Is(err, errNotFound):
		return nil, nil, notFound(id)
	case err != nil:
		return nil, nil, err
	case !e.admits(call.Principal(), r, t):
		return nil, nil, notFound(id)
	}
	return r, t, nil
}

// admits reports whether the principal made the task, and still has the scopes that its tool needs.
func (e *engine) admits(p *oauth.Principal, r *record, t *task) bool {
	return r.Owner == ownerOf(p) && t.Run.Principal.Key() == p.Key() && e.runner.Permits(p, t.Run.Tool)
}

// load returns a task. The error is errNotFound if it has expired or cannot be read.
func (e *engine) load(ctx context.Context, id string) (*record, *task, error) {
	r, err := e.store.Get(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	if !time.Now().Before(r.Expires) {
		return nil, nil, errNotFound
	}
	t := &task{}
	if err := jsonx.Unmarshal(r.Data, t); err != nil {
		e.runner.Logger().ErrorContext(ctx, "tasks: a record cannot be read", "task", short(id), "error", err)
		return nil, nil, errNotFound
	}
	return r, t, nil
}

// short returns the beginning of an ID for the log, which does not grant access.
func short(id string) string { return id[:min(len(id), 8)] }

// errEnded is the error of change for a task that has ended.
var errEnded = errors.New("tasks: the task has ended")

// change changes a task, again and again until nobody else has changed it meanwhile. edit returns
// an error to leave it as it is.
func (e *engine) change(ctx context.Context, id string, edit func(*record, *task) error) (*record, *task, error) {
	for {
		r, t, err := e.load(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		if err := edit(r, t); err != nil {
			return r, t, err
		}
		if err := t.encode(r); err != nil {
			return nil, nil, err
		}
		err = e.store.Update(ctx, r)
		if err == nil {
			return r, t, nil
		}
		if !errors.Is(err, errConflict) {
			return nil, nil, err
		}
	}
}

// wire returns the task as clients of 2026-07-28 see it.
func (e *engine) wire(r *record, t *task) protocol.Task {
	ttl, interval := r.Expires.Sub(r.Created).Milliseconds(), e.interval.Milliseconds()
	w := protocol.Task{
		TaskID: r.ID, Status: t.Status, StatusMessage: t.Message, CreatedAt: r.Created.UTC(), LastUpdatedAt: t.Updated,
		TTLMs: &ttl, PollIntervalMs: &interval,
	}
	if t.Status == protocol.TaskWorking {
		if message, at := e.progressOf(r.ID); message != "" {
			w.StatusMessage, w.LastUpdatedAt = message, at
		}
	}
	return w
}

// detailed returns the task with its result, error or questions.
func (e *engine) detailed(r *record, t *task) *protocol.DetailedTask {
	d := &protocol.DetailedTask{Task: e.wire(r, t)}
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

// Error says what to do.
func (e *limitError) Error() string {
	switch {
	case e.Total:
		return "the server has too many tasks; try again later"
	case e.Bytes:
		return fmt.Sprintf("the tasks of the caller may take %d bytes altogether; try again when one has ended", e.Limit)
	}
	return fmt.Sprintf("the caller has %d tasks that have not ended, which is the most it may have; try again when one has ended", e.Limit)
}

// UserMessage returns the same text.
func (e *limitError) UserMessage() string { return e.Error() }

// RetryAfter is ten seconds, since nobody knows when a task ends.
func (e *limitError) RetryAfter() time.Duration { return 10 * time.Second }
