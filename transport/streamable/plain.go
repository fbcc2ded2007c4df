package streamable

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"

	"github.com/mcpkit/mcpkit-go/transport"
)

// A plainStorer seals sessions for a handler that keeps nothing in them, with a key of its own: they
// end with the process.
type plainStorer struct {
	transport.Handler
	key cipher.AEAD
}

func newPlainStorer(h transport.Handler) *plainStorer {
	secret := make([]byte, 32)
	rand.Read(secret)                 // never fails
	block, _ := aes.NewCipher(secret) // these sizes are always possible
	key, _ := cipher.NewGCMWithRandomNonce(block)
	return &plainStorer{h, key}
}

func (p *plainStorer) SealSession(plain []byte) []byte { return p.key.Seal(nil, nil, plain, nil) }

func (p *plainStorer) OpenSession(sealed []byte) ([]byte, error) {
	return p.key.Open(nil, nil, sealed, nil)
}

func (p *plainStorer) StoreSession(s *transport.Session) (agreed, changes []byte) {
	return []byte(s.Version()), nil
}

func (p *plainStorer) RestoreSession(_ context.Context, s *transport.Session, agreed, _ []byte) error {
	s.SetVersion(string(agreed))
	return nil
}

func (p *plainStorer) SessionMissed(*transport.Session) {}

func (p *plainStorer) SessionEnded(s *transport.Session) {
	if sh, ok := p.Handler.(transport.SessionHandler); ok {
		sh.SessionEnded(s)
	}
}
