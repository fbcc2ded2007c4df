// Package limits bounds what a server keeps by key: a map whose entries expire, and rate limits for
// the middleware and for the tag rate.
package limits

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Forever is a time that does not end.
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

	mu       sync.Mutex // held while a limiter is looked up or made
	limiters *Map[K, *rate.Limiter]
}

// NewTable returns a table in which each key may go perSecond times a second, and burst times, at
// least 1, at once.
func NewTable[K comparable](perSecond float64, burst int) *Table[K] {
	return &Table[K]{rate: rate.Limit(perSecond), burst: burst, limiters: NewMap[K, *rate.Limiter](maxKeys)}
}

// Take returns 0 if the key may go now, and counts it. Otherwise it returns how long to wait.
func (t *Table[K]) Take(key K, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	limiter, ok := t.limiters.Get(key, now)
	if !ok {
		limiter = rate.NewLimiter(t.rate, t.burst)
		t.limiters.Put(key, limiter, now.Add(Forever))
	}
	r := limiter.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

// Rounds limits calls by key. A later round of a call, in which the client answers questions, counts
// only if its state was used before. It is safe for concurrent use. Make one with [NewRounds].
type Rounds[K comparable] struct {
	calls *Table[K]
	used  *Table[state[K]]
}

// A state is what a client sends to continue a call.
type state[K comparable] struct {
	key   K
	ref   string // of the call
	round int
}

// NewRounds returns limits of perSecond and burst calls.
func NewRounds[K comparable](perSecond float64, burst int) Rounds[K] {
	return Rounds[K]{NewTable[K](perSecond, burst), NewTable[state[K]](0, 1)}
}

// Take is [Table.Take] for a round of the call ref; 0 is the first.
func (r Rounds[K]) Take(key K, ref string, round int) time.Duration {
	now := time.Now()
	if round > 0 && r.used.Take(state[K]{key, ref, round}, now) == 0 {
		return 0
	}
	return r.calls.Take(key, now)
}
