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
	"time"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// Limits of a client.
const (
	minPoll    = time.Second // between two polls; a shorter interval of the server counts as this
	maxPoll    = time.Hour
	maxSilence = time.Minute // of a stream, which has a heartbeat every 30 seconds
	minBackoff = time.Second // before what failed is tried again
	maxBackoff = 30 * time.Second
)

// ErrNotOffered means that the server does not declare the extension, or a revision of it that this
// package does not know.
var ErrNotOffered = errors.New("events: the server does not offer events")

// ErrGap means that occurrences may be missing: read again what they are about. More follow. It may
// wrap the [*jsonrpc.Error] of the server.
var ErrGap = errors.New("events: some may be missing")

// ErrTerminated means that the server has ended a subscription. It wraps the [*jsonrpc.Error] that
// says why, for [FaultOf].
var ErrTerminated = errors.New("events: the server ended the subscription")

// A message is what a server sends on a stream, or as a webhook.
type message struct {
	Occurrence
	Type      string        `json:"type"` // of a [Control]; otherwise ""
	Challenge string        `json:"challenge"`
	Truncated bool          `json:"truncated"`
	Error     jsonrpc.Error `json:"error"`
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

// Follow follows what happens until the loop over it or ctx ends, and returns when the server has
// agreed. The mode is [Push], [Poll], or "" for the first of these that the server offers. The
// arguments must encode as a JSON object; nil means none. The loop may run once. After [ErrGap] it goes
// on; any other error is the last, for example [ErrTerminated].
//
// The Cursor of each occurrence is the position from which to follow what comes after it: keep it once
// the occurrence is dealt with. Nil means that the server replays nothing. Those that were polled
// together are told again unless the last of them was dealt with.
//
// A stream that breaks, that is silent for a minute, or of which more waits for the loop than
// [client.OnNotification] allows, is opened again where it ended.
func Follow(
	ctx context.Context, c *client.Client, mode, name string, arguments any, from Position,
) (iter.Seq2[*Occurrence, error], error) {
	sub, err := subscription(c, name, arguments)
	if err == nil && mode == "" {
		mode, err = bestMode(ctx, c, name)
	}
	if err != nil {
		return nil, err
	}
	f := &feed{c: c, sub: sub, at: from, close: func() {}}
	f.receive = f.notified
	if mode == Poll {
		f.receive = f.polled
	}
	gap, events, err := f.receive(ctx)
	if err != nil {
		f.close()
		return nil, err
	}
	return func(yield func(*Occurrence, error) bool) {
		defer func() { f.close() }()
		for err == nil {
			if gap != nil && !yield(nil, gap) {
				return
			}
			for i := range events {
				if !yield(&events[i], nil) {
					return
				}
			}
			gap, events, err = f.next(ctx)
		}
		yield(nil, err)
	}, nil
}

// A feed is what [Follow] follows.
type feed struct {
	c      *client.Client
	sub    Subscription
	at     Position          // after what was received
	wait   time.Duration     // before the next poll
	stream chan notification // nil if none is open
	agreed bool              // to a stream
	close  func()            // ends the stream

	// receive receives more, perhaps nothing. The gap, of which nil is none, is before the events.
	receive func(ctx context.Context) (gap error, events []Occurrence, err error)
}

// next receives more, and tries again until an error is for good.
func (f *feed) next(ctx context.Context) (gap error, events []Occurrence, err error) {
	for failures := 0; ; failures++ {
		if gap, events, err = f.receive(ctx); err == nil {
			return gap, events, nil
		}
		f.close()
		if err = retry(ctx, f.c, failures, err); err != nil {
			return nil, nil, err
		}
	}
}

// retry waits until what failed with err, and before that some times in a row, may be tried again. It
// returns the error that is the last.
func retry(ctx context.Context, c *client.Client, failures int, err error) error {
	if errors.Is(err, ErrTerminated) || ctx.Err() == nil && !client.Transient(err) {
		return err
	}
	return wait(ctx, c, min(minBackoff<<min(failures, 5), maxBackoff))
}

// wait waits for d, or until ctx ends or the client is closed, which is the error.
func wait(ctx context.Context, c *client.Client, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.Done():
		return transport.ErrClosed
	}
}

// polled polls, after a pause.
func (f *feed) polled(ctx context.Context) (gap error, events []Occurrence, err error) {
	if err := wait(ctx, f.c, f.wait); err != nil {
		return nil, nil, err
	}
	f.wait = 0
	var r PollResult
	if err := f.c.Request(ctx, MethodPoll, &PollParams{Subscription: f.sub, Position: f.at}, &r); err != nil {
		return nil, nil, err
	}
	last := len(r.Events) - 1
	if !r.HasMore || last < 0 {
		f.wait = time.Duration(min(max(r.NextPollMs, minPoll.Milliseconds()), maxPoll.Milliseconds())) * time.Millisecond
	}
	for i := range r.Events {
		r.Events[i].Cursor = f.at.Cursor
	}
	if f.at.Cursor = r.Cursor; last >= 0 {
		r.Events[last].Cursor = r.Cursor
	}
	if r.Truncated {
		gap = ErrGap
	}
	return gap, r.Events, nil
}

var (
	errEnded  = errors.New("events: the server ended the stream")
	errSilent = fmt.Errorf("events: the server was silent for %s", maxSilence)
)

// A notification is one of a stream, or why it has ended.
type notification struct {
	method string
	params json.RawMessage
	err    error
}

// open opens a stream.
func (f *feed) open(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	stream, params := make(chan notification), &StreamParams{f.sub, f.at}
	hand := func(n notification) {
		select {
		case stream <- n:
		case <-ctx.Done():
		}
	}
	hear := func(method string, params json.RawMessage) { hand(notification{method, params, nil}) }
	var request sync.WaitGroup
	// Ends with the stream, or when the feed or the client is closed.
	request.Go(func() {
		err := f.c.Request(ctx, MethodStream, params, nil, client.Timeout(0), client.OnNotification(hear))
		hand(notification{err: cmp.Or(err, errEnded)})
	})
	f.stream = stream
	f.close = func() {
		cancel()
		request.Wait()
		f.stream = nil
	}
}

// notified receives the next notification of a stream, which it opens if none is open.
func (f *feed) notified(ctx context.Context) (gap error, events []Occurrence, err error) {
	if f.stream == nil {
		f.open(ctx)
	}
	var n notification
	select {
	case n = <-f.stream:
	case <-ctx.Done():
		n.err = context.Cause(ctx)
	case <-time.After(maxSilence):
		n.err = errSilent
	}
	var m message
	if n.err == nil {
		n.err = jsonx.Unmarshal(n.params, &m)
	}
	if n.err != nil {
		return nil, nil, n.err
	}
	missed := m.Truncated || f.agreed && f.at.Cursor == nil
	f.at.Cursor = cmp.Or(m.Cursor, f.at.Cursor)
	switch n.method { // others, such as heartbeats, may have a cursor
	case NotificationActive:
		f.agreed = true
		if missed {
			gap = ErrGap
		}
	case NotificationEvent:
		m.Cursor = f.at.Cursor
		events = []Occurrence{m.Occurrence}
	case NotificationError:
		gap = fmt.Errorf("%w: %w", ErrGap, &m.Error)
	case NotificationTerminated:
		err = fmt.Errorf("%w: %w", ErrTerminated, &m.Error)
	}
	return gap, events, err
}
