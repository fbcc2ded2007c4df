package dpop

import (
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

// A ReplayStore remembers proofs.
type ReplayStore interface {
	// Seen reports whether key was given to it before, and remembers it until a time, both in one step. A proof whose
	// key cannot be remembered must not be taken: that is an error.
	Seen(ctx context.Context, key [sha256.Size]byte, until time.Time) (bool, error)
}

var errFull = errors.New("more proofs than can be remembered; raise the limit of NewMemoryReplays")

// NewMemoryReplays remembers proofs in memory, at most so many at a time; 0 means [DefaultMaxReplays]. Beyond them new
// proofs are refused until old ones expire, since to forget one would be to take it twice.
func NewMemoryReplays(most int) ReplayStore {
	if most <= 0 {
		most = DefaultMaxReplays
	}
	return &memoryReplays{most: most, minutes: make(map[int64]map[[sha256.Size]byte]struct{}), now: time.Now}
}

// memoryReplays keeps keys by the minute in which they end, so that a whole minute is forgotten at once.
type memoryReplays struct {
	most int
	now  func() time.Time

	mu      sync.Mutex
	minutes map[int64]map[[sha256.Size]byte]struct{} // guarded by mu
	count   int                                      // of all keys; guarded by mu
}

func (m *memoryReplays) Seen(_ context.Context, key [sha256.Size]byte, until time.Time) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	current := m.now().Unix() / 60
	for minute, keys := range m.minutes {
		if minute < current {
			m.count -= len(keys)
			delete(m.minutes, minute)
		} else if _, ok := keys[key]; ok {
			return true, nil
		}
	}
	if m.count >= m.most {
		return false, errFull
	}
	minute := until.Unix() / 60
	if m.minutes[minute] == nil {
		m.minutes[minute] = make(map[[sha256.Size]byte]struct{})
	}
	m.minutes[minute][key] = struct{}{}
	m.count++
	return false, nil
}

// Nonces makes and knows nonces without remembering any: a nonce is the time at which it was made, and a code by a
// secret key. It is safe for concurrent use.
type Nonces struct {
	key []byte
	ttl time.Duration
}

// NewNonces makes nonces that are good for a while; 0 means five minutes. Servers behind one name need the same key, of
// at least 32 random bytes; nil is a random one.
func NewNonces(key []byte, ttl time.Duration) (*Nonces, error) {
	if key == nil {
		key = make([]byte, 32)
		_, _ = rand.Read(key) // never fails
	}
	if len(key) < 32 {
		return nil, fmt.Errorf("dpop: the key of nonces has %d bytes; at least 32 random bytes are needed", len(key))
	}
	if ttl <= 0 {
		ttl = 5 * time.Minute
	}
	return &Nonces{key: key, ttl: ttl}, nil
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
	// The clock of the server that made it may be a little ahead.
	return age >= -time.Minute && age <= n.ttl
}
