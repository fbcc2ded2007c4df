package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// An engine runs the tasks of one server.
type engine struct {
	options
	store
	runner mcpkit.Runner
	topic  *mcpkit.Topic

	slots sync.WaitGroup // of running; begun with mu held
	care  sync.WaitGroup // the goroutine of Start
	stop  func()
	wake  chan struct{} // has space for one: there are heard changes

	mu      sync.Mutex
	base    context.Context     // that of Start, without its end; nil before; guarded by mu
	closed  bool                // guarded by mu
	closing <-chan struct{}     // closed by Close; guarded by mu
	running map[string]*run     // by task ID; guarded by mu
	waiting map[string]*waiting // by task ID; guarded by mu
	told    map[string]int64    // the version that subscribers were last notified of, by task ID; guarded by mu
	heard   map[string]change   // changes by other replicas of tasks that matter here, by ID; guarded by mu
	missed  bool                // there were more changes; guarded by mu
	offered bool                // a task waits for a worker; guarded by mu
	claims  int                 // calls of claim that have not ended, of which the first one works; guarded by mu
}

// A run is a slot of this process: a task whose method runs in it, or is about to.
type run struct {
	id      string
	turn    int64
	schema  string
	expires time.Time // of the task: its method ends by itself then; zero until the method runs
	ctx     context.Context
	cancel  context.CancelCauseFunc // of ctx

	message  string    // of the last progress; guarded by engine.mu
	at       time.Time // of it; guarded by engine.mu
	notified time.Time // when subscribers were last notified of progress; guarded by engine.mu
}

// ErrCancelled is the cause with which the context of a method ends when the client cancels the task.
var ErrCancelled = errors.New("tasks: the task was cancelled")

var (
	errClosed = errors.New("tasks: the server is shutting down")
	errLost   = errors.New("tasks: the lease of the task is lost") // another process runs it
)

const (
	maxStarts = 3                      // how often a method is started that ends its process
	restarted = "the server restarted" // the reason why a task fails that is not durable
	closeTime = 5 * time.Second        // how long Close waits for methods
	kindTask  = "task"                 // of the messages between replicas
)

// Start runs the tasks that other processes have left, and renews leases, until Close. The server
// calls it.
func (e *engine) Start(ctx context.Context) error {
	if f := e.runner.Fleet(); f != nil {
		e.f = f
	}
	base := context.WithoutCancel(ctx)
	caring, stop := context.WithCancel(base)
	e.mu.Lock()
	e.base, e.closed, e.closing = base, false, caring.Done()
	e.mu.Unlock()
	off, offMissed := e.f.On(kindTask, e.hear), e.f.OnMissed(e.miss)
	e.stop = func() { stop(); off(); offMissed() }
	e.claim(base, lease) // also what a dead process still leases
	e.care.Go(func() {   // ends with Close
		tick := time.NewTicker(lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-caring.Done():
				return
			case <-e.wake:
				e.follow(base)
			case <-tick.C:
				e.tend(base)
			}
		}
	})
	return nil
}

// Close ends the methods that run. Durable tasks go on in another process, or when the server
// starts again; the others fail.
func (e *engine) Close() error {
	e.mu.Lock()
	e.closed = true
	for _, r := range e.running {
		r.cancel(errClosed)
	}
	e.mu.Unlock()
	e.stop()
	done := make(chan struct{})
	go func() { // ends when the methods have returned
		e.care.Wait() // it claims tasks
		e.slots.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(closeTime):
		e.runner.Logger().Warn("tasks: methods of tasks still run while the server closes")
	}
	return nil
}

// tend renews leases, notifies subscribers of what they have missed, and claims what others have left.
func (e *engine) tend(ctx context.Context) {
	keys := e.topic.Keys()
	e.mu.Lock()
	all := slices.Collect(maps.Values(e.running))
	maps.DeleteFunc(e.told, func(id string, _ int64) bool { _, found := slices.BinarySearch(keys, id); return !found })
	e.mu.Unlock()
	for _, r := range all {
		e.renewLease(ctx, r)
	}
	for _, id := range keys {
		e.notifyOf(ctx, id, false)
	}
	e.claim(ctx, 0)
}

// acquireSlot takes a slot for a task that is to run in this process. It returns nil if there is none,
// or the task has one.
func (e *engine) acquireSlot(id string) *run {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.base == nil || len(e.running) >= e.maxRunning || e.running[id] != nil {
		return nil
	}
	e.slots.Add(1)
	r := &run{id: id}
	r.ctx, r.cancel = context.WithCancelCause(e.base)
	e.running[id] = r
	return r
}

// releaseSlot gives a slot back; nil is none.
func (e *engine) releaseSlot(r *run) {
	if r == nil {
		return
	}
	r.cancel(nil)
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.running, r.id)
	e.slots.Done()
}

// mine changes a task that this process runs. The error is errLost or errEnded if it does not.
func (e *engine) mine(ctx context.Context, r *run, edit func(*task)) (*task, error) {
	return e.change(ctx, r.id, func(t *task) error {
		switch {
		case t.Turn != r.turn:
			return errLost
		case t.Status != protocol.TaskWorking: // or what the method asks is written already
			return errEnded
		}
		edit(t)
		return nil
	})
}

// isLost reports whether an error of mine means that the method runs for nothing.
func isLost(err error) bool {
	return errors.Is(err, errNotFound) || errors.Is(err, errEnded) || errors.Is(err, errLost)
}

// renewLease renews the lease of a task and keeps its progress. It ends the method if the lease is lost
// or the task has ended.
func (e *engine) renewLease(ctx context.Context, r *run) {
	e.mu.Lock()
	expires, message := r.expires, r.message
	e.mu.Unlock()
	if !time.Now().Before(expires) {
		return
	}
	t, err := e.mine(ctx, r, func(t *task) {
		t.Lease, t.Message = time.Now().Add(lease), cmp.Or(message, t.Message)
	})
	switch {
	case errors.Is(err, errEnded) && t.Status == protocol.TaskCancelled:
		r.cancel(ErrCancelled)
	case isLost(err):
		r.cancel(errLost)
	case err != nil:
		e.runner.Logger().ErrorContext(ctx, "tasks: a lease is not renewed", "task", short(r.id), "error", err)
	}
}

// createTask makes the call a task and runs it, at once or when another one has ended. respond makes
// the result of the request.
func (e *engine) createTask(
	ctx context.Context, call *mcpkit.Call, m mode, ttl time.Duration, respond func(protocol.Task) mcpkit.Result,
) (mcpkit.Result, error) {
	id := newID()
	journal, err := e.runner.Detach(call, id)
	if err != nil {
		return nil, err
	}
	created := now()
	t := &task{
		ID: id, Owner: ownerOf(call.Principal()), Created: created, Expires: created.Add(ttl),
		Run: journal, Schema: digest(call.Tool().InputSchema), Durable: m.durable, Status: protocol.TaskWorking,
	}
	e.mu.Lock()
	closed := e.closed
	e.mu.Unlock()
	if closed {
		return nil, mcpkit.Errorf("the server is shutting down; try again later")
	}
	slot := e.acquireSlot(id)
	if slot != nil {
		t.assign(e.f.Replica())
	}
	if err := e.store.create(ctx, t); err != nil {
		e.releaseSlot(slot)
		return nil, err
	}
	response := e.wire(t) // before it changes
	if slot != nil {
		e.start(slot, t)
	} else {
		e.claim(context.WithoutCancel(ctx), 0) // a slot may be free by now
	}
	return respond(response), nil
}

// resumeTask changes a task with edit. If a worker then has to run it, that happens in the slot; nil is
// none.
func (e *engine) resumeTask(ctx context.Context, id string, slot *run, edit func(*task) error) (*task, error) {
	t, err := e.change(ctx, id, func(t *task) error {
		err := edit(t)
		if err == nil && slot != nil && t.Status == protocol.TaskWorking {
			t.assign(e.f.Replica())
		}
		return err
	})
	if err == nil && slot != nil && t.Status == protocol.TaskWorking {
		e.start(slot, t)
	} else {
		e.releaseSlot(slot)
	}
	return t, err
}

// start runs the method of a task in its slot.
func (e *engine) start(r *run, t *task) {
	e.mu.Lock()
	defer e.mu.Unlock()
	base := e.base
	r.turn, r.schema, r.expires = t.Turn, t.Schema, t.Expires
	go func() { // ends with the method, for which Close waits
		defer e.claim(base, 0)
		defer e.releaseSlot(r)
		timed, end := context.WithDeadline(r.ctx, t.Expires)
		defer end()
		t.Run.Keep = func(j *mcpkit.Journal) error {
			if _, err := e.mine(base, r, func(t *task) { t.Run.Journal = *j }); err != nil {
				r.cancel(err)
				return fmt.Errorf("tasks: a value of Once is not kept: %w", err)
			}
			return nil
		}
		out := mcpkit.Outcome{Err: jsonrpc.Errorf(jsonrpc.CodeInternalError, "the method ended its goroutine")}
		defer func() { // also after runtime.Goexit
			e.settle(base, r, out, context.Cause(r.ctx) == errClosed && (out.IsError || out.Err != nil))
		}()
		if context.Cause(r.ctx) != ErrCancelled { // it may have been since the task got its slot
			out = e.runner.Run(timed, t.Run)
		}
	}()
}

// settle writes how a run ended. If the store fails, it tries again for about a minute, in which the
// lease is renewed: otherwise the method would run again.
func (e *engine) settle(ctx context.Context, r *run, out mcpkit.Outcome, interrupted bool) {
	message, _ := e.progressOf(r.id)
	write := func(t *task) {
		t.Worker, t.Lease = "", time.Time{}
		t.Message = cmp.Or(message, t.Message)
		switch {
		case interrupted && t.Durable:
			t.Run.Journal, t.Starts = out.Journal, 0
		case interrupted:
			t.fail(restarted)
		default:
			t.take(out)
		}
	}
	kept := true
	for pause := 100 * time.Millisecond; ; pause *= 2 {
		t, err := e.mine(ctx, r, write)
		if err == nil {
			e.noteChange(ctx, t)
			return
		}
		if isLost(err) {
			return
		}
		e.runner.Logger().ErrorContext(ctx, "tasks: the outcome of a task is not kept", "task", short(r.id), "error", err)
		full, _ := errors.AsType[*limitError](err)
		if kept && (errors.Is(err, fleet.ErrTooLarge) || full != nil) {
			kept = false
			write = func(t *task) { t.fail("the result is larger than the server keeps") }
			continue
		}
		if pause > time.Minute/2 || !e.pause(pause) {
			return
		}
	}
}

// noteChange tells the account of a task, which is corrected later if that fails.
func (e *engine) noteChange(ctx context.Context, t *task) {
	if err := e.note(ctx, t); err != nil {
		e.runner.Logger().WarnContext(ctx, "tasks: a task is not accounted for", "task", short(t.ID), "error", err)
	}
}

// pause waits, and returns false if the server closes first.
func (e *engine) pause(d time.Duration) bool {
	e.mu.Lock()
	closing := e.closing
	e.mu.Unlock()
	select {
	case <-time.After(d):
		return true
	case <-closing:
		return false
	}
}

// claim runs tasks that wait for a worker, and those whose lease ends within the time if their worker
// is dead, as long as there are slots.
func (e *engine) claim(ctx context.Context, within time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.claims++; e.claims > 1 {
		return // the other call goes on
	}
	for done := 0; done < e.claims; within = 0 {
		done = e.claims
		e.mu.Unlock()
		e.claimAll(ctx, within)
		e.mu.Lock()
	}
	e.claims = 0
}

func (e *engine) claimAll(ctx context.Context, within time.Duration) {
	for page := 16; e.hasSlot(); {
		due, err := e.tasks().Due(ctx, within, page)
		if err != nil {
			e.runner.Logger().ErrorContext(ctx, "tasks: no task is claimed", "error", err)
			return
		}
		claimed := false
		for _, r := range due {
			if !e.hasSlot() {
				return
			}
			claimed = e.claimOne(ctx, r) || claimed
		}
		switch {
		case len(due) < page:
			return
		case !claimed && page < 1000: // those that are due first run here
			page = 1000
		case !claimed:
			return
		}
	}
}

func (e *engine) hasSlot() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.closed && e.base != nil && len(e.running) < e.maxRunning
}

// claimOne runs a task, unless another worker has it or it cannot be run again. It reports whether it
// changed the task.
func (e *engine) claimOne(ctx context.Context, r fleet.Record) bool {
	t, err := decode(r)
	if err != nil {
		if !errors.Is(err, errNotFound) {
			e.tasks().LeaveOut(r.Key, err)
		}
		return false
	}
	if time.Now().Before(t.Lease) && t.Worker != e.f.Replica() {
		if alive, err := e.f.Alive(ctx, t.Worker); alive || err != nil {
			return false
		}
	}
	slot := e.acquireSlot(t.ID)
	if slot == nil { // for example since it runs here, and renews its lease late
		return false
	}
	revision := t.revision
	t, err = e.resumeTask(ctx, t.ID, slot, func(now *task) error {
		switch {
		case now.revision != revision || now.Status != protocol.TaskWorking:
			return errUnchanged
		case now.Starts > 0 && !now.Durable:
			now.fail(restarted)
		case now.Starts >= maxStarts:
			now.fail("the process ended %d times while the task was running", now.Starts)
		}
		return nil
	})
	switch {
	case err == nil && t.Status.Terminal():
		e.noteChange(ctx, t)
	case err != nil && err != errUnchanged && !errors.Is(err, errNotFound):
		e.runner.Logger().ErrorContext(ctx, "tasks: a task is not run", "task", short(r.Key), "error", err)
	}
	return err == nil
}

// rerun checks a method that is about to run again, and follows its progress.
func (e *engine) rerun(call *mcpkit.Call) error {
	e.mu.Lock()
	r := e.running[call.Run().ID]
	e.mu.Unlock()
	if r == nil {
		return nil // of the server that this one is mounted in
	}
	if r.schema != digest(call.Tool().InputSchema) {
		return jsonrpc.Errorf(jsonrpc.CodeInternalError, "the arguments of the tool have changed since the task began")
	}
	call.Trace(func(_ context.Context, event mcpkit.TraceEvent) (context.Context, func(error)) {
		if event.Kind == mcpkit.TraceProgress {
			e.progress(r, event.Text)
		}
		return nil, nil
	})
	return nil
}

// answer gives a task answers to its questions. It runs again when it has all.
func (e *engine) answer(ctx context.Context, call *mcpkit.Call, id string, responses []byte) error {
	if _, err := e.find(ctx, call, id); err != nil {
		return err
	}
	_, err := e.resumeTask(ctx, id, e.acquireSlot(id), func(t *task) error {
		n, err := t.Run.Journal.Answer(responses)
		switch {
		case err != nil:
			return err
		case n == 0 || t.Status != protocol.TaskInputRequired:
			return errUnchanged // unknown keys, and questions that have answers, are ignored
		case len(t.Run.Journal.Questions()) == 0:
			t.Status = protocol.TaskWorking
		}
		return nil
	})
	switch {
	case err == errUnchanged:
		return nil
	case errors.Is(err, errNotFound):
		return notFound(id)
	case err == nil:
		e.claim(context.WithoutCancel(ctx), 0) // a slot may be free by now
	}
	return err
}

// cancelTask cancels a task. It reports whether the task had not ended.
func (e *engine) cancelTask(ctx context.Context, call *mcpkit.Call, id string) (*task, bool, error) {
	if _, err := e.find(ctx, call, id); err != nil {
		return nil, false, err
	}
	t, err := e.change(ctx, id, func(t *task) error {
		if t.Status.Terminal() {
			return errEnded
		}
		t.end(protocol.TaskCancelled, "the client cancelled the task")
		return nil
	})
	switch {
	case errors.Is(err, errEnded):
		return t, false, nil
	case errors.Is(err, errNotFound):
		return nil, false, notFound(id)
	case err != nil:
		return nil, false, err
	}
	e.mu.Lock()
	if r := e.running[id]; r != nil {
		r.cancel(ErrCancelled)
	}
	e.mu.Unlock()
	e.noteChange(ctx, t)
	return t, true, nil
}

// progress keeps the text of a progress report of a method that runs. Subscribers are notified at most
// once in each poll interval.
func (e *engine) progress(r *run, message string) {
	e.mu.Lock()
	tell := false
	if message != "" && e.running[r.id] == r {
		r.message, r.at = message, now()
		if tell = time.Since(r.notified) >= e.interval; tell {
			r.notified = time.Now()
		}
	}
	base := e.base
	e.mu.Unlock()
	if tell {
		e.f.Tell("", kindTask, change{ID: r.id, Progress: message}) // the record gets it later
		e.notifyOf(base, r.id, true)
	}
}

// progressOf returns the text of the last progress report, "" if there is none.
func (e *engine) progressOf(id string) (string, time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.running[id]; r != nil {
		return r.message, r.at
	}
	return "", time.Time{}
}

// A change tells another replica of a change of a task. It is a hint: the record says what has changed.
type change struct {
	ID       string `json:"id"`
	Waits    bool   `json:"waits,omitempty"`    // a worker has to run the task, and none does
	Progress string `json:"progress,omitempty"` // only this text has changed
}

// changed tells the other replicas, subscribers and requests that wait of a change of a task.
func (e *engine) changed(t *task) {
	e.f.Tell("", kindTask, change{ID: t.ID, Waits: t.Status == protocol.TaskWorking && t.Worker == ""})
	e.changedHere(t.ID)
}

func (e *engine) changedHere(id string) {
	e.mu.Lock()
	if w := e.waiting[id]; w != nil {
		close(w.changed)
		delete(e.waiting, id)
	}
	base := e.base
	e.mu.Unlock()
	e.notifyOf(base, id, true)
}

// hear notes a change by another replica, if that matters here.
func (e *engine) hear(_ string, payload []byte) {
	var c change
	if json.Unmarshal(payload, &c) != nil {
		return
	}
	subscribed := e.topic.Subscribed(c.ID)
	e.mu.Lock()
	defer e.mu.Unlock()
	if old, known := e.heard[c.ID]; subscribed || e.waiting[c.ID] != nil || e.running[c.ID] != nil {
		if !known || old.Progress != "" { // otherwise the record has it all
			e.heard[c.ID] = c
		}
	}
	e.offered = e.offered || c.Waits
	e.wakeLocked()
}

// miss notes that there were changes by other replicas.
func (e *engine) miss() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.missed = true
	e.wakeLocked()
}

func (e *engine) wakeLocked() {
	select {
	case e.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// follow does what is due after changes by other replicas.
func (e *engine) follow(ctx context.Context) {
	e.mu.Lock()
	heard, missed, offered := e.heard, e.missed, e.offered
	e.heard, e.missed, e.offered = map[string]change{}, false, false
	e.mu.Unlock()
	for id, c := range heard {
		if c.Progress != "" {
			if t, err := e.load(ctx, id); err == nil && t.Status == protocol.TaskWorking {
				t.Message, t.Updated = c.Progress, now()
				e.notify(ctx, t)
			}
			continue
		}
		e.changedHere(id)
		e.mu.Lock()
		r := e.running[id]
		e.mu.Unlock()
		if r != nil {
			e.renewLease(ctx, r) // ends the method if the client cancelled the task
		}
	}
	switch {
	case missed:
		e.tend(ctx)
	case offered:
		e.claim(ctx, 0)
	}
}

// notifyOf notifies the subscribers of a task, if there are any. If it is not known that something has
// changed, they are notified of a version that they do not know.
func (e *engine) notifyOf(ctx context.Context, id string, changed bool) {
	if !e.topic.Subscribed(id) {
		return
	}
	t, err := e.load(ctx, id)
	if err != nil {
		return
	}
	e.mu.Lock()
	version, known := e.told[id]
	e.mu.Unlock()
	if changed || !known || version != t.Version {
		e.notify(ctx, t)
	}
}

// notify notifies the subscribers of a task.
func (e *engine) notify(ctx context.Context, t *task) {
	if err := e.topic.Notify(t.ID, e.detailed(t)); err != nil {
		e.runner.Logger().ErrorContext(ctx, "tasks: subscribers are not notified", "task", short(t.ID), "error", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told[t.ID] = t.Version
}

// waiting is who waits for a task.
type waiting struct {
	changed chan struct{} // closed when the task changes
	n       int           // requests that wait
}

// next returns a channel that is closed when the task changes. Call forget when nothing waits for
// it any longer.
func (e *engine) next(id string) (changed <-chan struct{}, forget func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.waiting[id]
	if w == nil {
		w = &waiting{changed: make(chan struct{})}
		e.waiting[id] = w
	}
	w.n++
	return w.changed, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if w.n--; w.n == 0 && e.waiting[id] == w {
			delete(e.waiting, id)
		}
	}
}
