// Package limits has rate limits for many keys: what the middleware and the tags of methods share.
package limits

import (
	"container/list"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Forever is how long to wait where waiting does not help.
const Forever = rate.InfDuration

// maxKeys bounds what a table remembers.
const maxKeys = 10_000

// A Table holds a limit for each key. Up to 10,000 keys are remembered; the one that was used longest ago is forgotten first, and so
// has a full burst again. It is safe for concurrent use. Make one with [NewTable].
type Table[K comparable] struct {
	rate  rate.Limit
	burst int

	mu     sync.Mutex
	recent *list.List // of *entry[K], guarded by mu; the latest in front
	byKey  map[K]*list.Element
}

type entry[K comparable] struct {
	key     K
	limiter *rate.Limiter
}

// NewTable returns a table that lets each key go perSecond times a second, and burst times at once.
func NewTable[K comparable](perSecond float64, burst int) *Table[K] {
	return &Table[K]{rate: rate.Limit(perSecond), burst: burst, recent: list.New(), byKey: map[K]*list.Element{}}
}

// limiter returns the limiter of a key, which becomes the latest.
func (t *Table[K]) limiter(key K) *rate.Limiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, ok := t.byKey[key]; ok {
		t.recent.MoveToFront(e)
		return e.Value.(*entry[K]).limiter
	}
	e := &entry[K]{key, rate.NewLimiter(t.rate, t.burst)}
	t.byKey[key] = t.recent.PushFront(e)
	if t.recent.Len() > maxKeys {
		oldest := t.recent.Back()
		delete(t.byKey, oldest.Value.(*entry[K]).key)
		t.recent.Remove(oldest)
	}
	return e.limiter
}

// Take lets the key go once, or says how long to wait for it: 0 when it may go, [Forever] when waiting does not help.
func (t *Table[K]) Take(key K, now time.Time) time.Duration {
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
