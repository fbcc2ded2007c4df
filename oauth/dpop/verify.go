package dpop

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// Defaults of [Options] and [NewMemoryReplays].
const (
	DefaultMaxAge           = 5 * time.Minute
	DefaultMaxReplays       = 1 << 18
	DefaultMaxReplaysPerKey = DefaultMaxReplays / 8 // about 100 requests a second
)

// maxProof bounds what is parsed of a proof, maxID what its jti may be.
const (
	maxProof = 8 << 10
	maxID    = 256
)

// minRSA is how long the RSA key of a proof has to be, in bits (RFC 7518, section 3.3). Beyond 4096 bits, where it would
// cost more to check than to make up, keys are not read at all.
const minRSA = 2048

// Options configures a [Verifier]. The zero value serves.
type Options struct {
	// Algorithms are the JWS algorithms that proofs may be signed by. Nil means ES256, ES384, ES512, EdDSA, PS256,
	// PS384, PS512, RS256, RS384 and RS512. Symmetric ones are refused.
	Algorithms []string
	// MaxAge is how far the iat of a proof may lie in the past, and in the future, since clocks differ. Zero means
	// [DefaultMaxAge].
	MaxAge time.Duration
	// Replays remembers proofs so that each is accepted once. Nil means NewMemoryReplays(0, 0), which serves one
	// process: several processes behind one name need a store that they share.
	Replays ReplayStore
	// Nonces, when set, demands that proofs hold a nonce of this server's.
	Nonces *Nonces
}

// A ProofError says why a proof is refused. Its text holds nothing secret and is meant for the client.
type ProofError struct {
	Reason string
	// NeedsNonce says that the proof would be accepted with a fresh nonce, which the client should be given.
	NeedsNonce bool
	// WrongKey says that the proof is good, but signed by another key than the one that the token is bound to.
	WrongKey bool
}

// Error returns the reason.
func (e *ProofError) Error() string { return "dpop: " + e.Reason }

func refuse(format string, args ...any) error {
	return &ProofError{Reason: fmt.Sprintf(format, args...)}
}

// A Verifier checks proofs. It is safe for concurrent use. Make one with [NewVerifier].
type Verifier struct {
	names      []string
	algorithms []jose.SignatureAlgorithm
	maxAge     time.Duration
	replays    ReplayStore
	nonces     *Nonces
	now        func() time.Time
}

// NewVerifier makes a verifier. The error names an algorithm that cannot be had.
func NewVerifier(opts Options) (*Verifier, error) {
	v := &Verifier{names: opts.Algorithms, maxAge: opts.MaxAge, replays: opts.Replays, nonces: opts.Nonces, now: time.Now}
	if v.names == nil {
		v.names = defaultAlgorithms
	}
	for _, name := range v.names {
		if !slices.Contains(defaultAlgorithms, name) {
			return nil, fmt.Errorf("dpop: algorithm %q cannot be used for proofs; known are %q", name, defaultAlgorithms)
		}
		v.algorithms = append(v.algorithms, jose.SignatureAlgorithm(name))
	}
	if v.maxAge <= 0 {
		v.maxAge = DefaultMaxAge
	}
	if v.replays == nil {
		v.replays = NewMemoryReplays(0, 0)
	}
	return v, nil
}

// Algorithms are the JWS algorithms that proofs may be signed by: what metadata and challenges say.
func (v *Verifier) Algorithms() []string { return slices.Clone(v.names) }

// Nonce is a nonce for the client's next proof, "" when none are demanded.
func (v *Verifier) Nonce() string {
	if v.nonces == nil {
		return ""
	}
	return v.nonces.issue(v.now())
}

// A Request is what a proof must have been made for.
type Request struct {
	// Verb is the HTTP method of the request, and URL the one by which the client knows what it asks.
	Verb, URL string
	// Token is the access token that the request carries, and Thumbprint the one of the key that this token is bound to:
	// its cnf.jkt. Both are empty at a token endpoint, where a proof by any key is accepted.
	Token, Thumbprint string
}

// Verify checks the proof of a request (RFC 9449, section 4.3) and returns the thumbprint of the key that signed it. A
// proof that is refused is a [*ProofError]. Any other error means that the replay store failed, or, if it wraps
// [ErrTooManyProofs], that the key has used up its share of the store.
//
// Only a proof that passes every check is remembered. Whoever steals a token can sign any number of proofs by a key of
// their own, and fills no store with them.
func (v *Verifier) Verify(ctx context.Context, text string, r Request) (thumbprint string, err error) {
	if r.Token != "" && r.Thumbprint == "" {
		return "", errors.New("dpop: the Request has a Token and no Thumbprint; a token that is not bound to a key needs no proof")
	}
	key, claims, err := v.parse(text)
	if err != nil {
		return "", err
	}
	issued, err := v.check(claims, r)
	if err != nil {
		return "", err
	}
	raw, err := key.Thumbprint(crypto.SHA256)
	if err != nil {
		return "", refuse("the key of the proof has no thumbprint")
	}
	thumbprint = base64.RawURLEncoding.EncodeToString(raw)
	if r.Thumbprint != "" && subtle.ConstantTimeCompare([]byte(thumbprint), []byte(r.Thumbprint)) != 1 {
		return "", &ProofError{Reason: "the token is bound to another key", WrongKey: true}
	}
	// The key is part of the ID: one client cannot use up the IDs of another.
	id := sha256.Sum256([]byte(thumbprint + "\x00" + claims.ID))
	seen, err := v.replays.Seen(ctx, thumbprint, id, issued.Add(v.maxAge+time.Second))
	if err != nil {
		return "", fmt.Errorf("dpop: the replay store: %w", err)
	}
	if seen {
		return "", refuse("the proof was used before")
	}
	return thumbprint, nil
}

// check compares the claims of a proof with the request, and returns when the proof was made.
func (v *Verifier) check(claims *proof, r Request) (issued time.Time, err error) {
	switch {
	case claims.Verb != r.Verb:
		return issued, refuse("the proof is for the verb %.20q", claims.Verb)
	case !sameURI(claims.URI, r.URL):
		return issued, refuse("the proof is for another URL")
	case r.Token != "" && subtle.ConstantTimeCompare([]byte(claims.Token), []byte(tokenHash(r.Token))) != 1:
		return issued, refuse("the proof is for another token")
	case v.nonces != nil && !v.nonces.valid(claims.Nonce, v.now()):
		return issued, &ProofError{Reason: "the proof needs a fresh nonce of this server", NeedsNonce: true}
	case !(math.Abs(claims.IssuedAt) < 1<<40):
		return issued, refuse("the proof does not say when it was made")
	}
	issued = time.Unix(int64(claims.IssuedAt), 0)
	if age := v.now().Sub(issued); age > v.maxAge || age < -v.maxAge {
		return issued, refuse("the proof is too old, or was made by a clock that is wrong")
	}
	return issued, nil
}

// parse checks what a proof says of itself: type, algorithm, key and signature.
func (v *Verifier) parse(text string) (*jose.JSONWebKey, *proof, error) {
	if len(text) > maxProof {
		return nil, nil, refuse("the proof is larger than %d bytes", maxProof)
	}
	jws, err := jose.ParseSignedCompact(text, v.algorithms)
	if err != nil {
		if _, ok := errors.AsType[*jose.ErrUnexpectedSignatureAlgorithm](err); ok {
			return nil, nil, refuse("the algorithm of the proof is not allowed")
		}
		return nil, nil, refuse("the proof is no signed JWT")
	}
	header := jws.Signatures[0].Protected
	if typ, _ := header.ExtraHeaders[jose.HeaderType].(string); typ != Type {
		return nil, nil, refuse("the typ of the proof is not %q", Type)
	}
	key := header.JSONWebKey
	if key == nil || !key.Valid() || !key.IsPublic() {
		return nil, nil, refuse("the proof has no public key in jwk")
	}
	if public, ok := key.Key.(*rsa.PublicKey); ok && public.N.BitLen() < minRSA {
		return nil, nil, refuse("the RSA key of the proof has less than %d bits", minRSA)
	}
	payload, err := jws.Verify(key)
	if err != nil {
		return nil, nil, refuse("the signature of the proof is wrong")
	}
	var claims proof
	if jsonx.Unmarshal(payload, &claims) != nil {
		return nil, nil, refuse("the claims of the proof do not fit")
	}
	if claims.ID == "" || len(claims.ID) > maxID || claims.Verb == "" || claims.URI == "" || claims.IssuedAt == 0 {
		return nil, nil, refuse("the proof needs jti, htm, htu and iat")
	}
	return key, &claims, nil
}
