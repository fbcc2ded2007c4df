package events

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"reflect"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth"
)

const (
	lease    = 15 * time.Second // how long a watch belongs to a replica that does not renew its claim
	grace    = time.Minute      // for how much longer records live, since the clocks of replicas differ
	feedTime = 5 * time.Minute  // for how long a method of an event runs after somebody wanted it
	maxOwned = 100              // watches of one principal
	maxWatch = 64 << 10         // bytes of a watch

	watchFormat = 1
)

// A watch is what one replica does for as long as somebody wants it: it delivers the webhooks of a
// subscription, or runs the method of an event for those who poll and stream.
type watch struct {
	ID string `json:"-"`
	interest
	Expires time.Time `json:"expires"`        // zero: there is no such watch
	Hook    *webhook  `json:"hook,omitempty"` // nil: it runs a method

	Worker string    `json:"worker,omitempty"` // the replica that does it, until the lease ends
	Lease  time.Time `json:"lease,omitzero"`
	Turn   string    `json:"turn"` // of the worker that has got it
}

var (
	errUnchanged = errors.New("events: nothing to change")
	errLost      = errors.New("events: another replica has the watch")
	errGone      = errors.New("events: the watch has ended")
)

func (e *engine) watches() *fleet.Set { return e.store().Set("events-watches", watchFormat) }

// revocations are records without data: what counts is their revisions.
func (e *engine) revocations() *fleet.Set { return e.store().Set("events-revocations", watchFormat) }

// find returns the watch with an ID. Its Expires is zero if there is no such watch, or it has expired.
func (e *engine) find(ctx context.Context, id string) (*watch, error) {
	r, err := e.watches().Get(ctx, id)
	if err != nil && !errors.Is(err, fleet.ErrNotFound) {
		return nil, err
	}
	r.Key = id
	return decodeWatch(&r)
}

// decodeWatch is find for the record of a watch.
func decodeWatch(r *fleet.Record) (w *watch, err error) {
	w = &watch{ID: r.Key}
	if r.Revision != 0 {
		err = jsonx.Unmarshal(r.Data, w)
	}
	if !time.Now().Before(w.Expires) {
		w = &watch{ID: r.Key}
	}
	return w, err
}

// change changes the watch that find returns. edit returns an error to leave it as it is.
func (e *engine) change(ctx context.Context, id string, edit func(*watch) error) (w *watch, err error) {
	_, err = e.watches().Change(ctx, id, func(r *fleet.Record) error {
		if w, err = decodeWatch(r); err == nil {
			err = edit(w)
		}
		if err == nil {
			r.Data, err = jsonx.Marshal(w)
		}
		if err == nil && len(r.Data) > maxWatch {
			err = e.exhausted("subscription_bytes", maxWatch)
		}
		r.Group = w.owner()
		r.TTL, r.Due = max(time.Until(w.Expires), 0)+grace, max(time.Until(w.Lease), fleet.AtOnce)
		return err
	})
	if errors.Is(err, fleet.ErrFull) {
		err = e.exhausted("subscriptions", 0)
	}
	return w, err
}

func (e *engine) exhausted(limit string, most int) error {
	data := map[string]any{"limit": limit}
	if most > 0 {
		data["max"] = most
	}
	return e.profile.errorf(ResourceExhausted, data, "the limit %q is reached; end a subscription, or try again later", limit)
}

// assign gives a watch to this replica.
func (e *engine) assign(w *watch) {
	w.Worker, w.Lease, w.Turn = e.store().Replica(), time.Now().Add(lease), rand.Text()
}

// ensure makes a watch for an interest, or changes it, with edit. A new one is done by this replica.
func (e *engine) ensure(ctx context.Context, id string, i interest, edit func(*watch) error) (*watch, error) {
	fresh := false
	w, err := e.change(ctx, id, func(w *watch) error {
		w.interest = i
		if fresh = w.Expires.IsZero(); fresh {
			e.assign(w)
		}
		return edit(w)
	})
	if err != nil {
		return nil, err
	}
	if fresh { // counted now, since others may begin at the same time
		if n, err := e.watches().Count(ctx, i.owner()); err != nil || n > maxOwned {
			return nil, cmp.Or(err, e.end(ctx, id), e.exhausted("principal_subscriptions", maxOwned))
		}
	}
	if w.Worker == e.store().Replica() {
		e.work(w)
	}
	e.tell(news{Watch: id})
	return w, nil
}

// feed makes a replica run the method of an event for a while.
func (e *engine) feed(ctx context.Context, f *filter) error {
	_, err := e.ensure(ctx, "feed_"+f.feed, f.interest, func(w *watch) error {
		if time.Until(w.Expires) > feedTime/2 {
			return errUnchanged
		}
		w.Expires = time.Now().Add(feedTime)
		return nil
	})
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
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
	if e.base.Err() != nil || old != nil && old.turn == w.Turn {
		return
	}
	if old != nil {
		old.cancel()
	}
	ctx, cancel := context.WithCancel(e.base)
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
		if e.base.Err() != nil { // another replica goes on at once
			_ = x.renew(context.WithoutCancel(ctx), func(w *watch) { w.Worker, w.Lease = "", time.Time{} })
		}
	})
}

// renew renews the lease, makes the changes of edit, and takes over those of others. It returns errGone
// or errLost if there is nothing more to do here. After any other error all is as before.
func (x *worker) renew(ctx context.Context, edit func(*watch)) error {
	w, err := x.e.change(ctx, x.w.ID, func(w *watch) error {
		switch {
		case w.Expires.IsZero():
			return errGone
		case w.Turn != x.turn:
			return errLost
		}
		w.Lease = time.Now().Add(lease)
		edit(w)
		return nil
	})
	switch {
	case err == nil:
		x.w = w
	case errors.Is(err, errGone), errors.Is(err, errLost), ctx.Err() != nil:
	case !time.Now().Before(x.w.Lease):
		return errLost
	default:
		x.e.runner.Logger().ErrorContext(ctx, "events: a lease is not renewed", "watch", short(x.w.ID), "error", err)
	}
	return err
}

// final reports whether an error of renew means that there is nothing more to do.
func final(err error) bool { return errors.Is(err, errGone) || errors.Is(err, errLost) }

// short returns the beginning of an ID for the log.
func short(id string) string { return id[:min(len(id), 12)] }

// runMethod runs the method of an event until nobody wants that any more.
func (x *worker) runMethod(ctx context.Context) {
	e, i := x.e, x.w.interest
	e.done.Go(func() { // ends with ctx
		for pause := time.Second; ctx.Err() == nil; pause = min(2*pause, time.Minute) {
			out := e.runner.Run(ctx, i.run(MethodStream))
			if out.Err != nil && ctx.Err() == nil {
				e.runner.Logger().ErrorContext(ctx, "events: a method has ended", "event", i.Name, "error", out.Err)
			}
			sleep(ctx, pause)
		}
	})
	for ctx.Err() == nil && !final(x.renew(ctx, func(*watch) {})) {
		select {
		case <-time.After(lease / 3):
		case <-x.poked:
		case <-ctx.Done():
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// tellAll runs the method of an event, and adds what it tells to the log.
func (e *engine) tellAll(ctx context.Context, f *filter) error {
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
			if err = e.log(f.Name).append(ctx, *k); err == nil {
				break
			}
			e.runner.Logger().ErrorContext(ctx, "events: an occurrence is not kept", "event", f.Name, "error", err)
			if errors.Is(err, fleet.ErrTooLarge) { // it never will be
				break
			}
			if sleep(ctx, pause); ctx.Err() != nil {
				return ctx.Err() // the method learns that it was not told
			}
		}
	}
	return ctx.Err()
}

// tend takes over the watches of replicas that no longer renew their leases.
func (e *engine) tend(ctx context.Context) {
	for more := true; more; {
		due, err := e.watches().Due(ctx, 0, 1000)
		if err != nil && ctx.Err() == nil {
			e.runner.Logger().ErrorContext(ctx, "events: no watch is taken over", "error", err)
		}
		more = false
		for _, r := range due {
			w, err := e.change(ctx, r.Key, func(w *watch) error {
				if w.Expires.IsZero() || time.Now().Before(w.Lease) {
					return errUnchanged
				}
				e.assign(w)
				return nil
			})
			if err == nil {
				e.work(w)
				more = true // for the next page
			}
		}
	}
}

// A Revoker ends what principals have subscribed to. Give it to [New]. The zero value is ready to use.
type Revoker struct{ engines engines }

func (r *Revoker) configure(o *options) { o.joined = append(o.joined, &r.engines) }

// Revoke ends the streams and the webhook subscriptions of a principal, on all replicas. Clients are
// told. It does not keep the principal from subscribing again: authentication does.
func (r *Revoker) Revoke(ctx context.Context, p *oauth.Principal) error {
	var faults []error
	owner := (&interest{Principal: p}).owner()
	for key := range r.engines.Range {
		e := key.(*engine)
		_, err := e.revocations().Change(ctx, owner, func(r *fleet.Record) error { r.TTL = 2 * longestTTL; return nil })
		e.tell(news{Revoked: owner})
		all, listed := e.watches().List(ctx, owner, "", 2*maxOwned)
		faults = append(faults, err, listed)
		for _, rec := range all {
			faults = append(faults, e.end(ctx, rec.Key))
		}
	}
	return errors.Join(faults...)
}

// end ends a watch.
func (e *engine) end(ctx context.Context, id string) error {
	defer e.tell(news{Watch: id})
	return e.watches().Delete(ctx, id, 0)
}
