package middleware

import (
	"container/list"
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// RateLimit lets each caller begin perSecond calls of tools, prompts and resources a second, and burst at once. A caller is
// a principal, or a session where nobody is authenticated, or everybody together where there is neither.
// Who is over the limit gets an error that says when to try again.
func RateLimit(perSecond float64, burst int) mcpkit.Middleware {
	return RateLimitBy(perSecond, burst, func(call *mcpkit.Call) string {
		if key := call.Principal().Key(); key != "" {
			return "principal " + key
		}
		return "session " + call.SessionID()
	})
}

// RateLimitBy is [RateLimit] with callers told apart by key.
func RateLimitBy(perSecond float64, burst int, key func(*mcpkit.Call) string) mcpkit.Middleware {
	limiters := limiterTable{rate: rate.Limit(perSecond), burst: burst, recent: list.New(), byKey: map[string]*list.Element{}}
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (any, error) {
			switch call.Method() {
			case protocol.MethodToolsCall, protocol.MethodPromptsGet, protocol.MethodResourcesRead:
				if wait := limiters.take(key(call), time.Now()); wait > 0 {
					return nil, mcpkit.Errorf("too many calls; try again in %s", wait.Round(time.Millisecond))
				}
			}
			return next(ctx, call)
		}
	}
}

// maxLimiters bounds the callers that are remembered. Whose calls are longest ago is forgotten first, and so has a full
// burst again.
const maxLimiters = 10_000

// limiterTable holds a limiter for each caller.
type limiterTable struct {
	rate  rate.Limit
	burst int

	mu     sync.Mutex
	recent *list.List // of *limiterEntry, guarded by mu; the latest in front
	byKey  map[string]*list.Element
}

type limiterEntry struct {
	key     string
	limiter *rate.Limiter
}

// take takes one call of the caller's, or says how long to wait for it.
func (t *limiterTable) take(key string, now time.Time) time.Duration {
	t.mu.Lock()
	e, ok := t.byKey[key]
	if ok {
		t.recent.MoveToFront(e)
	} else {
		e = t.recent.PushFront(&limiterEntry{key, rate.NewLimiter(t.rate, t.burst)})
		t.byKey[key] = e
		if t.recent.Len() > maxLimiters {
			oldest := t.recent.Back()
			delete(t.byKey, oldest.Value.(*limiterEntry).key)
			t.recent.Remove(oldest)
		}
	}
	limiter := e.Value.(*limiterEntry).limiter
	t.mu.Unlock()

	r := limiter.ReserveN(now, 1)
	if !r.OK() {
		return time.Duration(1<<63 - 1) // a burst of 0 lets nobody through
	}
	if wait := r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
		return wait
	}
	return 0
}
