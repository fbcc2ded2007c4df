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

// Limits of a server.
const (
	MaxReplays       = 1 << 18
	MaxReplaysPerKey = MaxReplays / 8
)

// ErrTooManyProofs is returned if one key has used up its share of the remembered proofs: the client
// must slow down.
var ErrTooManyProofs = errors.New("too many proofs by this key")

var errFull = errors.New("more proofs than can be remembered")

// Replays remembers proofs until they expire: in memory, and in the fleet if there is one, so that a
// proof that one replica has accepted is rejected by the others. It rejects proofs beyond a limit,
// because forgetting another proof would allow a replay of it. It is safe for concurrent use.
type Replays struct {
	// Fleet returns the fleet, or nil if there is none. Nil means no fleet.
	Fleet func() *fleet.Fleet

	total, perKey int

	mu      sync.Mutex
	minutes map[int64]*replayMinute // by the minute in which proofs expire; guarded by mu
	count   int                     // of all proofs; guarded by mu
}

// proofID identifies a proof, whatever key signed it.
type proofID [sha256.Size]byte

type replayMinute struct {
	ids   map[proofID]struct{}
	byKey map[string]int // how many of ids are by which key
}

// NewReplays returns an empty store of up to total proofs, and up to perKey proofs by one key.
func NewReplays(total, perKey int) *Replays {
	return &Replays{total: total, perKey: perKey, minutes: make(map[int64]*replayMinute)}
}

// seen reports whether the proof with this ID, which is unique across keys, was used before, and
// stores it until the given time, atomically. The key is the thumbprint of the key that signed the
// proof. An error means that the proof was not stored.
func (r *Replays) seen(ctx context.Context, now time.Time, key string, id proofID, until time.Time) (bool, error) {
	if seen, err := r.seenHere(now, key, id, until); seen || err != nil || r.Fleet == nil {
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

func (r *Replays) seenHere(now time.Time, key string, id proofID, until time.Time) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	current, ofKey := now.Unix()/60, 0
	for start, minute := range r.minutes {
		if start < current {
			r.count -= len(minute.ids)
			delete(r.minutes, start)
			continue
		}
		if _, ok := minute.ids[id]; ok {
			return true, nil
		}
		ofKey += minute.byKey[key]
	}
	switch {
	case ofKey >= r.perKey:
		return false, ErrTooManyProofs
	case r.count >= r.total:
		return false, errFull
	}
	start := until.Unix() / 60
	minute := r.minutes[start]
	if minute == nil {
		minute = &replayMinute{ids: make(map[proofID]struct{}), byKey: make(map[string]int)}
		r.minutes[start] = minute
	}
	minute.ids[id] = struct{}{}
	minute.byKey[key]++
	r.count++
	return false, nil
}
