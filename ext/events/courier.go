package events

import (
	"context"
	"math"
	"net/http"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

const (
	maxAttempts = 12 // of an occurrence at which the receiver fails, in about 20 minutes
	maxRefusals = 5  // of an occurrence that the receiver refuses
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
	case now.Before(c.retryAt):
		return c.wait(ctx, nil, min(c.retryAt.Sub(now), lease/3))
	case c.filter == nil:
		return c.check(ctx)
	}
	b, err := l.read(ctx, c.filter, c.hook.Position, 1)
	if err != nil {
		return c.wait(ctx, nil, lease/3)
	}
	if b.truncated {
		c.hook.Gap, c.unsaved = true, true
	}
	switch {
	case (len(b.kept) > 0 || c.filter.feed != "") && time.Since(c.checked) > checkEvery:
		return c.check(ctx)
	case len(b.kept) == 0:
		c.advance(b.seq)
		if c.unsaved {
			return c.wait(ctx, more, saveEvery)
		}
		return c.wait(ctx, more, lease/3)
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
		h.Position, h.Gap = c.hook.Position, c.hook.Gap
		w.Hook = &h
	})
	if c.savedAt = time.Now(); c.w != before { // it was written
		c.hook, c.unsaved = *c.w.Hook, false
	}
	if !c.w.Expires.Equal(before.Expires) { // who refreshes may be able to receive again
		c.retryAt = time.Time{}
	}
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
		err = c.e.feed(ctx, f, feedByPoll)
	}
	switch {
	case ended != nil:
		c.hook.Ended = ended
	case err != nil:
		c.retryAt = time.Now().Add(lease / 3)
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
	if c.hook.Gap {
		c.hook.Gap, c.unsaved = false, true
		c.control(ctx, Control{Type: ControlGap, Cursor: cursorOf(k.Seq - 1)})
	}
	status, _, failure := c.post(ctx, k.ID, body)
	if ctx.Err() != nil {
		return false
	}
	switch c.attempts++; {
	case failure == "", status == http.StatusGone: // it does not want this one
		c.attempts = 0
		c.advance(k.Seq)
	case c.attempts >= patience(status):
		c.giveUp(k)
	default:
		c.retryAt = time.Now().Add(min(time.Second<<min(c.attempts-1, 10), longestWait))
	}
	return true
}

// patience returns how often an occurrence is sent that gets a status, 0 if the receiver was not reached.
func patience(status int) int {
	switch status {
	case http.StatusRequestEntityTooLarge:
		return 1
	case 0, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return math.MaxInt // as long as the subscription lives, since all others would fail as well
	}
	if status < 500 {
		return maxRefusals
	}
	return maxAttempts
}

// giveUp passes over an occurrence.
func (c *courier) giveUp(k *kept) {
	c.e.runner.Logger().Warn("events: an occurrence is given up", "event", c.w.Name, "watch", short(c.w.ID))
	c.hook.Gap, c.attempts = true, 0
	c.advance(k.Seq)
}

// control sends a body that is not an occurrence, once.
func (c *courier) control(ctx context.Context, control Control) {
	if body, err := jsonx.Marshal(&control); err == nil {
		_, _, _ = c.post(ctx, messageID(control.Type), body)
	}
}

func (c *courier) post(ctx context.Context, id string, body []byte) (status int, answer []byte, failure string) {
	return c.e.client.post(ctx, c.hook.URL, c.w.ID, id, body, c.hook.secrets()...)
}
