package events

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"reflect"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth"
)

const (
	lease    = 30 * time.Second // how long a watch belongs to a replica that does not renew its claim
	grace    = time.Minute      // for how much longer records live, since the clocks of replicas differ
	maxOwned = 100              // watches of one principal
	maxWatch = 64 << 10         // bytes of a watch

	watchFormat = 1
	kindWatch   = "events-watch"   // of messages between replicas: a watch has changed
	kindRevoked = "events-revoked" // of messages between replicas: a principal was revoked
)

// A watch is what one replica does for as long as somebody wants it: it delivers the webhooks of a
// subscription, or runs the method of an event for those who poll and stream.
type watch struct {
	ID        string           `json:"-"`
	Name      string           `json:"name"`
	Arguments json.RawMessage  `json:"arguments"`
	Principal *oauth.Principal `json:"principal,omitempty"`
	Expires   time.Time        `json:"expires"`
	Hook      *webhook         `json:"hook,omitempty"` // nil: it runs a method

	Worker string    `json:"worker,omitempty"` // the replica that does it, until the lease ends
	Lease  time.Time `json:"lease,omitzero"`
	Turn   string    `json:"turn"` // of the worker that has got it

	revision uint64
}

var (
	errUnchanged = errors.New("events: nothing to change")
	errLost      = errors.New("events: another replica has the watch")
)

func (e *engine) watches() *fleet.Set { return e.store().Set("events-watches", watchFormat) }

func (w *watch) encode() (fleet.Record, error) {
	data, err := jsonx.Marshal(w)
	return fleet.Record{
		Key: w.ID, Group: fleet.Digest(w.Principal.Key()), Data: data, Revision: w.revision,
		TTL: max(time.Until(w.Expires), 0) + grace, Due: max(time.Until(w.Lease), fleet.AtOnce),
	}, err
}

func decodeWatch(r fleet.Record) (*watch, error) {
	w := &watch{ID: r.Key, revision: r.Revision}
	return w, jsonx.Unmarshal(r.Data, w)
}

// assign gives the watch to this replica.
func (e *engine) assign(w *watch) {
	w.Worker, w.Lease, w.Turn = e.store().Replica(), time.Now().Add(lease), rand.Text()
}

// find returns a watch. One that has expired is deleted.
func (e *engine) find(ctx context.Context, id string) (*watch, error) {
	r, err := e.watches().Get(ctx, id)
	if err != nil {
		return nil, err
	}
	w, err := decodeWatch(r)
	if err == nil && !time.Now().Before(w.Expires) {
		err = cmp.Or(e.watches().Delete(ctx, id, r.Revision), fleet.ErrNotFound)
	}
	return w, err
}

// change changes a watch, again and again until nobody else has changed it meanwhile. edit returns an
// error to leave it as it is. If there is none, it gets the one that begin returns, which may be nil.
func (e *engine) change(ctx context.Context, id string, begin func() (*watch, error), edit func(*watch) error) (*watch, error) {
	for {
		w, err := e.find(ctx, id)
		if errors.Is(err, fleet.ErrNotFound) && begin != nil {
			w, err = begin()
		}
		switch {
		case errors.Is(err, fleet.ErrConflict):
			continue
		case err != nil:
			return nil, err
		}
		if err := edit(w); err != nil {
			return w, err
		}
		r, err := w.encode()
		switch {
		case err != nil:
			return nil, err
		case len(r.Data) > maxWatch:
			return nil, e.exhausted("subscription_bytes", maxWatch)
		case w.revision == 0:
			w.revision, err = e.watches().Create(ctx, r)
		default:
			w.revision, err = e.watches().Update(ctx, r)
		}
		switch {
		case err == nil:
			return w, nil
		case errors.Is(err, fleet.ErrFull):
			return nil, e.exhausted("subscriptions", 0)
		case !errors.Is(err, fleet.ErrConflict) && !errors.Is(err, fleet.ErrExists) && !errors.Is(err, fleet.ErrNotFound):
			return nil, err
		}
	}
}

func (e *engine) exhausted(limit string, most int) error {
	data := map[string]any{"limit": limit}
	if most > 0 {
		data["max"] = most
	}
	return e.profile.errorf(ResourceExhausted, data, "the limit %q is reached; end a subscription, or try again later", limit)
}

// ensure makes or changes a watch with edit. A new one is done by this replica.
func (e *engine) ensure(ctx context.Context, w watch, edit func(*watch) error) (*watch, error) {
	begin := func() (*watch, error) {
		n, err := e.watches().Count(ctx, fleet.Digest(w.Principal.Key()))
		if err == nil && n >= maxOwned {
			err = e.exhausted("principal_subscriptions", maxOwned)
		}
		e.assign(&w)
		return new(w), err
	}
	kept, err := e.change(ctx, w.ID, begin, edit)
	switch {
	case errors.Is(err, errUnchanged):
		return kept, nil
	case err != nil:
		return nil, err
	case kept.Worker == e.store().Replica():
		e.work(kept)
	}
	e.tellWatch(w.ID)
	return kept, nil
}

// feed makes a replica run the method of an event for a while, if it is one.
func (e *engine) feed(ctx context.Context, f *filter, d time.Duration) error {
	if f.feed == "" {
		return nil
	}
	w := watch{ID: "feed_" + f.feed, Name: f.name, Arguments: f.arguments, Principal: stored(f.principal)}
	_, err := e.ensure(ctx, w, func(w *watch) error {
		if time.Until(w.Expires) > d/2 {
			return errUnchanged
		}
		w.Expires = time.Now().Add(d)
		return nil
	})
	return err
}

// stored returns a principal without its credential.
func stored(p *oauth.Principal) *oauth.Principal {
	if p == nil {
		return nil
	}
	own := *p
	own.Expires = time.Time{}
	return &own
}

// tellWatch tells the worker of a watch, which may be another replica, that it has changed.
func (e *engine) tellWatch(id string) {
	e.store().Tell("", kindWatch, id)
	e.poke(id)
}

func (e *engine) hearWatch(_ string, text []byte) { e.poke(jsonx.String(text)) }

func (e *engine) poke(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.workers[id]; x != nil {
		select {
		case x.poked <- struct{}{}:
		default: // it will look anyway
		}
	}
}

// A worker is this replica at work on a watch.
type worker struct {
	e      *engine
	turn   string
	w      *watch
	poked  chan struct{} // has space for one: the watch has changed
	cancel context.CancelFunc
}

// work begins to work on a watch, if that has not begun.
func (e *engine) work(w *watch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	old := e.workers[w.ID]
	if e.base == nil || old != nil && old.turn == w.Turn {
		return
	}
	if old != nil {
		old.cancel()
	}
	base := e.base
	ctx, cancel := context.WithCancel(base)
	x := &worker{e, w.Turn, w, make(chan struct{}, 1), cancel}
	e.workers[w.ID] = x
	e.done.Go(func() { // ends with the watch, or with Close
		defer cancel()
		if w.Hook != nil {
			(&courier{worker: x}).run(ctx)
		} else {
			x.runMethod(ctx)
		}
		e.mu.Lock()
		if e.workers[w.ID] == x {
			delete(e.workers, w.ID)
		}
		e.mu.Unlock()
		if base.Err() != nil { // another replica goes on at once
			_, _ = x.mine(context.WithoutCancel(ctx), func(w *watch) { w.Worker, w.Lease = "", time.Time{} })
		}
	})
}

// mine changes the watch. The error is errLost if another replica has it, or fleet.ErrNotFound.
func (x *worker) mine(ctx context.Context, edit func(*watch)) (*watch, error) {
	w, err := x.e.change(ctx, x.w.ID, nil, func(w *watch) error {
		if w.Turn != x.turn {
			return errLost
		}
		edit(w)
		return nil
	})
	return w, err
}

// renew renews the lease, and takes over what others have changed. It returns false if there is nothing
// more to do here.
func (x *worker) renew(ctx context.Context, edit func(*watch)) bool {
	w, err := x.mine(ctx, func(w *watch) {
		w.Lease = time.Now().Add(lease)
		edit(w)
	})
	switch {
	case err == nil:
		x.w = w
		return time.Now().Before(w.Expires)
	case errors.Is(err, errLost), errors.Is(err, fleet.ErrNotFound):
		return false
	}
	if ctx.Err() == nil {
		x.e.runner.Logger().ErrorContext(ctx, "events: a lease is not renewed", "watch", short(x.w.ID), "error", err)
	}
	return time.Now().Before(x.w.Lease)
}

// short returns the beginning of an ID for the log.
func short(id string) string { return id[:min(len(id), 12)] }

// runMethod runs the method of an event until nobody wants that any more.
func (x *worker) runMethod(ctx context.Context) {
	e, w := x.e, x.w
	e.done.Go(func() { // ends with ctx
		for pause := time.Second; ctx.Err() == nil; pause = min(2*pause, time.Minute) {
			out := e.runner.Run(ctx, e.run(MethodStream, w.Name, w.Arguments, w.Principal))
			if out.Err != nil && ctx.Err() == nil {
				e.runner.Logger().ErrorContext(ctx, "events: a method has ended", "event", w.Name, "error", out.Err)
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
	})
	for x.renew(ctx, func(*watch) {}) {
		select {
		case <-time.After(lease / 3):
		case <-x.poked:
		case <-ctx.Done():
			return
		}
	}
}

// tell runs the method of an event, and adds what it tells to the log.
func (e *engine) tell(ctx context.Context, f *filter) error {
	if f.method == nil {
		return nil
	}
	for payload, failed := range reflect.ValueOf(f.method).Seq2() {
		if err, _ := failed.Interface().(error); err != nil {
			return err
		}
		k, err := newKept(payload)
		if err != nil {
			return err
		}
		k.Feed = f.feed
		for pause := time.Second; ; pause = min(2*pause, time.Minute) {
			if err = e.log(f.name).append(ctx, *k); err == nil {
				break
			}
			e.runner.Logger().ErrorContext(ctx, "events: an occurrence is not kept", "event", f.name, "error", err)
			if errors.Is(err, fleet.ErrTooLarge) { // it never will be
				break
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// tend takes over the watches of replicas that no longer renew their leases, or are dead.
func (e *engine) tend(ctx context.Context) {
	due, err := e.watches().Due(ctx, lease, 1000)
	if err != nil {
		if ctx.Err() == nil {
			e.runner.Logger().ErrorContext(ctx, "events: no watch is taken over", "error", err)
		}
		return
	}
	for _, r := range due {
		w, err := decodeWatch(r)
		if err != nil {
			e.watches().LeaveOut(r.Key, err)
			continue
		}
		if time.Now().Before(w.Lease) {
			if alive, err := e.store().Alive(ctx, w.Worker); alive || err != nil {
				continue
			}
		}
		turn := w.Turn
		w, err = e.change(ctx, w.ID, nil, func(now *watch) error {
			if now.Turn != turn {
				return errLost
			}
			e.assign(now)
			return nil
		})
		if err == nil {
			e.work(w)
		}
	}
}

// A Revoker ends what principals have subscribed to. Give it to [New]. The zero value is ready to use.
type Revoker struct{ engines engines }

// revoke ends the streams of a principal, and the subscriptions that it is about to make, here.
func (e *engine) revoke(principal string) {
	e.barred.Put(principal, time.Now(), time.Now().Add(time.Minute))
	e.mu.Lock()
	defer e.mu.Unlock()
	for stream, of := range e.streams {
		if of == principal {
			select {
			case stream <- struct{}{}:
			default: // it knows
			}
		}
	}
}

func (e *engine) hearRevoked(_ string, text []byte) { e.revoke(jsonx.String(text)) }

func (r *Revoker) configure(o *options) { o.joined = append(o.joined, &r.engines) }

// Revoke ends the streams and the webhook subscriptions of a principal, on all replicas. Clients are
// told. It does not keep the principal from subscribing again: authentication does.
func (r *Revoker) Revoke(ctx context.Context, p *oauth.Principal) error {
	var faults []error
	for _, e := range r.engines.list() {
		e.revoke(p.Key())
		e.store().Tell("", kindRevoked, p.Key())
		all, err := e.watches().List(ctx, fleet.Digest(p.Key()), "", 2*maxOwned)
		faults = append(faults, err)
		for _, rec := range all {
			faults = append(faults, e.end(ctx, rec.Key))
		}
	}
	return errors.Join(faults...)
}

// end ends a watch of a principal that was revoked.
func (e *engine) end(ctx context.Context, id string) error {
	_, err := e.change(ctx, id, nil, func(w *watch) error {
		if w.Hook == nil {
			w.Expires = time.Now()
		} else {
			w.Hook.Ended = e.forbidden("the access of the caller was revoked")
		}
		return nil
	})
	e.tellWatch(id)
	if errors.Is(err, fleet.ErrNotFound) {
		return nil
	}
	return err
}
