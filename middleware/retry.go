package middleware

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// RetryOptions say how [Retry] goes about it. The zero value tries three times.
type RetryOptions struct {
	// Attempts is how often a tool is called in all. Zero means 3.
	Attempts int

	// Backoff is how long to wait before the second attempt; before each further one it is twice as long. The wait
	// is between half of that and all of it, by chance, so that callers do not come back all at once. Zero
	// means 100 ms.
	Backoff time.Duration

	// If reports whether another attempt may help. Nil means errors that say so themselves: those with a method
	// Timeout() bool or Temporary() bool that returns true, like those of package net.
	If func(error) bool
}

// Retry calls a tool again that failed for a reason that may pass, if its hints say that it is idempotent or only reads: calling
// any other twice could do something twice. Each attempt is a call of the method within the same time limit: there is none
// when the time would be over before it, and none after the caller has gone. Results with isError are not errors.
func Retry(o RetryOptions) mcpkit.Middleware {
	if o.Attempts < 0 || o.Backoff < 0 {
		panic(fmt.Sprintf("middleware: Retry(RetryOptions{Attempts: %d, Backoff: %s}): a value is negative", o.Attempts, o.Backoff))
	}
	if o.Attempts == 0 {
		o.Attempts = 3
	}
	if o.Backoff == 0 {
		o.Backoff = 100 * time.Millisecond
	}
	if o.If == nil {
		o.If = mayPass
	}
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			result, err := next(ctx, call)
			if err == nil || !repeatable(call.Tool()) {
				return result, err
			}
			for attempt := 1; attempt < o.Attempts && err != nil && o.If(err); attempt++ {
				if !pause(ctx, o.Backoff<<(attempt-1)) {
					break
				}
				result, err = next(ctx, call)
			}
			return result, err
		}
	}
}

// repeatable reports whether calling the tool twice does no more than calling it once.
func repeatable(t *protocol.Tool) bool {
	return t != nil && t.Annotations != nil && (isTrue(t.Annotations.IdempotentHint) || isTrue(t.Annotations.ReadOnlyHint))
}

func isTrue(hint *bool) bool { return hint != nil && *hint }

func mayPass(err error) bool {
	if errors.Is(err, mcpkit.ErrTimeout) {
		return false // the time of this very call is over
	}
	if e, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); ok && e.Timeout() {
		return true
	}
	e, ok := errors.AsType[interface {
		error
		Temporary() bool
	}](err)
	return ok && e.Temporary()
}

// pause waits for d or a little less; false when ctx ends before that, or would.
func pause(ctx context.Context, d time.Duration) bool {
	d = d/2 + rand.N(d/2+1)
	if deadline, ok := ctx.Deadline(); ctx.Err() != nil || ok && time.Until(deadline) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
