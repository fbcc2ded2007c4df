package tasks

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
)

// limits bound what a store keeps, so that no client fills it with arguments, answers and results.
type limits struct {
	open  int // tasks of one owner that have not ended
	kept  int // tasks of one owner; those that ended first make room for new ones
	bytes int // of the tasks of one owner
	total int // tasks
}

// An account is what the store knows of the tasks of an owner. It is changed before a task grows, and
// after it has ended. If the process dies in between, it says more than there is until somebody is
// refused.
type account struct{ Tasks []entry }

// An entry is what an account has of a task. It is stored without names, and read without reflection,
// since each call that becomes a task reads and writes the account.
type entry struct {
	ID      [idSize]byte
	Begun   int64 // Unix milliseconds
	Ended   int64 // 0 if it has not
	Expires int64
	Bytes   int64
}

const entrySize = idSize + 4*8

func (e *entry) numbers() [4]*int64 { return [...]*int64{&e.Begun, &e.Ended, &e.Expires, &e.Bytes} }

// account changes the account of an owner.
func (s *store) account(ctx context.Context, owner string, edit func(*account) error) error {
	_, err := s.accounts().Change(ctx, groupOf(owner), func(r *fleet.Record) error {
		a := &account{}
		for data := range slices.Chunk(r.Data, entrySize) {
			e := entry{ID: [idSize]byte(data)}
			for i, n := range e.numbers() {
				*n = int64(binary.LittleEndian.Uint64(data[idSize+8*i:]))
			}
			a.Tasks = append(a.Tasks, e)
		}
		now, last := time.Now().UnixMilli(), int64(0)
		a.Tasks = slices.DeleteFunc(a.Tasks, func(e entry) bool { return e.Expires < now })
		if err := edit(a); err != nil {
			return err
		}
		r.Data = nil
		for _, e := range a.Tasks {
			last = max(last, e.Expires)
			r.Data = append(r.Data, e.ID[:]...)
			for _, n := range e.numbers() {
				r.Data = binary.LittleEndian.AppendUint64(r.Data, uint64(*n))
			}
		}
		r.TTL = lifeUntil(time.UnixMilli(last))
		return nil
	})
	return storeError(err)
}

// find returns the place of a task; -1 if the account does not have it.
func (a *account) find(id string) int {
	return slices.IndexFunc(a.Tasks, func(e entry) bool { return string(e.ID[:]) == id })
}

func (a *account) remove(id string) {
	a.Tasks = slices.DeleteFunc(a.Tasks, func(e entry) bool { return string(e.ID[:]) == id })
}

// put sets the entry of a task. Tasks that have ended make room for it, those that ended first, and
// are returned.
func (a *account) put(e entry, l limits) (evicted []string, err error) {
	if i := a.find(string(e.ID[:])); i >= 0 {
		e.Ended = max(e.Ended, a.Tasks[i].Ended)
		a.Tasks[i] = e
	} else if a.Tasks = append(a.Tasks, e); e.Ended == 0 && a.count() > l.open {
		return nil, &limitError{limit: l.open}
	}
	for bytes := a.bytes(); len(a.Tasks) > l.kept || bytes > l.bytes; bytes = a.bytes() {
		other := a.first(func(other entry) int64 {
			if other.ID == e.ID {
				return 0
			}
			return other.Ended
		})
		switch {
		case other != "":
			a.remove(other)
			evicted = append(evicted, other)
		case bytes > l.bytes:
			return evicted, &limitError{bytes: true, limit: l.bytes}
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
		n += int(e.Bytes)
	}
	return n
}

// first returns the task with the earliest time, without those for which it is 0; "" for none.
func (a *account) first(timeOf func(entry) int64) (id string) {
	earliest := int64(math.MaxInt64)
	for _, e := range a.Tasks {
		if at := timeOf(e); at != 0 && at < earliest {
			id, earliest = string(e.ID[:]), at
		}
	}
	return id
}

// open notes a new task, unless its owner has too many.
func (s *store) open(ctx context.Context, t *task) error {
	err := s.reserve(ctx, t)
	full, ok := errors.AsType[*limitError](err)
	if !ok || full.bytes {
		return err
	}
	// The task that is open for longest may be one that a process has not told of before it died.
	oldest := ""
	if err := s.account(ctx, t.Owner, func(a *account) error {
		oldest = a.first(func(e entry) int64 {
			if e.Ended != 0 {
				return 0
			}
			return e.Begun
		})
		return errUnchanged
	}); err != errUnchanged {
		return err
	}
	stale, err := s.load(ctx, oldest)
	switch {
	case errors.Is(err, errNotFound):
		err = s.account(ctx, t.Owner, func(a *account) error { a.remove(oldest); return nil })
	case err == nil && stale.Status.Terminal():
		err = s.note(ctx, stale)
	default:
		return full
	}
	if err != nil {
		return err
	}
	return s.reserve(ctx, t)
}

// reserve notes that a task is about to have so much room, unless that is too much.
func (s *store) reserve(ctx context.Context, t *task) error {
	return s.put(ctx, t, t.Room, func(err error) error { return err })
}

// note notes how many bytes a task has, and whether it has ended. It is written already, so no limit
// refuses it.
func (s *store) note(ctx context.Context, t *task) error {
	bytes := t.Room
	if t.Status.Terminal() {
		bytes = t.size
	}
	return s.put(ctx, t, bytes, func(error) error { return nil })
}

func (s *store) put(ctx context.Context, t *task, bytes int, refuse func(error) error) error {
	var evicted []string
	err := s.account(ctx, t.Owner, func(a *account) (err error) {
		e := entry{Begun: t.Created.UnixMilli(), Expires: t.Expires.UnixMilli(), Bytes: int64(bytes)}
		copy(e.ID[:], t.ID)
		if t.Status.Terminal() {
			e.Ended = t.Updated.UnixMilli()
		}
		evicted, err = a.put(e, s.limits)
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
	return fmt.Sprintf(
		"the caller has %d tasks that have not ended, which is the most it may have; try again when one has ended", e.limit)
}

// UserMessage returns the same text.
func (e *limitError) UserMessage() string { return e.Error() }

// RetryAfter is ten seconds, since nobody knows when a task ends.
func (e *limitError) RetryAfter() time.Duration { return 10 * time.Second }
