package events

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// Limits of a client.
const (
	minPoll     = time.Second // between two polls; a shorter interval of the server counts as this
	maxPoll     = time.Hour
	maxSilence  = time.Minute // without a message on a stream, which has a heartbeat every 30 seconds
	maxBackoff  = 30 * time.Second
	steady      = time.Second // a stream that lasted longer was not a failure
	maxWaiting  = 256         // items that wait for Next
	maxWaitSize = 4 << 20     // bytes of these, except the first
)

// ErrNotOffered means that the server does not declare the extension, or a revision of it that this
// package does not know.
var ErrNotOffered = errors.New("events: the server does not offer events")

// A GapError means that occurrences may be missing: read again what they are about. More follow.
type GapError struct {
	Reason *jsonrpc.Error // of the server, nil if it said none
}

// Error returns the reason.
func (e *GapError) Error() string {
	if e.Reason == nil {
		return "events: some may be missing"
	}
	return "events: some may be missing: " + e.Reason.Error()
}

// A TerminatedError means that the server has ended a subscription.
type TerminatedError struct {
	Reason *jsonrpc.Error // what [FaultOf] takes
}

// Error returns the reason.
func (e *TerminatedError) Error() string {
	return fmt.Sprintf("events: the server ended the subscription: %v", e.Reason)
}

// List yields what may happen, as the server describes it to this client.
func List(ctx context.Context, c *client.Client) iter.Seq2[*Descriptor, error] {
	return func(yield func(*Descriptor, error) bool) {
		if !offered(c) {
			yield(nil, ErrNotOffered)
			return
		}
		for raw, err := range c.Items(ctx, MethodList, "events", nil) {
			d := &Descriptor{}
			if err == nil {
				err = jsonx.Unmarshal(raw, d)
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// offered reports whether the server offers the extension. There are no revisions yet.
func offered(c *client.Client) bool {
	settings, ok := c.Extension(ID)
	return ok && settings["revision"] == nil
}

// A Feed receives what a client asked for with [Follow]. Its methods must not be called concurrently.
type Feed struct {
	c       *client.Client
	sub     Subscription
	cursor  *string       // after what Next returned last
	items   chan item     // for Next
	waiting atomic.Int64  // bytes of the items
	opened  chan struct{} // closed when the server has agreed
	open    func()        // closes opened
	cancel  context.CancelFunc
	done    chan struct{} // closed when the feed has ended
	err     error         // why; set before done is closed

	mu   sync.Mutex
	next Position // after all items; guarded by mu
}

// An item is an occurrence, a gap, or neither: only a cursor.
type item struct {
	occurrence *Occurrence
	gap        *GapError
	cursor     *string // after it; nil if the server did not say
	size       int
}

// Follow begins to follow what happens, and returns when the server has agreed. The mode is [Push],
// [Poll], or "" for the first of these that the server offers. The arguments must encode as a JSON
// object; nil means none. ctx ends only this wait; Close ends the feed.
//
// A stream that breaks, or that is silent for a minute, is opened again where it ended.
func Follow(ctx context.Context, c *client.Client, mode, name string, arguments any, from Position) (*Feed, error) {
	sub, err := subscription(c, name, arguments)
	if err == nil && mode == "" {
		mode, err = bestMode(ctx, c, name)
	}
	if err != nil {
		return nil, err
	}
	f := &Feed{
		c: c, sub: sub, cursor: from.Cursor, next: from,
		items: make(chan item, maxWaiting), opened: make(chan struct{}), done: make(chan struct{}),
	}
	f.open = sync.OnceFunc(func() { close(f.opened) })
	attempt := f.stream
	if mode == Poll {
		attempt = f.poll
	}
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f.cancel = cancel
	// Ends when the feed or the client is closed, or the server ends the subscription.
	go f.run(base, attempt)
	select {
	case <-f.opened:
		return f, nil
	case <-f.done:
		return nil, f.err
	case <-ctx.Done():
		_ = f.Close()
		return nil, context.Cause(ctx)
	}
}

// subscription returns the subscription to name, of which nil are no arguments.
func subscription(c *client.Client, name string, arguments any) (s Subscription, err error) {
	if !offered(c) {
		return s, ErrNotOffered
	}
	s.Name = name
	if arguments != nil {
		s.Arguments, err = jsonx.Marshal(arguments)
	}
	return s, err
}

// bestMode returns the mode in which to follow name.
func bestMode(ctx context.Context, c *client.Client, name string) (string, error) {
	for d, err := range List(ctx, c) {
		if err != nil {
			return "", err
		}
		for _, mode := range []string{Push, Poll} {
			if d.Name == name && slices.Contains(d.Delivery, mode) {
				return mode, nil
			}
		}
	}
	return "", fmt.Errorf("events: the server offers no stream and no polls of %q", name)
}

// Next waits for the next occurrence. After a [*GapError] more follow; any other error is the last, for
// example a [*TerminatedError], or that of ctx, after which Next may be called again.
func (f *Feed) Next(ctx context.Context) (*Occurrence, error) {
	for {
		var i item
		select {
		case i = <-f.items:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-f.done:
			select {
			case i = <-f.items:
			default:
				return nil, f.err
			}
		}
		f.waiting.Add(-int64(i.size))
		if i.cursor != nil {
			f.cursor = i.cursor
		}
		if i.gap != nil {
			return nil, i.gap
		}
		if i.occurrence != nil {
			return i.occurrence, nil
		}
	}
}

// All yields what Next returns, until its last error.
func (f *Feed) All(ctx context.Context) iter.Seq2[*Occurrence, error] {
	return func(yield func(*Occurrence, error) bool) {
		for {
			e, err := f.Next(ctx)
			_, more := errors.AsType[*GapError](err)
			if !yield(e, err) || err != nil && !more {
				return
			}
		}
	}
}

// Cursor returns the position from which to follow later what comes after that which Next returned
// last: keep it once that is dealt with. Nil means that the server replays nothing. What was polled
// together has one position, after the last.
func (f *Feed) Cursor() *string { return f.cursor }

// Close ends the feed. It returns nil.
func (f *Feed) Close() error {
	f.cancel()
	<-f.done
	return nil
}

// run makes attempts to follow until one ends for good.
func (f *Feed) run(ctx context.Context, attempt func(context.Context) error) {
	defer close(f.done)
	defer f.cancel()
	for failures := 0; ; failures++ {
		begun := time.Now()
		f.err = attempt(ctx)
		if time.Since(begun) > steady {
			failures = 0
		}
		_, terminated := errors.AsType[*TerminatedError](f.err)
		if terminated || !f.agreed() || !client.Transient(f.err) || !f.sleep(ctx, backoff(failures)) {
			return
		}
	}
}

// agreed reports whether the server has agreed.
func (f *Feed) agreed() bool {
	select {
	case <-f.opened:
		return true
	default:
		return false
	}
}

// backoff returns how long to wait after that many failures in a row.
func backoff(failures int) time.Duration {
	return min(100*time.Millisecond<<min(failures, 10), maxBackoff)
}

// sleep waits for d. It returns false if the feed or the client is closed.
func (f *Feed) sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
	case <-f.c.Done():
	}
	f.err = transport.ErrClosed
	return false
}

// position returns from where to go on.
func (f *Feed) position() Position {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.next
}

// poll polls until a poll fails.
func (f *Feed) poll(ctx context.Context) error {
	for {
		var r PollResult
		if err := f.c.Request(ctx, MethodPoll, &PollParams{Subscription: f.sub, Position: f.position()}, &r); err != nil {
			return err
		}
		f.open()
		var items []item
		if r.Truncated {
			items = append(items, item{gap: &GapError{}})
		}
		for i := range r.Events {
			items = append(items, item{occurrence: &r.Events[i]})
		}
		for _, i := range append(items, item{cursor: r.Cursor}) {
			select {
			case f.items <- i:
			case <-ctx.Done():
				return transport.ErrClosed
			case <-f.c.Done():
				return transport.ErrClosed
			}
		}
		f.mu.Lock()
		f.next.Cursor = r.Cursor
		f.mu.Unlock()
		wait := time.Duration(min(max(r.NextPollMs, minPoll.Milliseconds()), maxPoll.Milliseconds())) * time.Millisecond
		if (!r.HasMore || len(r.Events) == 0) && !f.sleep(ctx, wait) {
			return f.err
		}
	}
}

// What ends a stream, after which another begins.
var (
	errEnded  = errors.New("events: the server ended the stream")
	errSilent = fmt.Errorf("events: the server was silent for %s", maxSilence)
	errBehind = errors.New("events: the program does not keep up with the stream")
)

// stream opens a stream and returns when it has ended.
func (f *Feed) stream(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(maxSilence, func() { cancel(errSilent) })
	defer silence.Stop()
	from := f.position()
	err := f.c.Request(ctx, MethodStream, &StreamParams{f.sub, from}, nil, client.Timeout(0),
		client.OnNotification(func(method string, params json.RawMessage) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if ctx.Err() != nil {
				return // another stream may have begun
			}
			silence.Reset(maxSilence)
			if err := f.heard(method, params, from.Cursor); err != nil {
				cancel(err)
			}
		}))
	return cmp.Or(context.Cause(ctx), err, errEnded)
}

// heard handles a notification of a stream that was opened at the cursor from. An error ends the
// stream. The caller holds mu.
func (f *Feed) heard(method string, params json.RawMessage, from *string) error {
	var p struct {
		Occurrence
		Truncated bool           `json:"truncated"`
		Error     *jsonrpc.Error `json:"error"`
	}
	if err := jsonx.Unmarshal(params, &p); err != nil {
		return err
	}
	i := item{cursor: p.Cursor, size: len(params)}
	switch method {
	case NotificationActive:
		if p.Truncated || f.agreed() && from == nil {
			i.gap = &GapError{}
		}
		f.open()
	case NotificationEvent:
		i.occurrence = &p.Occurrence
	case NotificationError:
		i.gap = &GapError{p.Error}
	case NotificationTerminated:
		return &TerminatedError{p.Error}
	case NotificationHeartbeat:
	default:
		return nil
	}
	waiting := int(f.waiting.Load())
	if len(f.items) == maxWaiting || waiting > 0 && waiting+i.size > maxWaitSize {
		return errBehind
	}
	f.waiting.Add(int64(i.size))
	f.items <- i
	f.next.Cursor = cmp.Or(i.cursor, f.next.Cursor)
	return nil
}
