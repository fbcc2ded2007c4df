package tasks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// limits bound what a store keeps, so that no client fills it with arguments, answers and results.
type limits struct {
	open  int // tasks of one owner that have not ended
	kept  int // tasks of one owner
	total int // tasks
}

// maxOwnerBytes is how many bytes the tasks of one owner may have.
const maxOwnerBytes = 64 << 20

// An account is what the store knows of the tasks of an owner. It is changed before a task grows, and
// after it has ended. If the process dies in between, it says more than there is until somebody is
// refused.
type account struct {
	Tasks map[string]entry `json:"tasks"` // by ID
}

// An entry is what an account has of a task.
type entry struct {
	Begun   int64 `json:"begun"`           // Unix milliseconds
	Ended   int64 `json:"ended,omitempty"` // 0 if it has not
	Expires int64 `json:"expires"`
	Bytes   int   `json:"bytes"`
}

// account changes the account of an owner, again and again until nobody else has changed it meanwhile.
func (s *store) account(ctx context.Context, owner string, edit func(*account) error) error {
	for {
		r, err := s.accounts().Get(ctx, groupOf(owner))
		if err != nil && !errors.Is(err, fleet.ErrNotFound) {
			return err
		}
		a := &account{}
		if err == nil {
			if err := jsonx.Unmarshal(r.Data, a); err != nil {
				return err
			}
		}
		if a.Tasks == nil {
			a.Tasks = map[string]entry{}
		}
		last := int64(0)
		for id, e := range a.Tasks {
			if e.Expires < time.Now().UnixMilli() {
				delete(a.Tasks, id)
			}
		}
		if err := edit(a); err != nil {
			return err
		}
		for _, e := range a.Tasks {
			last = max(last, e.Expires)
		}
		exists := r.Revision != 0
		r.Key, r.TTL = groupOf(owner), lifeUntil(time.UnixMilli(last))
		if r.Data, err = jsonx.Marshal(a); err != nil {
			return err
		}
		if exists {
			_, err = s.accounts().Update(ctx, r)
		} else {
			_, err = s.accounts().Create(ctx, r)
		}
		if !errors.Is(err, fleet.ErrConflict) && !errors.Is(err, fleet.ErrExists) && !errors.Is(err, fleet.ErrNotFound) {
			return storeError(err)
		}
	}
}

// put sets the entry of a task. Tasks that have ended make room for it, those that ended first, and
// are returned.
func (a *account) put(id string, e entry, l limits) (evicted []string, err error) {
	if _, known := a.Tasks[id]; !known && e.Ended == 0 && a.count() >= l.open {
		return nil, &limitError{limit: l.open}
	}
	a.Tasks[id] = e
	for bytes := a.bytes(); len(a.Tasks) > l.kept || bytes > maxOwnerBytes; bytes = a.bytes() {
		other, _ := a.first(func(e entry) int64 { return e.Ended }, id)
		switch {
		case other != "":
			delete(a.Tasks, other)
			evicted = append(evicted, other)
		case bytes > maxOwnerBytes:
			return evicted, &limitError{bytes: true, limit: maxOwnerBytes}
		default:
			return evicted, &limitError{limit: l.kept}
		}
	}
	return evicted, nil
}

// count returns how many tasks have not ended.
func (a *account) count() (n int) {
	for _, e := range a.Tasks {
		if e.Ended == 0 {
			n++
		}
	}
	return n
}

func (a *account) bytes() (n int) {
	for _, e := range a.Tasks {
		n += e.Bytes
	}
	return n
}

// first returns the task, other than one, with the earliest time, without those for which it is 0.
func (a *account) first(timeOf func(entry) int64, not string) (first string, at int64) {
	for id, e := range a.Tasks {
		if n := timeOf(e); n != 0 && id != not && (first == "" || n < at || n == at && id < first) {
			first, at = id, n
		}
	}
	return first, at
}

// open notes a new task, unless its owner has too many.
func (s *store) open(ctx context.Context, t *task) error {
	err := s.reserve(ctx, t, t.size)
	full, ok := errors.AsType[*limitError](err)
	if !ok || full.bytes {
		return err
	}
	// The task that is open for longest may be one that a process has not told of before it died.
	oldest := ""
	if err := s.account(ctx, t.Owner, func(a *account) error {
		oldest, _ = a.first(func(e entry) int64 {
			if e.Ended != 0 {
				return 0
			}
			return e.Begun
		}, "")
		return errUnchanged
	}); err != errUnchanged {
		return err
	}
	stale, err := s.load(ctx, oldest)
	switch {
	case errors.Is(err, errNotFound):
		err = s.account(ctx, t.Owner, func(a *account) error { delete(a.Tasks, oldest); return nil })
	case err == nil && stale.Status.Terminal():
		err = s.note(ctx, stale)
	default:
		return full
	}
	if err != nil {
		return err
	}
	return s.reserve(ctx, t, t.size)
}

// reserve notes that a task will have so many bytes, unless that is too much.
func (s *store) reserve(ctx context.Context, t *task, bytes int) error {
	return s.put(ctx, t, bytes, func(err error) error { return err })
}

// note notes how many bytes a task has, and whether it has ended. It is written already, so no limit
// refuses it.
func (s *store) note(ctx context.Context, t *task) error {
	return s.put(ctx, t, t.size, func(error) error { return nil })
}

func (s *store) put(ctx context.Context, t *task, bytes int, refuse func(error) error) error {
	var evicted []string
	err := s.account(ctx, t.Owner, func(a *account) (err error) {
		e := entry{Begun: t.Created.UnixMilli(), Expires: t.Expires.UnixMilli(), Bytes: bytes}
		if t.Status.Terminal() {
			e.Ended = max(a.Tasks[t.ID].Ended, t.Updated.UnixMilli())
		}
		evicted, err = a.put(t.ID, e, s.limits)
		return refuse(err)
	})
	for _, id := range evicted {
		if err == nil {
			err = s.tasks().Delete(ctx, id, 0)
		}
	}
	return err
}

// A limitError means that a limit for tasks is reached.
type limitError struct {
	total bool // it is that of all tasks, not that of an owner
	bytes bool // it is one of bytes, not of tasks
	limit int
}

// Error says what to do.
func (e *limitError) Error() string {
	switch {
	case e.total:
		return "the server has too many tasks; try again later"
	case e.bytes:
		return fmt.Sprintf("the tasks of the caller may take %d bytes altogether; try again when one has ended", e.limit)
	}
	return fmt.Sprintf("the caller has %d tasks that have not ended, which is the most it may have; try again when one has ended", e.limit)
}

// UserMessage returns the same text.
func (e *limitError) UserMessage() string { return e.Error() }

// RetryAfter is ten seconds, since nobody knows when a task ends.
func (e *limitError) RetryAfter() time.Duration { return 10 * time.Second }
