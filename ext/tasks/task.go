package tasks

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// A task is what the store has of one: the journal from which the method runs again, and who runs it.
type task struct {
	ID      string              `json:"-"`
	Owner   string              `json:"owner"` // digest of the principal; "" if the caller is unauthenticated
	Created time.Time           `json:"created"`
	Expires time.Time           `json:"expires"`
	Run     *mcpkit.Run         `json:"run"` // the tool, its arguments, the principal, answers and values of Once
	Schema  string              `json:"schema"`
	Durable bool                `json:"durable,omitempty"`
	Status  protocol.TaskStatus `json:"status"`
	Message string              `json:"message,omitempty"`
	Updated time.Time           `json:"updated"`
	Version int64               `json:"version"` // counts the changes that a client can see
	Result  json.RawMessage     `json:"result,omitempty"`
	IsError bool                `json:"isError,omitempty"`
	Error   *jsonrpc.Error      `json:"error,omitempty"`
	Room    int                 `json:"room"` // the bytes that the account of the owner has for it until it ends

	Worker string    `json:"worker,omitempty"` // the replica that runs it, until the lease ends
	Lease  time.Time `json:"lease,omitzero"`
	Turn   int64     `json:"turn"`             // how often a worker has got it
	Starts int       `json:"starts,omitempty"` // of the method since it last ended or asked

	revision uint64
	size     int
}

// assign gives the task to a worker.
func (t *task) assign(worker string) {
	t.Worker, t.Lease = worker, time.Now().Add(lease)
	t.Turn++
	t.Starts++
}

// end ends the task.
func (t *task) end(status protocol.TaskStatus, message string) {
	t.Status, t.Message, t.Starts = status, message, 0
	t.Run.Journal, t.Run.Params = mcpkit.Journal{}, nil // no longer needed
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
	case len(out.Unused) > 0 && !out.IsError:
		t.fail("this build of the tool no longer uses what mcpkit.Once has kept as %q; a new build may change"+
			" what a tool does after its kept values, and must keep their keys while tasks are open",
			strings.Join(out.Unused, ", "))
	default:
		t.Result, t.IsError = out.Result, out.IsError
		t.end(protocol.TaskCompleted, t.Message)
	}
}

// now returns the time as the protocol writes it, in milliseconds.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// idSize is the length of an ID.
const idSize = 32

// newID returns an ID of 128 random bits.
func newID() string {
	var id [idSize / 2]byte
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

func groupOf(owner string) string { return fleet.Digest("owner " + owner) }

// short returns the beginning of an ID for the log, which does not grant access.
func short(id string) string { return id[:min(len(id), 8)] }

const (
	// The versions of the records.
	taskFormat    = 2
	accountFormat = 2

	// The engine keeps records for somewhat longer, since the clocks of replicas differ.
	grace = time.Minute

	// How many bytes an open task may grow by before the account of its owner is changed again.
	spare = 16 << 10
)

// A store keeps tasks in an engine: the set "tasks" has a record for each, in the group of its owner,
// and the set "tasks-owners" an account for each owner. A task that a worker has to run is due when
// its lease ends. Records expire by themselves.
type store struct {
	f        *fleet.Fleet
	limits   limits
	onChange func(*task) // is called after each change that a client can see
}

func (s *store) tasks() *fleet.Set    { return s.f.Set("tasks", taskFormat) }
func (s *store) accounts() *fleet.Set { return s.f.Set("tasks-owners", accountFormat) }

// Errors of a store, besides those of the fleet.
var (
	errNotFound  = errors.New("tasks: there is no such task")
	errEnded     = errors.New("tasks: the task has ended")
	errUnchanged = errors.New("tasks: nothing to change")
)

func lifeUntil(expires time.Time) time.Duration { return max(time.Until(expires), 0) + grace }

// encode returns the record of a task.
func (t *task) encode() (fleet.Record, error) {
	data, err := jsonx.Marshal(t)
	t.size = len(data)
	r := fleet.Record{Key: t.ID, Group: groupOf(t.Owner), Data: data, Revision: t.revision, TTL: lifeUntil(t.Expires)}
	if t.Status == protocol.TaskWorking {
		r.Due = max(time.Until(t.Lease), fleet.AtOnce)
	}
	return r, err
}

// encodeWithRoom gives the task room for what it has and some more, and returns its record.
func (t *task) encodeWithRoom() (fleet.Record, error) {
	if _, err := t.encode(); err != nil {
		return fleet.Record{}, err
	}
	t.Room = t.size + spare
	return t.encode()
}

// decode returns the task of a record. The error is errNotFound if it has expired.
func decode(r fleet.Record) (*task, error) {
	t := &task{ID: r.Key, revision: r.Revision, size: len(r.Data)}
	if err := jsonx.Unmarshal(r.Data, t); err != nil {
		return nil, err
	}
	if !time.Now().Before(t.Expires) {
		return nil, errNotFound
	}
	return t, nil
}

// load returns a task. The error is errNotFound if it has expired or the ID is none.
func (s *store) load(ctx context.Context, id string) (*task, error) {
	if fleet.CheckNames(id) != nil {
		return nil, errNotFound
	}
	r, err := s.tasks().Get(ctx, id)
	if err != nil {
		return nil, storeError(err)
	}
	return decode(r)
}

// create adds a task, unless that exceeds a limit: then the error is a [*limitError].
func (s *store) create(ctx context.Context, t *task) error {
	t.Updated, t.Version = now(), 1
	r, err := t.encodeWithRoom()
	if err != nil {
		return err
	}
	n, err := s.tasks().Count(ctx, "")
	if err == nil && n >= s.limits.total {
		err = &limitError{total: true}
	}
	if err == nil {
		err = s.open(ctx, t)
	}
	if err != nil {
		return err
	}
	if t.revision, err = s.tasks().Create(ctx, r); err != nil {
		_ = s.account(ctx, t.Owner, func(a *account) error { a.remove(t.ID); return nil })
		return storeError(err)
	}
	s.onChange(t)
	return nil
}

// change changes a task. edit returns an error to leave it as it is, which change returns with the task.
func (s *store) change(ctx context.Context, id string, edit func(*task) error) (t *task, err error) {
	visible := false
	revision, err := s.tasks().Change(ctx, id, func(r *fleet.Record) (err error) {
		if r.Revision == 0 {
			return errNotFound
		}
		if t, err = decode(*r); err != nil {
			return err
		}
		before := *t
		if err := edit(t); err != nil {
			return err
		}
		if t.Status != protocol.TaskWorking {
			t.Worker, t.Lease = "", time.Time{}
		}
		visible = t.Status != before.Status || t.Message != before.Message || t.Lease.IsZero() // all but a lease
		if visible {
			t.Updated = now()
			t.Version++
		}
		*r, err = t.encode()
		if err == nil && t.size > t.Room && !t.Status.Terminal() {
			if *r, err = t.encodeWithRoom(); err == nil {
				err = s.reserve(ctx, t)
			}
		}
		return err
	})
	if err != nil {
		return t, storeError(err)
	}
	t.revision = revision
	if visible {
		s.onChange(t)
	}
	return t, nil
}

// storeError returns an error of a write for callers.
func storeError(err error) error {
	switch {
	case errors.Is(err, fleet.ErrNotFound):
		return errNotFound
	case errors.Is(err, fleet.ErrFull):
		return &limitError{total: true}
	}
	return err
}
