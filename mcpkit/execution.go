package mcpkit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// An execution is a method that runs. It has its own goroutine, so that its caller can be answered
// in time, unless nobody but the peer waits for it.
type execution struct {
	call    *Call // in the server whose method it is
	ctx     context.Context
	handler Handler

	result Result // set, with err, before over
	err    error

	here    bool // it runs on the goroutine of the transport; set before it runs
	running bool // the method has not returned; guarded by scope.mu
	over    bool // nothing is left of it; guarded by scope.mu
	overdue bool // the caller has got a timeout error, or is about to; guarded by scope.mu
}

// grace is how long a method may take to return when the time is up.
const grace = 100 * time.Millisecond

// errResponded is the error of a method that returned after its caller had got a timeout error.
var errResponded = errors.New("the caller has its response")

// errMethodExited is the error of a method that called runtime.Goexit, as testing.T.FailNow does.
var errMethodExited = errors.New("the method ended its goroutine")

// attend runs h, within the time limit of the call if it has one. If h does not return in time,
// attend returns without it. Then h is overdue, and continues with an ended context.
func (c *Call) attend(ctx context.Context, h Handler) (Result, error) {
	s := &c.scope
	if err := c.overdue().refuse(c.server.config.maxOverdue); err != nil {
		return nil, err
	}
	if !s.limited() {
		return c.inTime(h(ctx, c))
	}
	x := s.execute(c, ctx, h)
	if x == nil {
		return nil, s.late()
	}
	// The goroutine is done with x when the method returns.
	if x.here {
		x.run()
	} else if r, ok := c.peer.(transport.Runner); ok {
		r.Run(x.run)
	} else {
		go x.start()
	}
	switch {
	case x.wait():
		return c.inTime(x.result, x.err)
	case x.here:
		return nil, errResponded
	}
	x.leave()
	return nil, s.late()
}

// execute adds an execution; nil if the time is up.
func (s *scope) execute(c *Call, ctx context.Context, h Handler) *execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lapsed {
		return nil
	}
	x := &s.first
	if x.call != nil { // a middleware runs the method again
		x = new(execution)
	}
	x.call, x.ctx, x.handler, x.running = c, ctx, h, true
	x.here = c.onlyPeerWaits()
	if !x.here && s.changed == nil {
		s.changed = sync.NewCond(&s.mu)
	}
	c.inside = c.around + 1
	s.holds++
	s.running++
	return x
}

// onlyPeerWaits reports whether nobody but the peer waits for the outcome of the method, and the
// peer can get a timeout error while the method runs.
func (c *Call) onlyPeerWaits() bool {
	if _, early := c.peer.(transport.EarlyResponder); !early || !respondsEarly {
		return false
	}
	return c.server == c.to() && c.observers == nil && !c.server.hasMiddleware.Load() && len(c.server.intercepts) == 0
}

// inTime replaces the error of a method that the time limit ended by the timeout error.
func (c *Call) inTime(result Result, err error) (Result, error) {
	if err != nil && errors.Is(err, context.DeadlineExceeded) {
		if late := c.scope.late(); late != nil {
			return nil, late
		}
	}
	return result, err
}

// start is run for a new goroutine.
func (x *execution) start() {
	growStack()
	x.run()
}

// growStack makes room on the stack of a new goroutine, as much as most methods need. The runtime
// would double the stack again and again, and copy what is on it each time, which takes longer than
// a short method does.
//
//go:noinline
func growStack() {
	var room [6 << 10]byte
	runtime.KeepAlive(&room)
}

// run runs the method.
func (x *execution) run() {
	x.err = errMethodExited
	defer x.returned()
	defer recoverAs(&x.err)
	x.result, x.err = x.handler(x.ctx, x.call)
}

// wait waits until the method has returned, or is overdue.
func (x *execution) wait() (returned bool) {
	s := &x.call.scope
	s.mu.Lock()
	defer s.mu.Unlock()
	for !x.over && !x.overdue {
		if !s.graceOver || !x.isOverdue() {
			s.changed.Wait()
		}
	}
	return !x.overdue
}

// isOverdue makes x overdue if the method still runs. The caller holds scope.mu.
func (x *execution) isOverdue() bool {
	if x.running && !x.overdue {
		x.overdue = true
		x.call.scope.overdue++
	}
	return x.overdue
}

// respondEarly sends a timeout error while the method runs, and closes sent.
func (x *execution) respondEarly(sent chan<- struct{}) {
	defer close(sent)
	c := x.call
	resp := &jsonrpc.Response{Error: jsonrpc.Errorf(jsonrpc.CodeInternalError, "internal error (ref %s)", c.Ref())}
	defer func() {
		_ = recover() // of the program's log handler, so it cannot be logged
		c.peer.(transport.EarlyResponder).RespondEarly(resp)
	}()
	x.leave()
	c.finish()
	resp = c.server.respond(c, nil, c.scope.late(), new(jsonrpc.Response))
}

// leave counts and logs a method that is overdue.
func (x *execution) leave() {
	c := x.call
	s := &c.scope
	n := c.overdue().begin()
	c.server.overdue.Add(1)
	c.server.config.logger.WarnContext(s, "mcpkit: a method did not return in time; its caller got a timeout error",
		"ref", c.Ref(), "method", c.row.method, "name", c.Target(), "timeout", s.timeout.String(), "overdue", n)
}

// returned is called when the method has returned.
func (x *execution) returned() {
	s := &x.call.scope
	s.mu.Lock()
	x.running = false
	s.running--
	overdue := x.overdue
	if overdue {
		s.overdue--
	}
	var tell []func()
	if s.running == 0 && s.rare != nil {
		tell, s.rare.onReturn = s.rare.onReturn, nil
	}
	if !overdue && len(tell) == 0 && s.holds > 1 { // nearly always there is nothing more to do
		s.holds--
		x.over = true
		s.signal()
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	if overdue {
		x.call.overdue().end()
		x.call.server.overdue.Add(-1)
	}
	for _, f := range tell {
		s.clean(f)
	}
	s.release() // first, so that the caller finds nothing of the method left
	s.mu.Lock()
	x.over = true
	s.signal()
	s.mu.Unlock()
	if overdue && x.here {
		<-s.rare.early // the transport would respond with an internal error
	}
}

// An overdueCount is the number of overdue methods of a tool, prompt, resource or method.
type overdueCount struct{ n atomic.Int64 }

func (o *overdueCount) begin() int64 { return o.n.Add(1) }
func (o *overdueCount) end()         { o.n.Add(-1) }

// refuse returns an error if limit methods are overdue.
func (o *overdueCount) refuse(limit int) error {
	if n := int(o.n.Load()); limit > 0 && n >= limit {
		return &OverdueError{Overdue: n}
	}
	return nil
}

// An OverdueError means that a tool is not called because too many of its earlier calls are
// overdue: see [MaxOverdue].
type OverdueError struct {
	// Overdue is the number of overdue calls.
	Overdue int
}

// Error tells the caller to try again later.
func (e *OverdueError) Error() string {
	return fmt.Sprintf("%d earlier calls of this are still running after their time was over; try again later", e.Overdue)
}

// UserMessage returns the same text.
func (e *OverdueError) UserMessage() string { return e.Error() }

// RetryAfter is ten seconds, since nobody knows when a method returns.
func (e *OverdueError) RetryAfter() time.Duration { return 10 * time.Second }

// Overdue returns the number of methods, and of readers that they returned, that still run although
// their calls are over: see [ToolTimeout].
func (s *Server) Overdue() int { return int(s.overdue.Load()) }
