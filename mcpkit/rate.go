package mcpkit

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/limits"
)

// A RateLimitError means that a caller made too many calls. Its text has a retry time for models;
// programs find {"retryAfterMs": n} in the data of the protocol error, or in the _meta of the tool
// error as [MetaErrorDetails].
//
// The HTTP status is not 429: clients would take it for a failure of the connection and drop the
// message. The header Retry-After is set for proxies and programs.
type RateLimitError struct {
	// After is how long to wait. If waiting does not help, it is the maximum duration.
	After time.Duration
}

// Error returns the text with the time to wait.
func (e *RateLimitError) Error() string {
	if e.After >= limits.Forever {
		return "too many calls"
	}
	return fmt.Sprintf("too many calls; try again in %s", e.rounded())
}

// UserMessage returns the same text.
func (e *RateLimitError) UserMessage() string { return e.Error() }

// RetryAfter returns After, or 0 if waiting does not help.
func (e *RateLimitError) RetryAfter() time.Duration {
	if e.After >= limits.Forever {
		return 0
	}
	return e.After
}

// ErrorDetails returns {"retryAfterMs": n}.
func (e *RateLimitError) ErrorDetails() map[string]any {
	if e.After >= limits.Forever {
		return map[string]any{}
	}
	return map[string]any{"retryAfterMs": e.rounded().Milliseconds()}
}

// rounded returns After rounded up to milliseconds.
func (e *RateLimitError) rounded() time.Duration {
	return (e.After + time.Millisecond - 1).Truncate(time.Millisecond)
}

// caller identifies a caller: by principal, or by address if callers are unauthenticated. Without
// both, all callers are one.
type caller struct{ principal, address string }

func callerOf(call *Call) caller {
	if p := call.Principal(); p != nil {
		return caller{principal: p.Key()}
	}
	return caller{address: call.Address()}
}

// limitRate limits how many calls of the entry each caller may begin.
func (e *entry) limitRate() {
	if e.Rate.Burst == 0 {
		return
	}
	e.limits.calls = new(limits.NewRounds[caller](e.Rate.PerSecond, e.Rate.Burst, MaxRounds))
	h := e.run
	e.run = func(ctx context.Context, call *Call) (Result, error) {
		if call.run == nil { // Detach has counted the call of a run
			if err := e.count(call); err != nil {
				return nil, err
			}
		}
		return h(ctx, call)
	}
}

// count counts the call in the limit of its caller, if the entry has one.
func (e *entry) count(call *Call) error {
	if e.limits.calls == nil {
		return nil
	}
	if s := call.server; s.fleet != nil {
		s.warned.ofRates.Do(func() { s.fleet.Logger().Warn(limits.PerReplica) })
	}
	if wait := e.limits.calls.Take(callerOf(call), call.Round()); wait > 0 {
		return &RateLimitError{After: wait}
	}
	call.counted.Store(true)
	return nil
}
