package mcpkit

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// Limits of a call that asks questions.
const (
	// AnswerTime is how long a client of 2026-07-28 may take to send the call again with its answers. Then the call is over.
	//
	//limit:call time between two rounds of a call that asks (2026-07-28) | -32602; the client starts the call again
	AnswerTime = time.Hour

	// MaxRounds is how many times a client of 2026-07-28 may send a call again with answers.
	//
	//limit:call rounds of a call that asks | an error: `the call asked questions in `
	MaxRounds = 32

	//limit:call bytes of answers and values of Once that travel through the client | an error: `can travel through the client`
	maxStateBytes = 32 << 10
)

// roundState is what travels through the client between the rounds of a call: sealed, and bound to that call.
type roundState struct {
	Method    string                     `json:"m"`
	Name      string                     `json:"n"`
	Arguments []byte                     `json:"d"` // digest
	Principal []byte                     `json:"p"` // digest of its key
	Expires   int64                      `json:"x"` // Unix seconds
	Round     int                        `json:"r"`
	Ref       string                     `json:"i"` // of the call: the same in all rounds
	Begun     int64                      `json:"b"` // Unix milliseconds
	Answers   map[string]answer          `json:"a,omitempty"`
	Once      map[string]json.RawMessage `json:"o,omitempty"`
	Waiting   map[string]waiting         `json:"w,omitempty"` // the questions of this round, by the key that the client knows
}

// An answer is bound to the question that it answers, so that another question never gets it.
type answer struct {
	Question []byte          `json:"q"`
	Text     string          `json:"t,omitempty"` // of the question, shortened; for the log
	Round    int             `json:"r,omitempty"` // in which it was asked
	Value    json.RawMessage `json:"v"`
}

// A waiting question is one that was asked in the round before.
type waiting struct {
	Key      string `json:"k"`
	Question []byte `json:"q"`
	Text     string `json:"t,omitempty"`
}

// A sealer keeps round states secret and whole while clients hold them.
type sealer struct {
	keys   []cipher.AEAD // the first seals; each opens
	bound  []byte        // what states are bound to beside the key: their purpose and their server
	owner  []byte        // whom the answers and values are for, within a state
	random bool          // no key was given
	warned atomic.Bool
}

// sealPurpose separates these keys from any other use of the same secret, and versions the form.
const sealPurpose = "mcpkit request state v2"

// newSealer makes the sealer of a server. States are for all replicas of it, in whatever version, and for no other server:
// what a server is called is what it is.
func newSealer(secrets [][]byte, server string) *sealer {
	s := &sealer{
		random: len(secrets) == 0, bound: []byte(sealPurpose + "\x00" + server), owner: digest([]byte(server)),
	}
	if s.random {
		secret := make([]byte, 32)
		rand.Read(secret) // never fails
		secrets = [][]byte{secret}
	}
	for _, secret := range secrets {
		s.keys = append(s.keys, newAEAD(secret))
	}
	return s
}

func newAEAD(secret []byte) cipher.AEAD {
	key, err := hkdf.Key(sha256.New, secret, nil, sealPurpose, 32)
	if err != nil {
		panic("mcpkit: " + err.Error()) // 32 bytes are never too many
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic("mcpkit: " + err.Error()) // nor a wrong size
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic("mcpkit: " + err.Error())
	}
	return aead
}

// seal returns state as text that only this server can read or make.
func (s *sealer) seal(state *roundState) (string, error) {
	plain, err := jsonx.Marshal(state)
	if err != nil {
		return "", err
	}
	if len(plain) > maxStateBytes {
		return "", fmt.Errorf("the answers and values of this call take %d bytes; at most %d can travel through the client", len(plain), maxStateBytes)
	}
	sealed := s.keys[0].Seal(nil, nil, plain, s.bound)
	return base64.RawURLEncoding.EncodeToString(sealed), nil
}

var errBadState = errors.New("requestState is not one that this server gave")

// open is the inverse of seal. It says nothing of why it refuses.
func (s *sealer) open(text string) (*roundState, error) {
	if len(text) > 2*maxStateBytes || strings.ContainsAny(text, "\r\n") { // which decoders skip
		return nil, errBadState
	}
	// Strict: else several texts, differing in unused bits, would be the same state.
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, errBadState
	}
	for _, key := range s.keys {
		plain, err := key.Open(nil, nil, sealed, s.bound)
		if err != nil {
			continue
		}
		var state roundState
		if jsonx.Unmarshal(plain, &state) != nil {
			return nil, errBadState
		}
		return &state, nil
	}
	return nil, errBadState
}
