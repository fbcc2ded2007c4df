package dpop

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
)

// NewFleetReplays returns a store that all replicas of a server share: a proof that one of them has
// accepted is rejected by the others. f is mcpkit.Server.Fleet; nil means NewMemoryReplays.
//
// The limits are those of NewMemoryReplays. They hold for the proofs that one replica receives, since
// each also remembers its own proofs in memory. If the engine of the fleet is not available, Seen
// returns an error, and the verifier rejects the proof: the client may try again with a new one.
func NewFleetReplays(f *fleet.Fleet, total, perKey int) ReplayStore {
	own := NewMemoryReplays(total, perKey)
	if f == nil {
		return own
	}
	return &fleetReplays{own: own, set: f.Set("proofs", 1)}
}

type fleetReplays struct {
	own ReplayStore
	set *fleet.Set
}

// Seen implements [ReplayStore].
func (s *fleetReplays) Seen(ctx context.Context, key string, id [sha256.Size]byte, until time.Time) (bool, error) {
	if seen, err := s.own.Seen(ctx, key, id, until); seen || err != nil {
		return seen, err
	}
	// The clocks of replicas may differ by a minute.
	r := fleet.Record{Key: base64.RawURLEncoding.EncodeToString(id[:]), TTL: max(time.Until(until), 0) + time.Minute}
	_, err := s.set.Create(ctx, r)
	if errors.Is(err, fleet.ErrExists) {
		return true, nil
	}
	return false, err
}
