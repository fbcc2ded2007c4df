package rounds

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

const maxStateBytes = 32 << 10 // bytes of answers and values of Once that travel through the client

// A Sealer encrypts and authenticates what clients, or the engine of a fleet, hold for a server.
type Sealer struct {
	keys  []cipher.AEAD // the first seals; each opens
	bound []byte        // what all of it is bound to besides the key: the purpose and the server
	Owner []byte        // the server that answers and values in a state belong to
}

// sealPurpose separates these keys from other uses of the same secret, and is the version of the
// format.
const sealPurpose = "mcpkit state v3"

// NewSealer returns the sealer of a server, with a random key if there are none. States are valid for
// all replicas and versions of the server, and for no server with another name.
func NewSealer(secrets [][]byte, server string) *Sealer {
	s := &Sealer{bound: []byte(sealPurpose + "\x00" + server), Owner: Digest([]byte(server))}
	if len(secrets) == 0 {
		secret := make([]byte, 32)
		rand.Read(secret) // never fails
		secrets = [][]byte{secret}
	}
	for _, secret := range secrets {
		key := must(hkdf.Key(sha256.New, secret, nil, sealPurpose, 32))
		s.keys = append(s.keys, must(cipher.NewGCMWithRandomNonce(must(aes.NewCipher(key)))))
	}
	return s
}

// must returns v. The errors are for sizes of keys that are not used here.
func must[T any](v T, err error) T {
	if err != nil {
		panic("mcpkit: " + err.Error())
	}
	return v
}

// Seal returns state as text that only this server can read or make. It is bound to call, the digest of
// what is called and by whom.
func (s *Sealer) Seal(call []byte, state *State) (string, error) {
	plain, err := jsonx.Marshal(state)
	if err != nil {
		return "", err
	}
	if len(plain) > maxStateBytes {
		return "", fmt.Errorf("the answers and values of this call take %d bytes; at most %d can travel through the client", len(plain), maxStateBytes)
	}
	return base64.RawURLEncoding.EncodeToString(s.SealRecord(stateID+string(call), plain)), nil
}

var ErrBadState = errors.New("requestState is not one that this server gave, or not for this call")

// Open is the inverse of Seal. Its error has no reason.
func (s *Sealer) Open(call []byte, text string) (*State, error) {
	if len(text) > 2*maxStateBytes || strings.ContainsAny(text, "\r\n") { // decoders skip these
		return nil, ErrBadState
	}
	// Strict: otherwise several texts, differing in unused bits, would be the same state.
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, ErrBadState
	}
	plain, err := s.OpenRecord(stateID+string(call), sealed)
	state := new(State)
	if err != nil || jsonx.Unmarshal(plain, state) != nil || time.Now().Unix() > state.Expires {
		return nil, ErrBadState
	}
	return state, nil
}

// stateID begins the ids of states. Records have others.
const stateID = "requestState"

// SealRecord returns plain as bytes that only this server can read or make. They are bound to id.
func (s *Sealer) SealRecord(id string, plain []byte) []byte {
	return s.keys[0].Seal(nil, nil, plain, s.boundTo(id))
}

// OpenRecord is the inverse of SealRecord.
func (s *Sealer) OpenRecord(id string, sealed []byte) ([]byte, error) {
	for _, key := range s.keys {
		if plain, err := key.Open(nil, nil, sealed, s.boundTo(id)); err == nil {
			return plain, nil
		}
	}
	return nil, errors.New("the record was not sealed by this server for this id, or its key is gone")
}

func (s *Sealer) boundTo(id string) []byte { return slices.Concat(s.bound, []byte{0}, []byte(id)) }

// Digest returns a digest of the parts.
func Digest(parts ...[]byte) []byte {
	h := sha256.New()
	for _, p := range parts {
		h.Write(strconv.AppendInt(nil, int64(len(p)), 10))
		h.Write([]byte{':'})
		h.Write(p)
	}
	return h.Sum(nil)[:16]
}
