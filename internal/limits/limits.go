// Package limits has rate limits by key, for the middleware and for the tag rate.
package limits

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/mcpkit/mcpkit-go/fleet"
)

// Forever is the wait of a key that may never go.
const Forever = rate.InfDuration

// maxKeys is how many keys a table remembers.
const maxKeys = 10_000

// A Table has a limit for each of up to 10,000 keys. It forgets the least recently used key first,
// which then has its full burst again. It is safe for concurrent use. Make one with [NewTable].
type Table[K comparable] struct {
	rate  rate.Limit
	burst int

	mu     sync.Mutex
	recent *list.List // of *entry[K], guarded by mu; the most recently used in front
	byKey  map[K]*list.Element

	shared shared
}

type entry[K comparable] struct {
	key     K
	limiter *rate.Limiter
}

// NewTable returns a table in which each key may go perSecond times a second, and burst times at
// once.
func NewTable[K comparable](perSecond float64, burst int) *Table[K] {
	return &Table[K]{rate: rate.Limit(perSecond), burst: burst, recent: list.New(), byKey: map[K]*list.Element{}}
}

// limiter returns the limiter of a key, which becomes the most recently used.
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

// Take returns 0 if the key may go now, and counts it. Otherwise it returns how long to wait, which
// is [Forever] if the key may never go.
func (t *Table[K]) Take(key K, now time.Time) time.Duration {
	limiter := t.limiter(key)
	if limiter.AllowN(now, 1) {
		return 0
	}
	r := limiter.ReserveN(now, 1)
	if !r.OK() {
		return Forever // the burst is 0
	}
	wait := r.DelayFrom(now)
	r.CancelAt(now)
	return wait
}

// Rounds limits calls by key. Later rounds of a call, in which the client answers questions, have
// buckets of their own, so that replaying them does not evade the limit. It is safe for concurrent
// use. Make one with [NewRounds].
type Rounds[K comparable] struct{ first, later *Table[K] }

// NewRounds returns limits of perSecond and burst calls, and so many later rounds for each of them.
func NewRounds[K comparable](perSecond float64, burst, rounds int) Rounds[K] {
	return Rounds[K]{NewTable[K](perSecond, burst), NewTable[K](perSecond*float64(rounds), burst*rounds)}
}

// Take is [Table.Take] for a round of a call; 0 is the first. If f is not nil, it counts for all
// replicas of the fleet, and name says which limit of the program it is. A key then stands for what
// fmt writes for it with %#v.
//
// A key that may not go by what this replica has counted is not looked up. While the fleet cannot be
// asked, that count alone decides.
func (r Rounds[K]) Take(ctx context.Context, f *fleet.Fleet, name string, key K, round int) time.Duration {
	t := r.first
	if round > 0 {
		t = r.later
		name += " later"
	}
	if wait := t.Take(key, time.Now()); wait > 0 || f == nil {
		return wait
	}
	wait, err := t.shared.take(ctx, f, fmt.Sprintf("%s %v %d %#v", name, float64(t.rate), t.burst, key), bucket{t.rate, t.burst})
	if err != nil {
		return 0
	}
	return wait
}
