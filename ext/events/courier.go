package events

import (
	"context"
	"net/http"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

const (
	maxAttempts = 12 // of an occurrence, about 20 minutes; then the subscription is suspended
	maxRefusals = 5  // of an occurrence that the receiver refuses; then it is given up
	longestWait = 5 * time.Minute
	checkEvery  = time.Minute // between questions whether the subscriber may still know
	saveEvery   = time.Second
)

// A courier is a worker that delivers the webhooks of one subscription, one after another, so that what
// was not accepted is never passed over. What it writes of its progress is at most a second old: after a
// crash, another one delivers that again, with the same IDs.
type courier struct {
	*worker
	hook     webhook // with the progress that is not written yet
	filter   *filter
	checked  time.Time // when the filter was
	attempts int       // of the next occurrence
	retryAt  time.Time
	savedAt  time.Time
	unsaved  bool
	missed   bool // an occurrence was lost since the progress was written
	gap      bool // the receiver has to be told so
}

// run delivers until the subscription ends.
func (c *courier) run(ctx context.Context) {
	c.hook, c.savedAt = *c.w.Hook, time.Now()
	for c.step(ctx) {
	}
	if ctx.Err() != nil {
		c.save(context.WithoutCancel(ctx))
	}
}

// step does what is due, or waits. It returns false if the subscription has ended.
func (c *courier) step(ctx context.Context) bool {
	l := c.e.log(c.w.Name)
	more := l.more()
	since := time.Since(c.savedAt)
	if since >= lease/3 || c.unsaved && since >= saveEvery {
		if !c.save(ctx) {
			return false
		}
	}
	switch now := time.Now(); {
	case c.hook.Ended != nil:
		c.control(ctx, Control{Type: ControlTerminated, Error: c.hook.Ended})
		return c.end(ctx)
	case (c.filter == nil || c.filter.feed != "") && now.Sub(c.checked) > checkEvery: // a method runs on
		return c.check(ctx)
	case c.filter == nil || !c.hook.Active:
		return c.wait(ctx, nil, lease/3)
	case now.Before(c.retryAt):
		return c.wait(ctx, nil, min(c.retryAt.Sub(now), lease/3))
	}
	b := l.read(ctx, c.filter, c.hook.Position, 1)
	if b.truncated {
		c.missed, c.gap, c.unsaved = true, true, true
	}
	switch {
	case len(b.kept) == 0:
		c.advance(b.seq)
		if c.unsaved {
			return c.wait(ctx, more, saveEvery)
		}
		return c.wait(ctx, more, lease/3)
	case time.Since(c.checked) > checkEvery:
		return c.check(ctx)
	}
	return c.deliver(ctx, b.kept[0])
}

// wait waits for more, for a change of the subscription, or for some time.
func (c *courier) wait(ctx context.Context, more <-chan struct{}, d time.Duration) bool {
	select {
	case <-more:
	case <-time.After(d):
	case <-c.poked:
		return c.save(ctx)
	case <-ctx.Done():
		return false
	}
	return true
}

// save writes the progress, renews the lease, and takes over what others have changed.
func (c *courier) save(ctx context.Context) bool {
	before := c.w
	ok := c.renew(ctx, func(w *watch) {
		h := *w.Hook
		h.Position, h.Stuck = c.hook.Position, c.hook.Stuck
		h.LastDelivery, h.LastError, h.FailedSince = c.hook.LastDelivery, c.hook.LastError, c.hook.FailedSince
		h.Missed = h.Missed || c.missed
		if h.Refreshes == c.hook.Refreshes {
			h.Active = c.hook.Active
		}
		w.Hook = &h
	})
	if c.savedAt = time.Now(); c.w == before { // it was not written
		return ok && ctx.Err() == nil
	}
	if c.w.Hook.Refreshes != c.hook.Refreshes {
		c.attempts, c.retryAt = 0, time.Time{}
	}
	c.hook, c.unsaved, c.missed = *c.w.Hook, false, false
	return ok && ctx.Err() == nil
}

// advance notes that all up to a position was accepted, given up, or is for others.
func (c *courier) advance(seq uint64) {
	c.unsaved = c.unsaved || seq != c.hook.Position
	c.hook.Position = seq
}

// check asks whether the subscriber may still know of the event.
func (c *courier) check(ctx context.Context) bool {
	f, ended, err := c.e.check(ctx, c.w.Name, c.w.Arguments, c.w.Principal)
	if err == nil && ended == nil {
		err = c.e.log(c.w.Name).sync(ctx)
	}
	if err == nil && ended == nil {
		err = c.e.feed(ctx, f, feedByPoll)
	}
	switch {
	case ended != nil:
		c.hook.Ended = ended
	case err != nil:
		c.filter, c.checked = nil, time.Now().Add(lease/3-checkEvery) // in a third of a lease again
	default:
		c.filter, c.checked = f, time.Now()
	}
	return ctx.Err() == nil
}

// end removes the subscription.
func (c *courier) end(ctx context.Context) bool {
	if err := c.e.watches().Delete(ctx, c.w.ID, 0); err != nil {
		c.e.runner.Logger().ErrorContext(ctx, "events: a subscription that has ended is not removed", "watch", short(c.w.ID), "error", err)
	}
	return false
}

// deliver delivers an occurrence, once.
func (c *courier) deliver(ctx context.Context, k *kept) bool {
	o := c.filter.occurrence(k)
	o.Cursor = cursorOf(k.Seq)
	body, err := jsonx.Marshal(&o)
	if err != nil || len(body) > MaxBody {
		c.giveUp(k)
		return true
	}
	if c.gap {
		c.gap = false
		c.control(ctx, Control{Type: ControlGap, Cursor: cursorOf(k.Seq - 1)})
	}
	id := k.ID
	if profiles[c.e.profile].messageIDs {
		id = "msg_event_" + short(c.w.ID) + k.ID
	}
	status, _, failure := c.post(ctx, id, body)
	if ctx.Err() != nil {
		return false
	}
	if failure == "" {
		c.hook.LastDelivery, c.hook.LastError, c.hook.FailedSince = time.Now().UTC(), "", time.Time{}
		c.attempts, c.hook.Stuck = 0, 0
		c.advance(k.Seq)
		return true
	}
	if status == http.StatusGone { // it does not want this one
		c.attempts = 0
		c.advance(k.Seq)
		return true
	}
	c.unsaved = true
	if c.hook.LastError == "" {
		c.hook.FailedSince = time.Now().UTC()
	}
	c.hook.LastError = failure
	c.attempts++
	return c.failed(ctx, k, status)
}

// failed decides what becomes of an occurrence that was not accepted.
func (c *courier) failed(ctx context.Context, k *kept, status int) bool {
	final := false // the receiver will not accept it later
	switch status {
	case http.StatusRequestEntityTooLarge:
		c.giveUp(k)
		return true
	case 0, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
	default:
		final = status < 500
	}
	switch {
	case final && c.attempts >= maxRefusals, c.attempts >= maxAttempts && c.hook.Stuck == k.Seq:
		c.giveUp(k)
	case c.attempts >= maxAttempts:
		c.hook.Active, c.hook.Stuck, c.attempts = false, k.Seq, 0
		return c.save(ctx)
	default:
		c.retryAt = time.Now().Add(min(time.Second<<(c.attempts-1), longestWait))
	}
	return true
}

// giveUp passes over an occurrence.
func (c *courier) giveUp(k *kept) {
	c.missed, c.gap, c.attempts = true, true, 0
	c.advance(k.Seq)
}

// control sends a body that is not an occurrence, once.
func (c *courier) control(ctx context.Context, control Control) {
	if body, err := jsonx.Marshal(&control); err == nil {
		_, _, _ = c.post(ctx, messageID(control.Type), body)
	}
}

func (c *courier) post(ctx context.Context, id string, body []byte) (status int, answer []byte, failure string) {
	var secrets []Secret
	for _, s := range c.hook.signing() {
		secrets = append(secrets, s.Secret)
	}
	return c.e.client.post(ctx, c.hook.URL, c.w.ID, id, body, secrets...)
}
