// Package limits bounds what a server keeps by key: a map whose entries expire, and rate limits for
// the middleware and for the tag rate.
package limits

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Forever is the wait of a key that may never go.
const Forever = rate.InfDuration

// PerReplica is the warning of a server that has a rate limit and is a replica of a fleet.
const PerReplica = "mcpkit: rate limits count the calls of one replica; divide them by the number of replicas"

// maxKeys is how many keys a table remembers.
const maxKeys = 10_000

// A Table has a limit for each of up to 10,000 keys. It forgets the least recently used key first,
// which then has its full burst again. It is safe for concurrent use. Make one with [NewTable].
type Table[K comparable] struct {
	rate  rate.Limit
	burst int
	full  time.Duration // after this time without calls, a limiter has its full burst

	mu       sync.Mutex
	limiters *Map[K, *rate.Limiter] // replaced entries are put back under mu
}

// NewTable returns a table in which each key may go perSecond times a second, and burst times at
// once.
func NewTable[K comparable](perSecond float64, burst int) *Table[K] {
	full := Forever
	if seconds := float64(burst) / perSecond; seconds < Forever.Seconds() {
		full = time.Duration(seconds*float64(time.Second)) + 1
	}
	limiters := NewMap[K, *rate.Limiter](maxKeys)
	return &Table[K]{rate: rate.Limit(perSecond), burst: burst, full: full, limiters: limiters}
}

// limiter returns the limiter of a key, which becomes the most recently used.
func (t *Table[K]) limiter(key K, now time.Time) *rate.Limiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	limiter, ok := t.limiters.Get(key, now)
	if !ok {
		limiter = rate.NewLimiter(t.rate, t.burst)
	}
	t.limiters.Put(key, limiter, now.Add(t.full))
	return limiter
}

// Take returns 0 if the key may go now, and counts it. Otherwise it returns how long to wait, which
// is [Forever] if the key may never go.
func (t *Table[K]) Take(key K, now time.Time) time.Duration {
	r := t.limiter(key, now).ReserveN(now, 1)
	if !r.OK() {
		return Forever // the burst is 0
	}
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
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

// Take is [Table.Take] for a round of a call; 0 is the first.
func (r Rounds[K]) Take(key K, round int) time.Duration {
	if round > 0 {
		return r.later.Take(key, time.Now())
	}
	return r.first.Take(key, time.Now())
}
