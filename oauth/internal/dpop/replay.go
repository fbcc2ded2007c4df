package dpop

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
)

// MaxReplays is how many proofs a server remembers.
const MaxReplays = 1 << 18

var errFull = errors.New("more proofs than can be remembered")

// Replays remembers proofs until they expire: in memory, and in the fleet if there is one, so that a
// proof that one replica has accepted is rejected by the others. It rejects proofs beyond a limit,
// because forgetting another proof would allow a replay of it. It is safe for concurrent use.
type Replays struct {
	// Fleet returns the fleet, or nil if there is none. Nil means no fleet.
	Fleet func() *fleet.Fleet

	total int

	mu      sync.Mutex
	minutes map[int64]map[proofID]struct{} // by the minute in which proofs expire; guarded by mu
	count   int                            // of all proofs; guarded by mu
}

// proofID identifies a proof, whatever key signed it.
type proofID [sha256.Size]byte

// NewReplays returns an empty store of up to total proofs.
func NewReplays(total int) *Replays {
	return &Replays{total: total, minutes: make(map[int64]map[proofID]struct{})}
}

// seen reports whether the proof with this ID, which is unique across keys, was used before, and
// stores it until the given time, atomically. An error means that the proof was not stored.
func (r *Replays) seen(ctx context.Context, now time.Time, id proofID, until time.Time) (bool, error) {
	if seen, err := r.seenHere(now, id, until); seen || err != nil || r.Fleet == nil {
		return seen, err
	}
	f := r.Fleet()
	if f == nil {
		return false, nil
	}
	// The clocks of replicas may differ by a minute.
	record := fleet.Record{Key: base64.RawURLEncoding.EncodeToString(id[:]), TTL: max(until.Sub(now), 0) + time.Minute}
	_, err := f.Set("proofs", 1).Create(ctx, record)
	if errors.Is(err, fleet.ErrExists) {
		return true, nil
	}
	return false, err
}

func (r *Replays) seenHere(now time.Time, id proofID, until time.Time) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	current := now.Unix() / 60
	for minute, ids := range r.minutes {
		if minute < current {
			r.count -= len(ids)
			delete(r.minutes, minute)
		} else if _, ok := ids[id]; ok {
			return true, nil
		}
	}
	if r.count >= r.total {
		return false, errFull
	}
	minute := until.Unix() / 60
	if r.minutes[minute] == nil {
		r.minutes[minute] = make(map[proofID]struct{})
	}
	r.minutes[minute][id] = struct{}{}
	r.count++
	return false, nil
}
