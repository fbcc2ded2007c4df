package mcpkit

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/limits"
)

// A RateLimitError says that a caller made too many calls, and when to try again. Models read it in the text; programs find
// {"retryAfterMs": n} in the data of the protocol error, or in the _meta of the tool error as [MetaErrorDetails].
//
// It is no HTTP status 429: a client's transport takes such an answer for a failure of the connection and drops the message in it,
// so that nobody who could wait would learn of it. The header Retry-After is there all the same, for proxies and programs.
type RateLimitError struct {
	// After is how long to wait; the longest duration of all when waiting does not help.
	After time.Duration
}

// Error says how long to wait.
func (e *RateLimitError) Error() string {
	if e.After >= limits.Forever {
		return "too many calls"
	}
	return fmt.Sprintf("too many calls; try again in %s", e.rounded())
}

// UserMessage is the same text: it is meant for the caller.
func (e *RateLimitError) UserMessage() string { return e.Error() }

// RetryAfter is After, or 0 when waiting does not help.
func (e *RateLimitError) RetryAfter() time.Duration {
	if e.After >= limits.Forever {
		return 0
	}
	return e.After
}

// ErrorDetails are for programs.
func (e *RateLimitError) ErrorDetails() map[string]any {
	if e.After >= limits.Forever {
		return map[string]any{}
	}
	return map[string]any{"retryAfterMs": e.rounded().Milliseconds()}
}

// rounded is After in whole milliseconds, never too few.
func (e *RateLimitError) rounded() time.Duration {
	return (e.After + time.Millisecond - 1).Truncate(time.Millisecond)
}

// A rateLimit is what a rate tag says. The zero value is none.
type rateLimit struct {
	perSecond float64
	burst     int
}

// setRate reads "10/s" and "100/m burst=20". Without a burst as many may go at once as in the whole time.
func setRate(limit *rateLimit, v string) error {
	parts := strings.Fields(v)
	if len(parts) == 0 || len(parts) > 2 {
		return fmt.Errorf("%q is no rate", v)
	}
	count, unit, found := strings.Cut(parts[0], "/")
	n, err := strconv.Atoi(count)
	per := map[string]float64{"s": 1, "m": 60, "h": 3600}[unit]
	switch {
	case !found || err != nil || per == 0:
		return fmt.Errorf("%q is no rate; want a number for each s, m or h", parts[0])
	case n < 1:
		return fmt.Errorf("%q lets nobody through", parts[0])
	}
	limit.perSecond, limit.burst = float64(n)/per, n
	if len(parts) == 1 {
		return nil
	}
	text, found := strings.CutPrefix(parts[1], "burst=")
	if limit.burst, err = strconv.Atoi(text); !found || err != nil || limit.burst < 1 {
		return fmt.Errorf("%q is no burst of at least 1", parts[1])
	}
	return nil
}

// caller tells callers apart: principals, or sessions where nobody is authenticated, or everybody together where there is neither.
type caller struct{ principal, session string }

func callerOf(call *Call) caller {
	if p := call.Principal(); p != nil {
		return caller{principal: p.Key()}
	}
	return caller{session: call.SessionID()}
}

// continued is the limit of the rounds that follow: up to MaxRounds for each call that begins.
func (limit rateLimit) continued() rateLimit {
	return rateLimit{limit.perSecond * MaxRounds, limit.burst * MaxRounds}
}

// withRate lets each caller begin as many calls of h as limit says. A call that continues after a question was counted when it began.
// The later rounds take from a bucket of their own, so that replaying a requestState does not evade the limit.
func withRate(limit rateLimit, h Handler) Handler {
	if limit == (rateLimit{}) {
		return h
	}
	begun := limits.NewTable[caller](limit.perSecond, limit.burst)
	more := limit.continued()
	continued := limits.NewTable[caller](more.perSecond, more.burst)
	return func(ctx context.Context, call *Call) (Result, error) {
		table := begun
		if call.Round() > 0 {
			table = continued
		}
		if wait := table.Take(callerOf(call), time.Now()); wait > 0 {
			return nil, &RateLimitError{After: wait}
		}
		return h(ctx, call)
	}
}
