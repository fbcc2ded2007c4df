package middleware

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A RetryOption configures [Retry].
type RetryOption func(*retry)

type retry struct {
	attempts int
	backoff  time.Duration
}

// RetryAttempts sets how often a tool is called in all. 0 means 3.
func RetryAttempts(n int) RetryOption { return func(r *retry) { r.attempts = cmp.Or(n, r.attempts) } }

// RetryBackoff sets the wait before the second attempt. It doubles before each further attempt. The
// actual wait is a random part of that, at least half, so that callers do not return all at once.
// 0 means 100 ms.
func RetryBackoff(d time.Duration) RetryOption {
	return func(r *retry) { r.backoff = cmp.Or(d, r.backoff) }
}

// Retry calls a tool again after an error whose method Timeout() bool or Temporary() bool returns
// true, like those of package net, if the tool has the hint readonly or idempotent. Results with
// isError are not errors. All attempts share the time limit of the call: Retry stops if the time
// would end before the next attempt, or if the caller cancels. It panics on negative values.
func Retry(opts ...RetryOption) mcpkit.Middleware {
	r := &retry{attempts: 3, backoff: 100 * time.Millisecond}
	for _, o := range opts {
		o(r)
	}
	if r.attempts < 0 || r.backoff < 0 {
		panic(fmt.Sprintf("middleware: Retry with %d attempts and a backoff of %s: a value is negative", r.attempts, r.backoff))
	}
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			result, err := next(ctx, call)
			if err == nil || !repeatable(call.Tool()) {
				return result, err
			}
			for attempt := 1; attempt < r.attempts && err != nil && isTemporary(err); attempt++ {
				if !pause(ctx, r.backoff<<(attempt-1)) {
					break
				}
				result, err = next(ctx, call)
			}
			return result, err
		}
	}
}

// repeatable reports whether calling the tool twice has the same effect as calling it once.
func repeatable(t *protocol.Tool) bool {
	return t != nil && t.Annotations != nil && (isTrue(t.Annotations.IdempotentHint) || isTrue(t.Annotations.ReadOnlyHint))
}

func isTrue(hint *bool) bool { return hint != nil && *hint }

func isTemporary(err error) bool {
	if errors.Is(err, mcpkit.ErrTimeout) {
		return false // the time of this call is over
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

// pause waits for d or a little less. It returns false if ctx ends before that, or would.
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
