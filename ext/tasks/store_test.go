package tasks_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/tasks"
)

// benchmarkStore measures a store: the two writes of a task without questions, a read, a sweep that
// deletes 1,000 records, and one that deletes none of 10,000, with the heap that each of these takes.
func benchmarkStore(b *testing.B, open func(b *testing.B) tasks.Store) {
	data := make([]byte, 600)
	n := 0
	next := func() *tasks.Record {
		n++
		r := record(fmt.Sprintf("%032x", n))
		r.Data = data
		return r
	}
	b.Run("create and end", func(b *testing.B) {
		s := open(b)
		for b.Loop() {
			r := next()
			require.NoError(b, s.Create(b.Context(), r, tasks.Limits{Open: 1000, Kept: 5000, Total: 1 << 30}))
			r.State = tasks.Ended
			require.NoError(b, s.Update(b.Context(), r))
		}
	})
	b.Run("get", func(b *testing.B) {
		s := open(b)
		r := next()
		require.NoError(b, s.Create(b.Context(), r, tasks.Limits{}))
		for b.Loop() {
			_, err := s.Get(b.Context(), r.ID)
			require.NoError(b, err)
		}
	})
	b.Run("sweep 1,000", func(b *testing.B) {
		s := open(b)
		for b.Loop() {
			b.StopTimer()
			for range 1000 {
				require.NoError(b, s.Create(b.Context(), next(), tasks.Limits{}))
			}
			b.StartTimer()
			deleted, err := s.Sweep(b.Context(), epoch.Add(2*time.Hour))
			require.NoError(b, err)
			require.Equal(b, 1000, deleted)
		}
	})
	b.Run("sweep none of 10,000", func(b *testing.B) {
		const kept = 10_000
		s := open(b)
		before := heap()
		for range kept {
			r := next()
			r.State, r.Data = tasks.Asleep, bytes.Clone(data)
			require.NoError(b, s.Create(b.Context(), r, tasks.Limits{}))
		}
		each := float64(heap()-before) / kept
		for b.Loop() {
			deleted, err := s.Sweep(b.Context(), epoch)
			require.NoError(b, err)
			require.Zero(b, deleted)
		}
		b.ReportMetric(each, "B/record")
	})
}

func TestMemoryStore(t *testing.T) {
	testStore(t, func(*testing.T) tasks.Store { return &tasks.MemoryStore{} })
}

func BenchmarkMemoryStore(b *testing.B) {
	benchmarkStore(b, func(*testing.B) tasks.Store { return &tasks.MemoryStore{} })
}

// testStore tests a store. open returns an empty one, which it closes when the test ends.
func testStore(t *testing.T, open func(t *testing.T) tasks.Store) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s tasks.Store)
	}{
		{"records are returned as they were created", created},
		{"an ID is used once", usedOnce},
		{"updates compare the version", compared},
		{"one of many updates of a version succeeds", raced},
		{"the fields of a record are those of its last update", updated},
		{"ready records are claimed once, the oldest first", claimed},
		{"one of many workers claims a record", claimedByMany},
		{"leases are extended by the fence that holds them", extended},
		{"owners have limits of their own", limited},
		{"the record that ended first makes room", evicted},
		{"limits hold for creations at the same time", limitedByMany},
		{"lists have the records of one owner", listed},
		{"expired records are swept", swept},
		{"watchers are called for changes", watched},
		{"records belong to the caller", owned},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

// epoch lies in the past, also for stores that compare times with a clock of their own.
var epoch = time.Now().UTC().Truncate(time.Second).Add(-24 * time.Hour)

// record returns a record in the state Ready that lives for an hour.
func record(id string) *tasks.Record {
	return &tasks.Record{ID: id, Owner: "ann", State: tasks.Ready, Created: epoch, Expires: epoch.Add(time.Hour), Data: []byte("sealed " + id)}
}

func create(t *testing.T, s tasks.Store, records ...*tasks.Record) {
	t.Helper()
	for _, r := range records {
		require.NoError(t, s.Create(t.Context(), r, tasks.Limits{}))
	}
}

// same compares records whose times may be in different time zones.
func same(t *testing.T, want, got *tasks.Record) {
	t.Helper()
	w, g := *want, *got
	for _, at := range [][2]*time.Time{{&w.Created, &g.Created}, {&w.Expires, &g.Expires}, {&w.Lease, &g.Lease}} {
		require.True(t, at[0].Equal(*at[1]), "%s and %s", at[0], at[1])
		*at[0] = *at[1]
	}
	require.Equal(t, w, g)
}

func created(t *testing.T, s tasks.Store) {
	r := record("1")
	r.Fence, r.Lease = 1, epoch.Add(30*time.Second)
	create(t, s, r)
	got, err := s.Get(t.Context(), "1")
	require.NoError(t, err)
	same(t, r, got)
	require.NotZero(t, got.Version)
	for _, id := range []string{"", "2", "11"} {
		_, err = s.Get(t.Context(), id)
		require.ErrorIs(t, err, tasks.ErrNotFound, "%q", id)
	}
}

func usedOnce(t *testing.T, s tasks.Store) {
	create(t, s, record("1"))
	other := record("1")
	other.Owner = "eve"
	require.ErrorIs(t, s.Create(t.Context(), other, tasks.Limits{}), tasks.ErrConflict)
	got, err := s.Get(t.Context(), "1")
	require.NoError(t, err)
	require.Equal(t, "ann", got.Owner)
}

func compared(t *testing.T, s tasks.Store) {
	r := record("1")
	create(t, s, r)
	stale := *r
	r.Data = []byte("second")
	require.NoError(t, s.Update(t.Context(), r))
	require.Greater(t, r.Version, stale.Version)
	stale.Data = []byte("third")
	require.ErrorIs(t, s.Update(t.Context(), &stale), tasks.ErrConflict)
	got, err := s.Get(t.Context(), "1")
	require.NoError(t, err)
	require.Equal(t, "second", string(got.Data))
	require.ErrorIs(t, s.Update(t.Context(), record("2")), tasks.ErrNotFound)
	got.Data = []byte("fourth")
	require.NoError(t, s.Update(t.Context(), got), "the version of Get is current")
}

func raced(t *testing.T, s tasks.Store) {
	create(t, s, record("1"))
	current, err := s.Get(t.Context(), "1")
	require.NoError(t, err)
	results := together(8, func(i int) error {
		r := *current
		r.Data = fmt.Appendf(nil, "by %d", i)
		return s.Update(t.Context(), &r)
	})
	won := 0
	for _, err := range results {
		if err == nil {
			won++
		} else {
			require.ErrorIs(t, err, tasks.ErrConflict)
		}
	}
	require.Equal(t, 1, won)
}

// together calls f at the same time and returns the errors.
func together(n int, f func(i int) error) []error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	return errs
}

func updated(t *testing.T, s tasks.Store) {
	r := record("1")
	create(t, s, r)
	for _, state := range []tasks.State{tasks.Asleep, tasks.Ready, tasks.Ended} {
		r.State, r.Lease, r.Fence, r.Data = state, epoch.Add(time.Minute), r.Fence+1, []byte(state)
		require.NoError(t, s.Update(t.Context(), r))
		got, err := s.Get(t.Context(), "1")
		require.NoError(t, err)
		same(t, r, got)
	}
	_, err := s.Claim(t.Context(), epoch.Add(time.Hour), epoch.Add(2*time.Hour))
	require.ErrorIs(t, err, tasks.ErrNotFound, "it has ended")
}

func claimed(t *testing.T, s tasks.Store) {
	young, old, asleep, ended, held := record("1"), record("2"), record("3"), record("4"), record("5")
	young.Created = epoch.Add(time.Second)
	asleep.State, ended.State = tasks.Asleep, tasks.Ended
	held.Created, held.Lease, held.Fence = epoch.Add(2*time.Second), epoch.Add(time.Minute), 3
	create(t, s, young, old, asleep, ended, held)
	claim := func(before, until time.Duration) string {
		r, err := s.Claim(t.Context(), epoch.Add(before), epoch.Add(until))
		if errors.Is(err, tasks.ErrNotFound) {
			return "none"
		}
		require.NoError(t, err)
		got, err := s.Get(t.Context(), r.ID)
		require.NoError(t, err)
		same(t, r, got)
		require.True(t, r.Lease.Equal(epoch.Add(until)))
		return fmt.Sprintf("%s with fence %d", r.ID, r.Fence)
	}
	require.Equal(t, "2 with fence 1", claim(0, 30*time.Second))
	require.Equal(t, "1 with fence 1", claim(0, 30*time.Second))
	require.Equal(t, "none", claim(0, 30*time.Second))
	require.Equal(t, "none", claim(30*time.Second, time.Minute), "the leases have not ended before their end")
	got := []string{claim(2*time.Minute, 3*time.Minute), claim(2*time.Minute, 3*time.Minute), claim(2*time.Minute, 3*time.Minute)}
	slices.Sort(got)
	require.Equal(t, []string{"1 with fence 2", "2 with fence 2", "5 with fence 4"}, got)

	stale := *old
	require.ErrorIs(t, s.Update(t.Context(), &stale), tasks.ErrConflict, "a claim changes the version")
}

func claimedByMany(t *testing.T, s tasks.Store) {
	create(t, s, record("1"), record("2"))
	var mu sync.Mutex
	var ids []string
	for _, err := range together(8, func(int) error {
		r, err := s.Claim(t.Context(), epoch, epoch.Add(time.Minute))
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			ids = append(ids, r.ID)
		}
		return err
	}) {
		if err != nil {
			require.ErrorIs(t, err, tasks.ErrNotFound)
		}
	}
	slices.Sort(ids)
	require.Equal(t, []string{"1", "2"}, ids)
}

func extended(t *testing.T, s tasks.Store) {
	create(t, s, record("1"))
	r, err := s.Claim(t.Context(), epoch, epoch.Add(30*time.Second))
	require.NoError(t, err)
	require.NoError(t, s.Extend(t.Context(), "1", r.Fence, epoch.Add(time.Minute)))
	_, err = s.Claim(t.Context(), epoch.Add(45*time.Second), epoch.Add(time.Hour))
	require.ErrorIs(t, err, tasks.ErrNotFound)
	require.ErrorIs(t, s.Extend(t.Context(), "1", r.Fence-1, epoch.Add(time.Hour)), tasks.ErrConflict)
	require.ErrorIs(t, s.Extend(t.Context(), "2", 1, epoch.Add(time.Hour)), tasks.ErrNotFound)

	next, err := s.Claim(t.Context(), epoch.Add(2*time.Minute), epoch.Add(3*time.Minute))
	require.NoError(t, err)
	require.ErrorIs(t, s.Extend(t.Context(), "1", r.Fence, epoch.Add(time.Hour)), tasks.ErrConflict, "another worker has it")
	require.NoError(t, s.Extend(t.Context(), "1", next.Fence, epoch.Add(4*time.Minute)))
	next.State, next.Lease = tasks.Ended, time.Time{}
	require.NoError(t, s.Update(t.Context(), next), "extending does not change the version")
	require.ErrorIs(t, s.Extend(t.Context(), "1", next.Fence, epoch.Add(time.Hour)), tasks.ErrConflict, "it has ended")
}

func limited(t *testing.T, s tasks.Store) {
	limits := tasks.Limits{Open: 2, Total: 4}
	add := func(id, owner string) error {
		r := record(id)
		r.Owner = owner
		return s.Create(t.Context(), r, limits)
	}
	require.NoError(t, add("1", "ann"))
	require.NoError(t, add("2", "ann"))
	var full *tasks.LimitError
	require.ErrorAs(t, add("3", "ann"), &full)
	require.Equal(t, tasks.LimitError{Limit: 2}, *full)
	require.NoError(t, add("3", "eve"))
	require.NoError(t, add("4", ""), "the empty owner is one, too")

	r, err := s.Get(t.Context(), "1")
	require.NoError(t, err)
	r.State = tasks.Ended
	require.NoError(t, s.Update(t.Context(), r))
	require.ErrorAs(t, add("5", "ann"), &full)
	require.Equal(t, tasks.LimitError{Total: true, Limit: 4}, *full)
	_, err = s.Get(t.Context(), "5")
	require.ErrorIs(t, err, tasks.ErrNotFound)
}

func evicted(t *testing.T, s tasks.Store) {
	limits := tasks.Limits{Kept: 3}
	for _, id := range []string{"1", "2", "3"} {
		require.NoError(t, s.Create(t.Context(), record(id), limits))
	}
	var full *tasks.LimitError
	require.ErrorAs(t, s.Create(t.Context(), record("4"), limits), &full, "none has ended")
	for _, id := range []string{"3", "1"} {
		r, err := s.Get(t.Context(), id)
		require.NoError(t, err)
		r.State = tasks.Ended
		require.NoError(t, s.Update(t.Context(), r))
		r.Data = []byte("again")
		require.NoError(t, s.Update(t.Context(), r))
	}
	require.NoError(t, s.Create(t.Context(), record("4"), limits))
	_, err := s.Get(t.Context(), "3")
	require.ErrorIs(t, err, tasks.ErrNotFound, "it ended first")
	for _, id := range []string{"1", "2", "4"} {
		_, err := s.Get(t.Context(), id)
		require.NoError(t, err)
	}
}

func limitedByMany(t *testing.T, s tasks.Store) {
	made := 0
	for _, err := range together(8, func(i int) error {
		return s.Create(t.Context(), record(fmt.Sprint(i)), tasks.Limits{Open: 3})
	}) {
		if err == nil {
			made++
		}
	}
	require.Equal(t, 3, made)
}

func listed(t *testing.T, s tasks.Store) {
	other := record("25")
	other.Owner = "annie"
	create(t, s, record("3"), record("1"), other, record("2"))
	ids := func(owner, after string, limit int) string {
		list, err := s.List(t.Context(), owner, after, limit)
		require.NoError(t, err)
		all := ""
		for _, r := range list {
			require.Equal(t, owner, r.Owner)
			all += r.ID + " "
		}
		return all
	}
	require.Equal(t, "1 2 3 ", ids("ann", "", 10))
	require.Equal(t, "1 2 ", ids("ann", "", 2))
	require.Equal(t, "3 ", ids("ann", "2", 2))
	require.Equal(t, "2 3 ", ids("ann", "11", 10), "the ID need not exist")
	require.Equal(t, "25 ", ids("annie", "", 10))
	require.Equal(t, "", ids("", "", 10))
}

func swept(t *testing.T, s tasks.Store) {
	short, long, ended := record("1"), record("2"), record("3")
	short.Expires, long.Expires, ended.Expires = epoch.Add(time.Minute), epoch.Add(time.Hour), epoch.Add(2*time.Minute)
	ended.State = tasks.Ended
	create(t, s, short, long, ended)
	n, err := s.Sweep(t.Context(), epoch.Add(time.Minute))
	require.NoError(t, err)
	require.Zero(t, n)
	n, err = s.Sweep(t.Context(), epoch.Add(3*time.Minute))
	require.NoError(t, err)
	require.Equal(t, 2, n)
	for _, id := range []string{"1", "3"} {
		_, err = s.Get(t.Context(), id)
		require.ErrorIs(t, err, tasks.ErrNotFound)
	}
	r, err := s.Claim(t.Context(), epoch.Add(time.Hour), epoch.Add(2*time.Hour))
	require.NoError(t, err)
	require.Equal(t, "2", r.ID)
	_, err = s.Claim(t.Context(), epoch.Add(time.Hour), epoch.Add(2*time.Hour))
	require.ErrorIs(t, err, tasks.ErrNotFound)
	require.NoError(t, s.Create(t.Context(), record("4"), tasks.Limits{Open: 2, Total: 2, Kept: 2}), "swept records do not count")
}

func watched(t *testing.T, s tasks.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	heard := make(chan string, 1000)
	done := make(chan struct{})
	// Ends with the context.
	go func() {
		defer close(done)
		s.Watch(ctx, func(id string) {
			_, _ = s.Get(t.Context(), id) // no lock is held
			select {
			case heard <- id:
			default:
			}
		})
	}()
	r := record("watched")
	create(t, s, r)
	for heardOf := false; !heardOf; { // Watch may begin after this
		require.NoError(t, s.Update(t.Context(), r))
		select {
		case id := <-heard:
			heardOf = id == "watched"
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	<-done
}

func owned(t *testing.T, s tasks.Store) {
	r := record("1")
	create(t, s, r)
	r.Data = append(r.Data, " more"...)
	r.Owner = "eve"
	first, err := s.Get(t.Context(), "1")
	require.NoError(t, err)
	require.Equal(t, "ann", first.Owner)
	require.Equal(t, "sealed 1", string(first.Data))
	first.State, first.Owner = tasks.Ended, "eve"
	second, err := s.Get(t.Context(), "1")
	require.NoError(t, err)
	require.Equal(t, tasks.Ready, second.State)
}
