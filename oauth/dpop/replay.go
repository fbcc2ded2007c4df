package dpop

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"
)

// A ReplayStore remembers used proofs. Implementations must be safe for concurrent use.
type ReplayStore interface {
	// Seen reports whether the proof with this ID was used before, and stores it until the given
	// time, atomically. The key is the RFC 7638 thumbprint of the key that signed the proof. IDs
	// are unique across keys, so a store without limits per key needs only the ID.
	//
	// An error means that the proof was not stored. The verifier then rejects it. Return
	// [ErrTooManyProofs] for a key that has used up its share of the store.
	Seen(ctx context.Context, key string, id [sha256.Size]byte, until time.Time) (bool, error)
}

// ErrTooManyProofs is returned by a [ReplayStore] if one key has used up its share: the client must
// slow down.
var ErrTooManyProofs = errors.New("too many proofs by this key")

var errFull = errors.New("the store is full; raise the limits of NewMemoryReplays")

// NewMemoryReplays returns a store in memory. It holds up to total proofs, and up to perKey proofs
// signed by one key. Zero means [DefaultMaxReplays] and [DefaultMaxReplaysPerKey]. It holds a proof
// until the proof expires. It rejects proofs beyond a limit, because forgetting another proof would
// allow a replay of it.
func NewMemoryReplays(total, perKey int) ReplayStore {
	return &memoryReplays{
		total: cmp.Or(max(total, 0), DefaultMaxReplays), perKey: cmp.Or(max(perKey, 0), DefaultMaxReplaysPerKey),
		minutes: make(map[int64]*replayMinute), now: time.Now,
	}
}

// memoryReplays groups proofs by the minute in which they expire, so that a whole minute is dropped
// at once.
type memoryReplays struct {
	total, perKey int
	now           func() time.Time

	mu      sync.Mutex
	minutes map[int64]*replayMinute // guarded by mu
	count   int                     // of all proofs; guarded by mu
}

type replayMinute struct {
	ids   map[[sha256.Size]byte]struct{}
	byKey map[string]int // how many of ids are by which key
}

func (m *memoryReplays) Seen(_ context.Context, key string, id [sha256.Size]byte, until time.Time) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	current, ofKey := m.now().Unix()/60, 0
	for start, minute := range m.minutes {
		if start < current {
			m.count -= len(minute.ids)
			delete(m.minutes, start)
			continue
		}
		if _, ok := minute.ids[id]; ok {
			return true, nil
		}
		ofKey += minute.byKey[key]
	}
	switch {
	case ofKey >= m.perKey:
		return false, ErrTooManyProofs
	case m.count >= m.total:
		return false, errFull
	}
	start := until.Unix() / 60
	minute := m.minutes[start]
	if minute == nil {
		minute = &replayMinute{ids: make(map[[sha256.Size]byte]struct{}), byKey: make(map[string]int)}
		m.minutes[start] = minute
	}
	minute.ids[id] = struct{}{}
	minute.byKey[key]++
	m.count++
	return false, nil
}

// Nonces issues and checks nonces without storing them: a nonce is its creation time with a MAC. It
// is safe for concurrent use. Create one with [NewNonces].
type Nonces struct {
	key []byte
	ttl time.Duration
}

// NewNonces returns nonces that are valid for ttl. Zero means 5 minutes. Servers that share a host
// name need the same key, of at least 32 random bytes. Nil means a random key. NewNonces returns an
// error for a shorter key.
func NewNonces(key []byte, ttl time.Duration) (*Nonces, error) {
	if key == nil {
		key = make([]byte, 32)
		_, _ = rand.Read(key) // never fails
	}
	if len(key) < 32 {
		return nil, fmt.Errorf("dpop: the key of nonces has %d bytes; at least 32 random bytes are needed", len(key))
	}
	return &Nonces{key: key, ttl: cmp.Or(max(ttl, 0), 5*time.Minute)}, nil
}

func (n *Nonces) issue(now time.Time) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(now.Unix()))
	return base64.RawURLEncoding.EncodeToString(append(b, n.code(b)...))
}

func (n *Nonces) code(b []byte) []byte {
	mac := hmac.New(sha256.New, n.key)
	mac.Write(b)
	return mac.Sum(nil)[:16]
}

func (n *Nonces) valid(nonce string, now time.Time) bool {
	b, err := base64.RawURLEncoding.DecodeString(nonce)
	if err != nil || len(b) != 8+16 || !hmac.Equal(b[8:], n.code(b[:8])) {
		return false
	}
	age := now.Sub(time.Unix(int64(binary.BigEndian.Uint64(b)), 0))
	// The clock of the server that issued it may be slightly ahead.
	return age >= -time.Minute && age <= n.ttl
}
