package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// An engine runs the tasks of one server.
type engine struct {
	options
	runner mcpkit.Runner
	topic  *mcpkit.Topic
	shared *fleetStore // the store, if the server is a replica and has no other one

	work sync.WaitGroup // the places that reserve has taken; begun with mu held
	care sync.WaitGroup // the goroutines of Start
	stop context.CancelFunc

	mu      sync.Mutex
	base    context.Context          // guarded by mu: that of Start, without its end; nil before
	closed  bool                     // guarded by mu
	closing <-chan struct{}          // guarded by mu: closed by Close
	running map[string]*running      // guarded by mu: by task ID
	waiting map[string]*waiting      // guarded by mu: by task ID
	polls   map[string]*rate.Limiter // guarded by mu: by task ID
	told    map[string]int64         // guarded by mu: by ID, the version that subscribers were last notified of; in a fleet

	// claims has a channel for each claim that is being made, which is closed at its end. If the task
	// runs here already, its record has a new fence before running has it.
	claims map[chan struct{}]bool // guarded by mu
}

// running is a task whose method runs in this process.
type running struct {
	schema string
	fence  int64
	cancel context.CancelCauseFunc // nil until it runs

	message  string    // of the last progress
	at       time.Time // of it
	unsaved  bool      // the record does not have the message
	notified time.Time // when subscribers were last notified of progress
}

// Causes with which the context of a method ends. Its deadline is the end of the task's TTL.
var (
	// ErrCancelled means that the client cancelled the task.
	ErrCancelled = errors.New("tasks: the task was cancelled")
	// ErrClosed means that the server is shutting down.
	ErrClosed = errors.New("tasks: the server is shutting down")
	// ErrLost means that another process runs the task, since this one did not renew its lease.
	ErrLost = errors.New("tasks: the lease of the task is lost")
)

// maxStarts is how often a method is started that ends its process.
const maxStarts = 3

// restarted is the reason why a task fails that is not durable.
const restarted = "the server restarted"

// Start runs the tasks that other processes have left, and renews leases, until Close. The server
// calls it.
func (e *engine) Start(ctx context.Context) error {
	base := context.WithoutCancel(ctx)
	caring, stop := context.WithCancel(base)
	e.join(base)
	e.mu.Lock()
	e.base, e.closed, e.closing, e.stop = base, false, caring.Done(), stop
	e.mu.Unlock()
	e.care.Go(func() { e.store.Watch(caring, e.changed) }) // ends with Close
	e.claim(base)                                          // before this process has leases of its own
	e.care.Go(func() {                                     // ends with Close
		tick := time.NewTicker(e.lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-caring.Done():
				return
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
	for _, run := range e.running {
		if run.cancel != nil {
			run.cancel(ErrClosed)
		}
	}
	e.mu.Unlock()
	e.stop()
	done := make(chan struct{})
	go func() { // ends when the methods have returned
		e.care.Wait() // it claims tasks
		e.work.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(closeTime):
		e.runner.Logger().Warn("tasks: methods of tasks still run while the server closes")
	}
	return nil
}

// closeTime is how long Close waits for methods.
const closeTime = 5 * time.Second

// tend renews leases, deletes expired tasks, and claims what others have left.
func (e *engine) tend(ctx context.Context) {
	for id, run := range e.snapshot() {
		e.extend(ctx, id, run)
	}
	if _, err := e.store.Sweep(ctx, time.Now()); err != nil {
		e.runner.Logger().ErrorContext(ctx, "tasks: expired tasks are not deleted", "error", err)
	}
	e.forgetPolls()
	e.lookAtSubscribed(ctx)
	e.claim(ctx)
}

// snapshot returns the fences of what runs.
func (e *engine) snapshot() map[string]running {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make(map[string]running, len(e.running))
	for id, run := range e.running {
		if run.cancel != nil {
			all[id] = *run
			run.unsaved = false
		}
	}
	return all
}

// extend renews the lease of a task, and ends its method if it is lost or cancelled.
func (e *engine) extend(ctx context.Context, id string, run running) {
	err := e.store.Extend(ctx, id, run.fence, time.Now().Add(e.lease))
	if err == nil && run.unsaved {
		_, _, err = e.mine(ctx, id, run.fence, func(_ *record, t *task) error { t.Message = run.message; return nil })
	}
	if errors.Is(err, errNotFound) || errors.Is(err, errConflict) || errors.Is(err, errEnded) || errors.Is(err, ErrLost) {
		if e.fenceOf(id) != run.fence {
			return // it has ended, or this process has claimed it again
		}
		cause := ErrLost
		if r, t, err := e.load(ctx, id); err == nil && r.Fence == run.fence && t.Status == protocol.TaskCancelled {
			cause = ErrCancelled
		}
		run.cancel(cause)
		return
	}
	if err != nil {
		e.runner.Logger().ErrorContext(ctx, "tasks: a lease is not renewed", "task", short(id), "error", err)
	}
}

// fenceOf returns the fence with which this process runs a task, after the claims that are being
// made; 0 if it does not run the task.
func (e *engine) fenceOf(id string) int64 {
	e.mu.Lock()
	claims := slices.Collect(maps.Keys(e.claims))
	e.mu.Unlock()
	for _, ended := range claims {
		<-ended
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if run := e.running[id]; run != nil {
		return run.fence
	}
	return 0
}

// own changes a task whose method runs in this process, also if it is claimed again meanwhile. It
// returns the fence with which it did.
func (e *engine) own(ctx context.Context, id string, edit func(*record, *task) error) (fence int64, err error) {
	for fence = e.fenceOf(id); ; {
		_, _, err := e.mine(ctx, id, fence, edit)
		if !errors.Is(err, ErrLost) {
			return fence, err
		}
		now := e.fenceOf(id)
		if now == fence {
			return fence, err
		}
		fence = now
	}
}

// mine changes a task that this process runs with the fence.
func (e *engine) mine(ctx context.Context, id string, fence int64, edit func(*record, *task) error) (*record, *task, error) {
	return e.change(ctx, id, func(r *record, t *task) error {
		switch {
		case t.Status.Terminal():
			return errEnded
		case r.Fence != fence:
			return ErrLost
		}
		return edit(r, t)
	})
}

// reserve takes a place for a task that runs in this process, if there is one.
func (e *engine) reserve(id, schema string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.base == nil || len(e.running) >= e.maxRunning || e.running[id] != nil {
		return false
	}
	e.work.Add(1)
	e.running[id] = &running{schema: schema}
	return true
}

// free gives a place back.
func (e *engine) free(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.running, id)
	e.work.Done()
}

// fill gives a place to a task that this process has leased. It returns false if the task has a place
// already, whose run has asked or is ending: that run gives the lease back.
func (e *engine) fill(place string, r *record) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.running, place)
	if run := e.running[r.ID]; run != nil {
		run.fence = r.Fence
		e.work.Done()
		return false
	}
	e.running[r.ID] = &running{}
	return true
}

// leave gives the place of a run back whose outcome was written with the fence; 0 if it was not. If the
// task has got its answers and was leased again since, it gives this lease back, too.
func (e *engine) leave(ctx context.Context, id string, written int64) {
	e.mu.Lock()
	defer e.work.Done()
	fence := e.running[id].fence
	delete(e.running, id)
	e.mu.Unlock()
	if written == 0 || fence == written {
		return
	}
	_, _, err := e.mine(ctx, id, fence, func(r *record, t *task) error {
		r.Lease, t.Starts = time.Time{}, 0
		return nil
	})
	if err != nil && !errors.Is(err, errEnded) && !errors.Is(err, errNotFound) && !errors.Is(err, ErrLost) {
		e.runner.Logger().ErrorContext(ctx, "tasks: a lease is not given back", "task", short(id), "error", err)
	}
}

// create makes the call a task and runs it, at once or when another one has ended. respond makes
// the result of the request.
func (e *engine) create(ctx context.Context, call *mcpkit.Call, m mode, ttl time.Duration, respond func(protocol.Task) (*mcpkit.ObjectResult, error)) (mcpkit.Result, error) {
	id := newID()
	run, err := call.Detach(id)
	if err != nil {
		return nil, err
	}
	t := &task{Run: run, Schema: digest(call.Tool().InputSchema), Durable: m.durable, Status: protocol.TaskWorking}
	begun := now()
	r := &record{ID: id, Owner: ownerOf(call.Principal()), Created: begun, Expires: begun.Add(ttl)}
	e.mu.Lock()
	closed := e.closed
	e.mu.Unlock()
	if closed {
		return nil, mcpkit.Errorf("the server is shutting down; try again later")
	}
	runs := e.reserve(id, t.Schema)
	if runs {
		r.Lease, r.Fence, t.Starts = time.Now().Add(e.lease), 1, 1
	}
	err = t.encode(r)
	if err == nil {
		err = e.store.Create(ctx, r, e.limits)
	}
	if err != nil {
		if runs {
			e.free(id)
		}
		return nil, err
	}
	created := e.wire(r, t) // before it changes
	if runs {
		e.run(id, r.Fence, r.Expires, t)
	} else {
		e.claim(context.WithoutCancel(ctx)) // a place may be free by now
	}
	return result(respond(created))
}

// run runs the method of a task for which reserve has taken a place.
func (e *engine) run(id string, fence int64, expires time.Time, t *task) {
	e.mu.Lock()
	defer e.mu.Unlock()
	place := e.running[id]
	ctx, cancel := context.WithCancelCause(e.base)
	place.schema, place.fence, place.cancel = t.Schema, fence, cancel
	if e.closed {
		cancel(ErrClosed)
	}
	base := e.base
	go func() { // ends with the method, for which free tells Close
		var written int64
		defer e.claim(base)
		defer func() { e.leave(base, id, written) }()
		defer cancel(nil)
		timed, end := context.WithDeadline(ctx, expires)
		defer end()
		t.Run.Keep = func(j *mcpkit.Journal) error {
			_, err := e.own(base, id, func(_ *record, t *task) error { t.Run.Journal = *j; return nil })
			if err != nil {
				cancel(cmp.Or(err, ErrLost))
				return fmt.Errorf("tasks: a value of Once is not kept: %w", err)
			}
			return nil
		}
		t.Run.Progress = func(_, _ float64, message string) { e.progress(id, message) }
		out := mcpkit.Outcome{Err: jsonrpc.Errorf(jsonrpc.CodeInternalError, "the method ended its goroutine")}
		defer func() { // also after runtime.Goexit
			interrupted := context.Cause(ctx) == ErrClosed && (out.IsError || out.Err != nil)
			written = e.settle(base, id, out, interrupted)
		}()
		out = e.runner.Run(timed, t.Run)
	}()
}

// settle writes how a run ended. If the store fails, it tries again for about a minute, in which the
// lease is renewed: otherwise the method would run again. It returns the fence with which it wrote; 0 if
// it did not.
func (e *engine) settle(ctx context.Context, id string, out mcpkit.Outcome, interrupted bool) (written int64) {
	message, _ := e.progressOf(id)
	write := func(r *record, t *task) error {
		r.Lease = time.Time{}
		t.Message = cmp.Or(message, t.Message)
		switch {
		case interrupted && t.Durable:
			t.Run.Journal, t.Starts = out.Journal, 0
		case interrupted:
			t.fail(restarted)
		default:
			t.take(out)
		}
		return nil
	}
	kept := true
	for pause := 100 * time.Millisecond; ; pause *= 2 {
		fence, err := e.own(ctx, id, write)
		switch {
		case err == nil:
			return fence
		case errors.Is(err, errEnded), errors.Is(err, errNotFound), errors.Is(err, ErrLost):
			return 0
		}
		e.runner.Logger().ErrorContext(ctx, "tasks: the outcome of a task is not kept", "task", short(id), "error", err)
		if kept && errors.Is(err, fleet.ErrTooLarge) {
			kept = false
			write = func(r *record, t *task) error {
				r.Lease = time.Time{}
				t.fail("the result is larger than the server keeps")
				return nil
			}
			continue
		}
		if pause > time.Minute/2 || !e.pause(pause) {
			return 0
		}
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

// claim runs tasks whose workers have left them, as long as there are places.
func (e *engine) claim(ctx context.Context) {
	for {
		// The place has no ID yet.
		place := "claim " + newID()
		if !e.reserve(place, "") {
			return
		}
		r, runs, err := e.claimOne(ctx)
		if err != nil || runs {
			e.free(place)
		}
		if err != nil {
			if !errors.Is(err, errNotFound) {
				e.runner.Logger().ErrorContext(ctx, "tasks: no task is claimed", "error", err)
			}
			return
		}
		if !runs {
			e.adopt(ctx, place, r)
		}
	}
}

// claimOne claims a task. runs is set if it runs here already: its lease was renewed late.
func (e *engine) claimOne(ctx context.Context) (r *record, runs bool, err error) {
	ended := make(chan struct{})
	defer close(ended)
	e.mu.Lock()
	e.claims[ended] = true
	e.mu.Unlock()
	now := time.Now()
	r, err = e.store.Claim(ctx, now, now.Add(e.lease))
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.claims, ended)
	if err != nil {
		return nil, false, err
	}
	run := e.running[r.ID]
	if run == nil || run.cancel == nil {
		return r, false, nil
	}
	run.fence = r.Fence
	return r, true, nil
}

// adopt runs a task that was claimed, unless it cannot be run again.
func (e *engine) adopt(ctx context.Context, place string, r *record) {
	_, t, err := e.mine(ctx, r.ID, r.Fence, func(r *record, t *task) error {
		switch {
		case t.Starts > 0 && !t.Durable:
			t.fail(restarted)
		case t.Starts >= maxStarts:
			t.fail("the process ended %d times while the task was running", t.Starts)
		default:
			t.Starts++
		}
		return nil
	})
	if err == nil && !t.Status.Terminal() {
		if e.fill(place, r) {
			e.run(r.ID, r.Fence, r.Expires, t)
		}
		return
	}
	e.free(place)
	switch {
	case errors.Is(err, errNotFound): // it has expired or cannot be read: nobody can run it
		r.State = stateEnded
		_ = e.store.Update(ctx, r)
	case err != nil && !errors.Is(err, errEnded) && !errors.Is(err, ErrLost):
		e.runner.Logger().ErrorContext(ctx, "tasks: a task is not run", "task", short(r.ID), "error", err)
	}
}

// rerun checks a method that is about to run again.
func (e *engine) rerun(call *mcpkit.Call) error {
	e.mu.Lock()
	run := e.running[call.Run().ID]
	if run == nil { // of an extension of a mounted server
		e.mu.Unlock()
		return nil
	}
	schema := run.schema
	e.mu.Unlock()
	if schema != digest(call.Tool().InputSchema) {
		return jsonrpc.Errorf(jsonrpc.CodeInternalError, "the arguments of the tool have changed since the task began")
	}
	return nil
}

// errUnchanged is the error of an edit that has nothing to change.
var errUnchanged = errors.New("tasks: nothing to change")

// answer gives a task answers to its questions. It runs again when it has all.
func (e *engine) answer(ctx context.Context, call *mcpkit.Call, id string, responses []byte) error {
	if _, _, err := e.find(ctx, call, id); err != nil {
		return err
	}
	place := "answer " + newID()
	runs := e.reserve(place, "")
	r, t, err := e.change(ctx, id, func(r *record, t *task) error {
		n, err := t.Run.Journal.Answer(responses)
		switch {
		case err != nil:
			return err
		case n == 0 || t.Status != protocol.TaskInputRequired:
			return errUnchanged
		case len(t.Run.Journal.Questions()) > 0:
			return nil
		}
		t.Status = protocol.TaskWorking
		if runs {
			r.Lease, t.Starts = time.Now().Add(e.lease), 1
			r.Fence++
		}
		return nil
	})
	if runs && (err != nil || t.Status != protocol.TaskWorking) {
		e.free(place)
		runs = false
	}
	if err == errUnchanged {
		return nil // unknown keys, and questions that have answers, are ignored
	}
	if errors.Is(err, errNotFound) {
		return notFound(id)
	}
	switch {
	case runs:
		if e.fill(place, r) {
			e.run(id, r.Fence, r.Expires, t)
		}
	case err == nil && t.Status == protocol.TaskWorking:
		e.claim(context.WithoutCancel(ctx)) // a place may be free by now
	}
	return err
}

// cancel cancels a task. It reports whether the task had not ended.
func (e *engine) cancel(ctx context.Context, call *mcpkit.Call, id string) (*record, *task, bool, error) {
	if _, _, err := e.find(ctx, call, id); err != nil {
		return nil, nil, false, err
	}
	r, t, err := e.change(ctx, id, func(r *record, t *task) error {
		if t.Status.Terminal() {
			return errEnded
		}
		r.Lease = time.Time{}
		t.end(protocol.TaskCancelled, "the client cancelled the task")
		return nil
	})
	switch {
	case errors.Is(err, errEnded):
		return r, t, false, nil
	case errors.Is(err, errNotFound):
		return nil, nil, false, notFound(id)
	case err != nil:
		return nil, nil, false, err
	}
	e.mu.Lock()
	if run := e.running[id]; run != nil && run.cancel != nil {
		run.cancel(ErrCancelled)
	}
	e.mu.Unlock()
	return r, t, true, nil
}

// progress keeps the text of a progress report. Subscribers are notified at most once in each poll
// interval.
func (e *engine) progress(id, message string) {
	if message == "" {
		return
	}
	e.mu.Lock()
	run := e.running[id]
	if run == nil {
		e.mu.Unlock()
		return
	}
	run.message, run.at, run.unsaved = message, now(), true
	tell := time.Since(run.notified) >= e.interval
	if tell {
		run.notified = time.Now()
	}
	e.mu.Unlock()
	if tell {
		e.tellProgress(id, message)
		e.changed(id)
	}
}

// progressOf returns the text of the last progress report, "" if there is none.
func (e *engine) progressOf(id string) (string, time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if run := e.running[id]; run != nil {
		return run.message, run.at
	}
	return "", time.Time{}
}

// changed tells who waits for a task, and its subscribers.
func (e *engine) changed(id string) {
	e.mu.Lock()
	base := e.base
	if w := e.waiting[id]; w != nil {
		close(w.changed)
		delete(e.waiting, id)
	}
	e.mu.Unlock()
	if !e.topic.Subscribed(id) {
		return
	}
	r, t, err := e.load(base, id)
	if err != nil {
		return
	}
	e.notify(base, r, t)
}

// notify notifies the subscribers of a task.
func (e *engine) notify(ctx context.Context, r *record, t *task) {
	if _, err := e.topic.Notify(r.ID, e.detailed(r, t)); err != nil {
		e.runner.Logger().ErrorContext(ctx, "tasks: subscribers are not notified", "task", short(r.ID), "error", err)
	}
	if e.shared != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.told[r.ID] = r.Version
	}
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

// pollBurst is how many requests for a task may come faster than its poll interval.
const pollBurst = 20

// mayPoll returns an error if a task is asked for much more often than its poll interval says.
func (e *engine) mayPoll(id string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.polls[id]
	if p == nil {
		p = rate.NewLimiter(rate.Every(e.interval), pollBurst)
		e.polls[id] = p
	}
	if !p.Allow() {
		return &mcpkit.RateLimitError{After: e.interval}
	}
	return nil
}

// forgetPolls forgets the tasks that nobody asks for.
func (e *engine) forgetPolls() {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.polls, func(_ string, p *rate.Limiter) bool { return p.Tokens() == pollBurst })
}
