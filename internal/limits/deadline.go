package limits

import (
	"context"
	"sync"
	"time"
)

// A Deadline is a context that ends at a deadline, with a cause, as one of context.WithDeadlineCause does. Only its timer is
// started when somebody first waits for it: most calls are over long before, and never look.
//
// The zero value is not in use: Begin readies it, before it is shared, and End is called when the call is over.
type Deadline struct {
	parent   context.Context
	deadline time.Time
	cause    error

	mu     sync.Mutex
	timed  context.Context // made when it is first needed
	cancel context.CancelFunc
	over   bool
}

// Begin lets c end after that time, with the cause, or with parent.
func (c *Deadline) Begin(parent context.Context, after time.Duration, cause error) {
	c.parent, c.deadline, c.cause = parent, time.Now().Add(after), cause
}

// End lets go of the timer. Whoever kept the context finds it cancelled.
func (c *Deadline) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	if c.cancel != nil {
		c.cancel()
	}
}

// start returns the context with the timer.
func (c *Deadline) start() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timed == nil {
		c.timed, c.cancel = context.WithDeadlineCause(c.parent, c.deadline, c.cause)
		if c.over {
			c.cancel()
		}
	}
	return c.timed
}

// started returns the context with the timer, if there is one already or has to be.
func (c *Deadline) started() context.Context {
	c.mu.Lock()
	timed, over := c.timed, c.over
	c.mu.Unlock()
	if timed == nil && (over || time.Until(c.deadline) <= 0) {
		return c.start()
	}
	return timed
}

// Deadline is the earlier one of the parent's and its own.
func (c *Deadline) Deadline() (time.Time, bool) {
	if d, ok := c.parent.Deadline(); ok && d.Before(c.deadline) {
		return d, true
	}
	return c.deadline, true
}

// Done starts the timer.
func (c *Deadline) Done() <-chan struct{} { return c.start().Done() }

// Err says whether the deadline is over, without a timer.
func (c *Deadline) Err() error {
	if timed := c.started(); timed != nil {
		return timed.Err()
	}
	return c.parent.Err()
}

// Value is the parent's. Package context asks for its own contexts by a pointer to an int, to learn of their ends and
// their causes: it is shown the one with the timer.
func (c *Deadline) Value(key any) any {
	if _, ok := key.(*int); ok {
		return c.start().Value(key)
	}
	return c.parent.Value(key)
}
