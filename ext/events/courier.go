package events

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

const (
	maxAttempts = 12 // of an occurrence, about 20 minutes; then the subscription is suspended
	maxRefusals = 5  // of an occurrence that the receiver refuses; then it is given up
	longestWait = 5 * time.Minute
	checkEvery  = time.Minute // between questions whether the subscriber may still know
)

// A courier is a worker that delivers the webhooks of one subscription, one after another, so that what
// was not accepted is never passed over. It writes its progress after each: after a crash, another one
// delivers at most that one again, with the same ID.
type courier struct {
	*worker
	hook     webhook // with the progress that is not written yet
	filter   *filter // nil: it is not known whether the subscriber may still know
	ended    *jsonrpc.Error
	checked  time.Time // when the filter was
	attempts int       // of the next occurrence
	retryAt  time.Time
	unsaved  bool // or others have changed the watch
	missed   bool // an occurrence was lost since the progress was written
	gap      bool // the receiver has to be told so
}

// run delivers until the subscription ends.
func (c *courier) run(ctx context.Context) {
	c.hook, c.gap = *c.w.Hook, c.w.Hook.Missed
	l := c.e.log(c.w.Name)
	var err error
	for ctx.Err() == nil && c.ended == nil && !final(err) {
		more, wait := l.more(), c.step(ctx, l)
		if wait > 0 && !c.unsaved && c.ended == nil {
			select {
			case <-more:
			case <-time.After(wait):
			case <-c.poked:
				c.unsaved = true
			case <-ctx.Done():
			}
		}
		for c.unsaved || time.Until(c.w.Lease) <= lease*2/3 {
			if err = c.save(context.WithoutCancel(ctx)); err == nil || final(err) || ctx.Err() != nil {
				break
			}
			sleep(ctx, time.Second)
		}
	}
	switch {
	case errors.Is(err, errGone):
		_, c.ended, _ = c.e.revocation(ctx, &c.w.interest)
	case final(err) || c.ended != nil && c.e.end(ctx, c.w.ID) != nil:
		c.ended = nil // another replica will find that, too
	}
	if c.ended != nil { // only now, since the subscriber may begin again once it is told
		c.control(ctx, Control{Type: ControlTerminated, Error: c.ended})
	}
}

// save writes the progress, renews the lease, and takes over what others have changed.
func (c *courier) save(ctx context.Context) error {
	err := c.renew(ctx, func(w *watch) {
		w.Hook.Progress, w.Hook.Missed = c.hook.Progress, w.Hook.Missed || c.missed
		if w.Hook.Refreshes == c.hook.Refreshes {
			w.Hook.Active = c.hook.Active
		}
	})
	if err == nil {
		if c.w.Hook.Refreshes != c.hook.Refreshes {
			c.attempts, c.retryAt = 0, time.Time{}
		}
		c.hook, c.unsaved, c.missed = *c.w.Hook, false, false
	}
	return err
}

// step does what is due next. It returns for how long there is nothing more to do, unless something
// changes.
func (c *courier) step(ctx context.Context, l *log) (wait time.Duration) {
	if time.Since(c.checked) > checkEvery {
		c.check(ctx)
	}
	switch {
	case c.filter == nil || !c.hook.Active:
		return lease / 3
	case time.Now().Before(c.retryAt):
		return min(time.Until(c.retryAt), lease/3)
	}
	b, err := l.read(ctx, c.filter, c.hook.Progress.Position, 1)
	if b.truncated {
		c.lose()
	}
	if len(b.kept) > 0 {
		c.deliver(ctx, b.kept[0])
		return 0
	}
	c.hook.Progress.Position = b.seq
	if err != nil && ctx.Err() == nil {
		c.e.runner.Logger().ErrorContext(ctx, "events: a log is not read", "event", c.w.Name, "error", err)
	}
	return lease / 3
}

// check asks whether the subscriber may still know of the event.
func (c *courier) check(ctx context.Context) {
	var err error
	c.checked = time.Now()
	if c.filter, c.ended, err = c.e.check(ctx, c.w.interest); err != nil {
		c.checked = time.Now().Add(lease/3 - checkEvery) // in a third of a lease again
	}
}

// lose notes that occurrences are lost.
func (c *courier) lose() { c.missed, c.gap, c.unsaved = true, true, true }

// pass goes on with what comes after an occurrence.
func (c *courier) pass(k *kept) { c.hook.Progress.Position, c.attempts, c.unsaved = k.Seq, 0, true }

// deliver delivers an occurrence, once, and decides what becomes of it.
func (c *courier) deliver(ctx context.Context, k *kept) {
	o := c.filter.occurrence(k)
	o.Cursor = cursorOf(k.Seq)
	body, err := jsonx.Marshal(&o)
	if err != nil || len(body) > MaxBody {
		c.lose()
		c.pass(k)
		return
	}
	if c.gap {
		status := c.control(ctx, Control{Type: ControlGap, Cursor: cursorOf(k.Seq - 1)})
		c.gap = status == 0 || status >= 500 // it is told again
	}
	id := k.ID
	if profiles[c.e.profile].messageIDs {
		id = "msg_event_" + short(c.w.ID) + k.ID
	}
	status, _, failure := c.e.post(ctx, c.hook.URL, c.w.ID, id, body, c.hook.signing()...)
	p := &c.hook.Progress
	switch {
	case ctx.Err() != nil:
		return
	case failure == "":
		p.LastDelivery, p.LastError, p.FailedSince = time.Now().UTC(), "", time.Time{}
		c.pass(k)
		return
	case status == http.StatusGone: // it does not want this one
		c.pass(k)
		return
	case p.LastError == "":
		p.FailedSince = time.Now().UTC()
	}
	p.LastError, c.unsaved = failure, true
	c.attempts++
	temporary := []int{0, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests}
	refused := status < 500 && !slices.Contains(temporary, status) // the receiver will not accept it later
	switch {
	case status == http.StatusRequestEntityTooLarge, refused && c.attempts >= maxRefusals,
		c.attempts >= maxAttempts && p.Stuck == k.Seq:
		c.lose()
		c.pass(k)
	case c.attempts >= maxAttempts:
		c.hook.Active, p.Stuck, c.attempts = false, k.Seq, 0
	default:
		c.retryAt = time.Now().Add(min(time.Second<<(c.attempts-1), longestWait))
	}
}

// control sends a body that is not an occurrence, once. It returns the status.
func (c *courier) control(ctx context.Context, control Control) (status int) {
	if body, err := jsonx.Marshal(&control); err == nil {
		status, _, _ = c.e.post(ctx, c.hook.URL, c.w.ID, messageID(control.Type), body, c.hook.signing()...)
	}
	return status
}
