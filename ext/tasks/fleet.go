package tasks

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/protocol"
)

const (
	// The versions of the records, and of the messages between replicas.
	fleetFormat      = 1
	fleetEndedFormat = 1
	kindTask         = "task"

	// The engine keeps records for somewhat longer, since the clocks of replicas differ.
	fleetGrace = time.Minute

	claimPage, claimPages = 16, 512
	sweepPage             = 100
	conflictsInARow       = 20

	maxNews = 1024 // changes of tasks by other replicas that wait to be looked at
)

// A fleetStore is a [store] that the replicas of a fleet share. The set "tasks" has the records, and
// the set "tasks-ended" has a mark for each that has ended, sorted by the time of its end. The group
// of both is the owner.
//
// A lease is the time at which a record is due, so the clock of the engine says whether it has ended.
// A replica whose clock is behind waits until it has ended by its own clock, too. Limits hold exactly
// for one replica, and may be exceeded by as many tasks as the others create at the same moment.
// Records expire by themselves; Sweep only deletes them sooner.
type fleetStore struct {
	f     *fleet.Fleet
	tasks *fleet.Set
	ended *fleet.Set
	watchers

	// For changes by other replicas, besides the watchers. They are nil, or both set.
	elsewhere func(change taskChange)
	missed    func() // there were changes that are not known

	mu       sync.Mutex
	creating map[string]int // creations of this replica that have not ended, by owner; guarded by mu
	all      int            // of them; guarded by mu
	left     chan struct{}  // closed when one ends; guarded by mu
}

// A taskChange tells another replica of a change. It is a hint: the record says what has changed.
type taskChange struct {
	ID       string `json:"id"`
	Waits    bool   `json:"waits,omitempty"`    // a worker has to run the task, and none does
	Progress string `json:"progress,omitempty"` // only this text has changed
}

func newFleetStore(f *fleet.Fleet) *fleetStore {
	return &fleetStore{
		f: f, tasks: f.Set("tasks", fleetFormat), ended: f.Set("tasks-ended", fleetEndedFormat),
		creating: map[string]int{}, left: make(chan struct{}),
	}
}

// fleetRecord is a record as the fleet has it: JSON, and then the data.
type fleetRecord struct {
	record
	Mark     string `json:"mark,omitempty"` // the key in the set of ended tasks
	revision uint64
}

func (s *fleetStore) encode(r *fleetRecord) (fleet.Record, error) {
	head, err := json.Marshal(r)
	if err != nil {
		return fleet.Record{}, err
	}
	data := binary.AppendUvarint(make([]byte, 0, binary.MaxVarintLen64+len(head)+len(r.Data)), uint64(len(head)))
	data = append(append(data, head...), r.Data...)
	due := r.Expires // for Sweep
	if r.State == stateReady && r.Lease.Before(due) {
		due = r.Lease
	}
	return fleet.Record{
		Key: r.ID, Group: groupOf(r.Owner), Data: data, Revision: r.revision,
		TTL: ttlOf(r.Expires), Due: max(time.Until(due), fleet.AtOnce),
	}, nil
}

func decode(stored fleet.Record) (*fleetRecord, error) {
	size, n := binary.Uvarint(stored.Data)
	if n <= 0 || size > uint64(len(stored.Data)-n) {
		return nil, errors.New("tasks: a record is damaged")
	}
	r := &fleetRecord{revision: stored.Revision}
	if err := json.Unmarshal(stored.Data[n:n+int(size)], r); err != nil {
		return nil, fmt.Errorf("tasks: a record is damaged: %w", err)
	}
	r.ID, r.Data = stored.Key, slices.Clone(stored.Data[n+int(size):])
	return r, nil
}

func groupOf(owner string) string { return fleet.Digest("owner " + owner) }

func ttlOf(expires time.Time) time.Duration { return max(time.Until(expires), 0) + fleetGrace }

// storeError returns err as a [store] does. An ID that no record can have is that of none.
func storeError(err error) error {
	switch {
	case errors.Is(err, fleet.ErrNotFound), errors.Is(err, fleet.ErrInvalid):
		return errNotFound
	case errors.Is(err, fleet.ErrConflict), errors.Is(err, fleet.ErrExists):
		return errConflict
	}
	return err
}

func (s *fleetStore) load(ctx context.Context, id string) (*fleetRecord, error) {
	if fleet.CheckNames(id) != nil {
		return nil, errNotFound
	}
	stored, err := s.tasks.Get(ctx, id)
	if err != nil {
		return nil, storeError(err)
	}
	return decode(stored)
}

// write replaces a record, or creates it if it has no revision.
func (s *fleetStore) write(ctx context.Context, r *fleetRecord) error {
	stored, err := s.encode(r)
	if err != nil {
		return err
	}
	if r.revision == 0 {
		_, err = s.tasks.Create(ctx, stored)
	} else {
		_, err = s.tasks.Update(ctx, stored)
	}
	if err != nil {
		return storeError(err)
	}
	s.tell(taskChange{ID: r.ID, Waits: r.State == stateReady && !time.Now().Before(r.Lease)})
	return nil
}

// tell tells the watchers of this replica, and the other replicas.
func (s *fleetStore) tell(change taskChange) {
	s.f.Tell("", kindTask, change)
	s.Changed(change.ID)
}

// errCrowded means that creations which have not ended may have taken the last place.
var errCrowded = errors.New("tasks: others take a place")

// Create implements [store].
func (s *fleetStore) Create(ctx context.Context, r *record, limits limits) error {
	for {
		err := s.createOne(ctx, r, limits)
		if err != errCrowded {
			return err
		}
		s.mu.Lock()
		left, others := s.left, s.all
		s.mu.Unlock()
		if others == 0 {
			continue
		}
		select {
		case <-left:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *fleetStore) createOne(ctx context.Context, r *record, limits limits) error {
	s.mu.Lock()
	own, all := s.creating[r.Owner], s.all
	s.creating[r.Owner]++
	s.all++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.creating[r.Owner]--; s.creating[r.Owner] == 0 {
			delete(s.creating, r.Owner)
		}
		s.all--
		close(s.left)
		s.left = make(chan struct{})
	}()
	if err := s.makeRoom(ctx, r.Owner, limits, own, all); err != nil {
		return err
	}
	n := &fleetRecord{record: *r}
	n.Version = 1
	if r.State == stateEnded {
		mark, err := s.mark(ctx, r)
		if err != nil {
			return err
		}
		n.Mark = mark
	}
	err := s.write(ctx, n)
	if err == nil {
		r.Version = 1
	}
	return err
}

// makeRoom checks the limits for a new record, and deletes ended records of an owner that has too
// many. own and all are how many other records this replica creates at the moment.
func (s *fleetStore) makeRoom(ctx context.Context, owner string, limits limits, own, all int) error {
	group := groupOf(owner)
	n, err := s.tasks.Count(ctx, group)
	if err != nil {
		return err
	}
	if limits.Open > 0 && n+own >= limits.Open {
		ended, err := s.ended.Count(ctx, group)
		if err != nil {
			return err
		}
		if err := enough(n-ended, own, &limitError{Limit: limits.Open}); err != nil {
			return err
		}
	}
	for limits.Kept > 0 && n+own >= limits.Kept {
		evicted, err := s.evict(ctx, group)
		switch {
		case err != nil:
			return err
		case evicted:
			n--
		default:
			return enough(n, own, &limitError{Limit: limits.Kept})
		}
	}
	if limits.Total == 0 {
		return nil
	}
	if n, err = s.tasks.Count(ctx, ""); err != nil {
		return err
	}
	return enough(n, all, &limitError{Total: true, Limit: limits.Total})
}

// enough returns an error if there are n records and no place is left, or if that depends on those
// that are being created.
func enough(n, creating int, limit *limitError) error {
	switch {
	case n >= limit.Limit:
		return limit
	case n+creating >= limit.Limit:
		return errCrowded
	}
	return nil
}

// evict deletes the record of a group that ended first. It reports whether there was one.
func (s *fleetStore) evict(ctx context.Context, group string) (bool, error) {
	after := ""
	for {
		marks, err := s.ended.List(ctx, group, after, 1)
		if err != nil || len(marks) == 0 {
			return false, err
		}
		mark := marks[0].Key
		_, id, _ := strings.Cut(mark, "-")
		r, err := s.load(ctx, id)
		evicts := err == nil && r.State == stateEnded && r.Mark == mark
		if evicts {
			err = s.tasks.Delete(ctx, id, 0)
		}
		if err == nil || errors.Is(err, errNotFound) {
			err = s.ended.Delete(ctx, mark, 0) // also one whose record was never ended
		}
		if err != nil {
			return false, err
		}
		if evicts {
			s.tell(taskChange{ID: id})
			return true, nil
		}
		after = mark
	}
}

// mark notes that a record ends now. The mark comes before the end: one too many only lets the owner
// have another task, and is deleted when it is found.
func (s *fleetStore) mark(ctx context.Context, r *record) (string, error) {
	mark := fmt.Sprintf("%016x-%s", time.Now().UnixNano(), r.ID)
	_, err := s.ended.Create(ctx, fleet.Record{Key: mark, Group: groupOf(r.Owner), TTL: ttlOf(r.Expires)})
	if errors.Is(err, fleet.ErrInvalid) {
		return "", fmt.Errorf("tasks: the ID %.70q is too long", r.ID)
	}
	return mark, err
}

// Get implements [store].
func (s *fleetStore) Get(ctx context.Context, id string) (*record, error) {
	r, err := s.load(ctx, id)
	if err != nil {
		return nil, err
	}
	return &r.record, nil
}

// Update implements [store].
func (s *fleetStore) Update(ctx context.Context, r *record) (err error) {
	mark := ""
	defer func() {
		if mark != "" && (errors.Is(err, errConflict) || errors.Is(err, errNotFound)) {
			_ = s.ended.Delete(ctx, mark, 0) // or evict finds it
		}
	}()
	for range conflictsInARow {
		old, err := s.load(ctx, r.ID)
		if err != nil {
			return err
		}
		if old.Version != r.Version {
			return errConflict
		}
		n := &fleetRecord{*r, old.Mark, old.revision}
		n.Version++
		n.Owner = old.Owner // the group stays
		if r.State == stateEnded && n.Mark == "" {
			if mark == "" {
				if mark, err = s.mark(ctx, &n.record); err != nil {
					return err
				}
			}
			n.Mark = mark
		}
		err = s.write(ctx, n)
		if err == nil {
			r.Version++
		}
		if !errors.Is(err, errConflict) { // the lease may have been extended
			return err
		}
	}
	return errConflict
}

// Claim implements [store]. It prefers the record that was created first.
func (s *fleetStore) Claim(ctx context.Context, before, until time.Time) (*record, error) {
	limit := claimPage
	for range conflictsInARow {
		due, err := s.due(ctx, limit)
		if err != nil {
			return nil, err
		}
		full := len(due) == limit
		due = slices.DeleteFunc(due, func(r *fleetRecord) bool { return r.State != stateReady || !r.Lease.Before(before) })
		if len(due) == 0 {
			if !full || limit == claimPages {
				return nil, errNotFound
			}
			limit = claimPages
			continue
		}
		slices.SortFunc(due, func(a, b *fleetRecord) int { return a.Created.Compare(b.Created) })
		for _, r := range due {
			r.Lease = until
			r.Fence++
			r.Version++
			err := s.write(ctx, r)
			if err == nil {
				return &r.record, nil
			}
			if !errors.Is(err, errConflict) && !errors.Is(err, errNotFound) {
				return nil, err
			}
		}
	}
	return nil, errNotFound // other replicas have claimed all
}

// due returns records whose lease has ended or that have expired, by the clock of the engine.
func (s *fleetStore) due(ctx context.Context, limit int) ([]*fleetRecord, error) {
	stored, err := s.tasks.Due(ctx, 0, limit)
	if err != nil {
		return nil, err
	}
	all := make([]*fleetRecord, 0, len(stored))
	for _, one := range stored {
		r, err := decode(one)
		if err != nil {
			s.f.Logger().WarnContext(ctx, "tasks: a record is left out", "task", short(one.Key), "error", err)
			continue
		}
		all = append(all, r)
	}
	return all, nil
}

// Extend implements [store].
func (s *fleetStore) Extend(ctx context.Context, id string, fence int64, until time.Time) error {
	for range conflictsInARow {
		r, err := s.load(ctx, id)
		if err != nil {
			return err
		}
		if r.Fence != fence || r.State != stateReady {
			return errConflict
		}
		r.Lease = until
		stored, err := s.encode(r)
		if err == nil {
			_, err = s.tasks.Update(ctx, stored)
		}
		if err = storeError(err); !errors.Is(err, errConflict) {
			return err
		}
	}
	return errConflict
}

// List implements [store].
func (s *fleetStore) List(ctx context.Context, owner, after string, limit int) ([]*record, error) {
	if after != "" && fleet.CheckNames(after) != nil {
		return nil, nil // no replica has returned such a cursor
	}
	stored, err := s.tasks.List(ctx, groupOf(owner), after, limit)
	if err != nil {
		return nil, err
	}
	list := make([]*record, 0, len(stored))
	for _, one := range stored {
		r, err := decode(one)
		if err != nil {
			return nil, err
		}
		list = append(list, &r.record)
	}
	return list, nil
}

// Sweep implements [store]. It deletes the expired records that it finds among those that are due.
func (s *fleetStore) Sweep(ctx context.Context, before time.Time) (deleted int, err error) {
	for {
		due, err := s.due(ctx, sweepPage)
		if err != nil {
			return deleted, err
		}
		was := deleted
		for _, r := range due {
			if !r.Expires.Before(before) {
				continue
			}
			err := s.tasks.Delete(ctx, r.ID, r.revision)
			if errors.Is(err, fleet.ErrConflict) {
				continue
			}
			if err == nil && r.Mark != "" {
				err = s.ended.Delete(ctx, r.Mark, 0)
			}
			if err != nil {
				return deleted, err
			}
			deleted++
			s.tell(taskChange{ID: r.ID})
		}
		if len(due) < sweepPage || deleted == was {
			return deleted, nil
		}
	}
}

// pendingChanges are changes by other replicas that this one has not looked at yet.
type pendingChanges struct {
	wake chan struct{} // has space for one

	mu     sync.Mutex
	all    map[string]taskChange // by ID; guarded by mu
	missed bool                  // there were more; guarded by mu
}

func (n *pendingChanges) add(change taskChange, missed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	old, known := n.all[change.ID]
	switch {
	case missed || !known && len(n.all) >= maxNews:
		n.missed = true
	case known && change.Progress != "" && old.Progress == "":
		// The record has it all, or will be looked at again.
	default:
		change.Waits = change.Waits || old.Waits
		n.all[change.ID] = change
	}
	select {
	case n.wake <- struct{}{}:
	default: // it will look anyway
	}
}

func (n *pendingChanges) take() (all []taskChange, missed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, change := range n.all {
		all = append(all, change)
	}
	slices.SortFunc(all, func(a, b taskChange) int { return cmp.Compare(a.ID, b.ID) })
	missed = n.missed
	n.all, n.missed = map[string]taskChange{}, false
	return all, missed
}

// Watch implements [store], for changes by all replicas.
func (s *fleetStore) Watch(ctx context.Context, changed func(id string)) {
	n := &pendingChanges{wake: make(chan struct{}, 1), all: map[string]taskChange{}}
	off := s.f.On(kindTask, func(_ string, payload []byte) {
		var change taskChange
		if json.Unmarshal(payload, &change) == nil && change.ID != "" {
			n.add(change, false)
		}
	})
	defer off()
	defer s.f.OnMissed(func() { n.add(taskChange{}, true) })()
	n.add(taskChange{}, true) // what came before
	var local sync.WaitGroup
	defer local.Wait()
	local.Go(func() { s.watchers.Watch(ctx, changed) }) // ends with ctx
	for {
		select {
		case <-n.wake:
		case <-ctx.Done():
			return
		}
		all, missed := n.take()
		if missed && s.missed != nil {
			s.missed()
		}
		for _, change := range all {
			if s.elsewhere != nil {
				s.elsewhere(change)
			}
			if change.Progress == "" {
				changed(change.ID)
			}
		}
	}
}

// join makes the tasks of a server those of its fleet.
func (e *engine) join(base context.Context) {
	f := e.runner.Fleet()
	if f == nil || e.shared != nil {
		return
	}
	s := newFleetStore(f)
	s.elsewhere, s.missed = e.elsewhere, func() { e.tend(base) }
	e.told = map[string]int64{}
	e.store, e.shared = s, s
}

// elsewhere does what is due after a change by another replica, besides changed.
func (e *engine) elsewhere(change taskChange) {
	e.mu.Lock()
	base := e.base
	run := running{}
	if place := e.running[change.ID]; place != nil {
		run = *place
	}
	e.mu.Unlock()
	switch {
	case change.Progress != "":
		if e.topic.Subscribed(change.ID) {
			if r, t, err := e.load(base, change.ID); err == nil && t.Status == protocol.TaskWorking {
				t.Message, t.Updated = change.Progress, now()
				e.notify(base, r, t)
			}
		}
	case run.cancel != nil:
		run.unsaved = false
		e.extend(base, change.ID, run) // ends the method if the client cancelled the task
	case change.Waits:
		e.claim(base)
	}
}

// tellProgress tells the other replicas of progress. The record gets it later.
func (e *engine) tellProgress(id, message string) {
	if e.shared != nil {
		e.shared.f.Tell("", kindTask, taskChange{ID: id, Progress: message})
	}
}

// expectNews notes which version of a task its new subscriber knows.
func (e *engine) expectNews(r *record) {
	if e.shared == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, known := e.told[r.ID]; !known {
		e.told[r.ID] = r.Version
	}
}

// lookAtSubscribed notifies subscribers of changes of which this replica has not heard, since the
// replica that made them has died.
func (e *engine) lookAtSubscribed(ctx context.Context) {
	if e.shared == nil {
		return
	}
	keys := e.topic.Keys()
	e.mu.Lock()
	maps.DeleteFunc(e.told, func(id string, _ int64) bool {
		_, subscribed := slices.BinarySearch(keys, id)
		return !subscribed
	})
	e.mu.Unlock()
	for _, id := range keys {
		r, err := e.store.Get(ctx, id)
		if err != nil {
			continue
		}
		e.mu.Lock()
		version, known := e.told[id]
		e.mu.Unlock()
		if !known || version != r.Version {
			e.changed(id)
		}
	}
}
