package mcptest

import (
	"context"
	"iter"
	"time"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/events"
	"github.com/mcpkit/mcpkit-go/transport"
)

// Events follows an event from now until the end of the test, as [events.Follow] does. The arguments
// say which occurrences; nil means none. next waits for the next occurrence and returns its
// data: check it with [Result.JSON]. If none comes for 10 seconds, that is an error, and the end.
func (s *Server) Events(name string, arguments any) (next func() *Result) {
	s.t.Helper()
	ctx, cancel := context.WithCancelCause(s.t.Context())
	feed, err := events.Follow(ctx, s.Client(), "", name, arguments, events.Position{})
	if err != nil {
		s.t.Fatalf("mcptest: event %s: %v", name, err)
	}
	receive, stop := iter.Pull2(feed)
	s.t.Cleanup(stop)
	return func() *Result {
		return s.do("event "+name, arguments, func(r *Result, _ []client.CallOption) {
			defer time.AfterFunc(10*time.Second, func() { cancel(context.DeadlineExceeded) }).Stop()
			e, err, more := receive()
			if !more {
				err = transport.ErrClosed
			}
			r.take(e, err)
		})
	}
}
