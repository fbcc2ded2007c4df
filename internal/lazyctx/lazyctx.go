// Package lazyctx has a context that costs nothing until somebody waits for its end.
//
// A context of package context allocates and registers with its parent when it is made. Each
// request has a context, and most requests end before anybody asks for its channel.
package lazyctx

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A Context is a [context.Context] that ends with its parent or by [Context.End]. It makes its
// channel, and watches its parent, on first use. It is used by pointer, as a field of a larger
// struct; call Begin before it is shared. Its methods are safe for concurrent use.
type Context struct {
	parent context.Context

	end atomic.Pointer[end] // nil while it lasts, as far as it knows; changed with mu held

	mu      sync.Mutex
	done    chan struct{}          // made on first use; closed at the end; guarded by mu
	unwatch func() bool            // stops watching the parent; set with done; guarded by mu
	after   map[*function]struct{} // called at the end; guarded by mu
}

// An end says how a Context ended.
type end struct {
	err    error
	values context.Context // has the cause, for package context
}

type function struct{ f func() }

// Begin sets the parent.
func (c *Context) Begin(parent context.Context) { c.parent = parent }

// Parent returns the parent.
func (c *Context) Parent() context.Context { return c.parent }

// Deadline returns the deadline of the parent.
func (c *Context) Deadline() (deadline time.Time, ok bool) { return c.parent.Deadline() }

// Err returns nil while the context lasts.
func (c *Context) Err() error {
	if e := c.end.Load(); e != nil {
		return e.err
	}
	return c.parent.Err()
}

// Value returns a value of the parent. At the end, package context finds the cause by it.
func (c *Context) Value(key any) any {
	if e := c.end.Load(); e != nil && e.values != nil {
		return e.values.Value(key)
	}
	return c.parent.Value(key)
}

// Done returns a channel that is closed at the end.
func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.end.Load() != nil {
			close(c.done)
		} else if c.parent.Done() != nil {
			c.unwatch = context.AfterFunc(c.parent, func() { c.finish(&end{err: c.parent.Err()}) })
		}
	}
	return c.done
}

// AfterFunc calls f in its own goroutine when the context ends. Package context uses it for derived
// contexts.
func (c *Context) AfterFunc(f func()) (stop func() bool) {
	c.Done() // to watch the parent
	own := &function{f}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end.Load() != nil {
		go f() // ends when f returns
		return func() bool { return false }
	}
	if c.after == nil {
		c.after = map[*function]struct{}{}
	}
	c.after[own] = struct{}{}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, waits := c.after[own]
		delete(c.after, own)
		return waits
	}
}

// End ends the context with [context.Canceled]. It returns false if it has ended before.
func (c *Context) End() bool { return c.finish(&ended) }

var ended = end{err: context.Canceled}

// Cancel is like End with a cause; nil means context.Canceled.
func (c *Context) Cancel(cause error) {
	if c.end.Load() != nil {
		return
	}
	values, cancel := context.WithCancelCause(c.parent)
	cancel(cause)
	c.EndAs(values)
}

// EndAs is like End but takes the error and the cause from a context that has ended.
func (c *Context) EndAs(other context.Context) bool {
	return c.finish(&end{other.Err(), other})
}

func (c *Context) finish(e *end) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end.Load() != nil {
		return false
	}
	if err := c.parent.Err(); err != nil { // Err may have returned it
		e = &end{err: err}
	}
	c.end.Store(e)
	if c.done != nil {
		close(c.done)
	}
	if c.unwatch != nil {
		c.unwatch()
	}
	for own := range c.after {
		go own.f() // ends when it returns
	}
	c.after = nil
	return true
}
