package mcpkit

import (
	"context"
	"sync"
	"time"
)

// A deadlineContext ends at a deadline, with the cause [ErrTimeout], as a context of context.WithDeadlineCause does. Only
// its timer is started when somebody first waits for it: most calls are over long before, and never look.
//
// The zero value is not in use; begin readies it and end is called when the call is over.
type deadlineContext struct {
	parent   context.Context
	deadline time.Time

	mu     sync.Mutex
	timed  context.Context // made when it is first needed
	cancel context.CancelFunc
	over   bool
}

func (c *deadlineContext) begin(parent context.Context, after time.Duration) {
	c.parent, c.deadline = parent, time.Now().Add(after)
}

// end lets go of the timer. Whoever kept the context finds it cancelled.
func (c *deadlineContext) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	if c.cancel != nil {
		c.cancel()
	}
}

// start returns the context with the timer.
func (c *deadlineContext) start() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timed == nil {
		c.timed, c.cancel = context.WithDeadlineCause(c.parent, c.deadline, ErrTimeout)
		if c.over {
			c.cancel()
		}
	}
	return c.timed
}

// started returns the context with the timer, if there is one already or has to be.
func (c *deadlineContext) started() context.Context {
	c.mu.Lock()
	timed, over := c.timed, c.over
	c.mu.Unlock()
	if timed == nil && (over || time.Until(c.deadline) <= 0) {
		return c.start()
	}
	return timed
}

// Deadline is the earlier one of the parent's and its own.
func (c *deadlineContext) Deadline() (time.Time, bool) {
	if d, ok := c.parent.Deadline(); ok && d.Before(c.deadline) {
		return d, true
	}
	return c.deadline, true
}

// Done starts the timer.
func (c *deadlineContext) Done() <-chan struct{} { return c.start().Done() }

// Err says whether the deadline is over, without a timer.
func (c *deadlineContext) Err() error {
	if timed := c.started(); timed != nil {
		return timed.Err()
	}
	return c.parent.Err()
}

// Value is the parent's. Package context asks for its own contexts by a pointer to an int, to learn of their ends and
// their causes: it is shown the one with the timer.
func (c *deadlineContext) Value(key any) any {
	if _, ok := key.(*int); ok {
		return c.start().Value(key)
	}
	return c.parent.Value(key)
}
