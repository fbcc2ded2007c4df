package mcptest

import (
	"context"
	"time"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/events"
)

// Events follows an event from now until the end of the test, as [events.Follow] does. The arguments
// say which occurrences; nil means none. next waits for the next occurrence, at most 10 seconds, and
// returns its data: check it with [Result.JSON].
func (s *Server) Events(name string, arguments any) (next func() *Result) {
	s.t.Helper()
	feed, err := events.Follow(s.t.Context(), s.Client(), "", name, arguments, events.Position{})
	if err != nil {
		s.t.Fatalf("mcptest: event %s: %v", name, err)
	}
	s.t.Cleanup(func() { _ = feed.Close() })
	return func() *Result {
		return s.do("event "+name, arguments, func(r *Result, _ []client.CallOption) {
			ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Second)
			defer cancel()
			r.take(feed.Next(ctx))
		})
	}
}
