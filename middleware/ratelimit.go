package middleware

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// RateLimit lets each caller begin perSecond calls of tools, prompts, resources and completions a second, and burst at once.
// A caller is a principal, or a session where nobody is authenticated, or everybody together where there is neither.
// Who is over the limit gets a [RateLimitError].
func RateLimit(perSecond float64, burst int) mcpkit.Middleware {
	return RateLimitBy(perSecond, burst, CallerOf)
}

// RateLimitBy is [RateLimit] with a limit for each key: [CallerOf], [CallerAndTargetOf], [TargetOf] or a function of the
// program's own. Up to 10,000 keys are remembered; whose calls are longest ago is forgotten first, and so has a full burst
// again.
func RateLimitBy[K comparable](perSecond float64, burst int, key func(*mcpkit.Call) K) mcpkit.Middleware {
	limiters := limiterTable[K]{rate: rate.Limit(perSecond), burst: burst, recent: list.New(), byKey: map[K]*list.Element{}}
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (any, error) {
			if works(call) {
				if wait := limiters.take(key(call), time.Now()); wait > 0 {
					return nil, &RateLimitError{After: wait}
				}
			}
			return next(ctx, call)
		}
	}
}

// A RateLimitError says that a caller made too many calls, and when to try again. Models read it in the text; programs find
// {"retryAfterMs": n} in the data of the protocol error, or in the _meta of the tool error as mcpkit.MetaErrorDetails.
//
// It is no HTTP status 429 with Retry-After: a client's transport takes such an answer for a failure of the
// connection and drops the message in it, so that nobody who could wait would learn of it.
type RateLimitError struct {
	// After is how long to wait; [Forever] when waiting does not help.
	After time.Duration
}

// Error says how long to wait.
func (e *RateLimitError) Error() string {
	if e.After >= Forever {
		return "too many calls"
	}
	return fmt.Sprintf("too many calls; try again in %s", e.rounded())
}

// UserMessage is the same text: it is meant for the caller.
func (e *RateLimitError) UserMessage() string { return e.Error() }

// ErrorDetails are for programs.
func (e *RateLimitError) ErrorDetails() map[string]any {
	if e.After >= Forever {
		return map[string]any{}
	}
	return map[string]any{"retryAfterMs": e.rounded().Milliseconds()}
}

func (e *RateLimitError) outcome() Outcome { return Limited }

// rounded is After in whole milliseconds, never too few.
func (e *RateLimitError) rounded() time.Duration {
	return (e.After + time.Millisecond - 1).Truncate(time.Millisecond)
}

// maxKeys bounds what tables of limits remember.
const maxKeys = 10_000

// limiterTable holds a limiter for each key.
type limiterTable[K comparable] struct {
	rate  rate.Limit
	burst int

	mu     sync.Mutex
	recent *list.List // of *limiterEntry[K], guarded by mu; the latest in front
	byKey  map[K]*list.Element
}

type limiterEntry[K comparable] struct {
	key     K
	limiter *rate.Limiter
}

// limiter returns the limiter of a key, which becomes the latest.
func (t *limiterTable[K]) limiter(key K) *rate.Limiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, ok := t.byKey[key]; ok {
		t.recent.MoveToFront(e)
		return e.Value.(*limiterEntry[K]).limiter
	}
	e := &limiterEntry[K]{key, rate.NewLimiter(t.rate, t.burst)}
	t.byKey[key] = t.recent.PushFront(e)
	if t.recent.Len() > maxKeys {
		oldest := t.recent.Back()
		delete(t.byKey, oldest.Value.(*limiterEntry[K]).key)
		t.recent.Remove(oldest)
	}
	return e.limiter
}

// take takes one call of the key's, or says how long to wait for it; 0 when the call may begin.
func (t *limiterTable[K]) take(key K, now time.Time) time.Duration {
	limiter := t.limiter(key)
	if limiter.AllowN(now, 1) {
		return 0
	}
	r := limiter.ReserveN(now, 1)
	if !r.OK() {
		return Forever // a burst of 0 lets nobody through
	}
	wait := r.DelayFrom(now)
	r.CancelAt(now)
	return wait
}

// Forever is how long to wait where waiting does not help.
const Forever = rate.InfDuration
