package dpop

import (
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth/internal/keys"
	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
)

const (
	maxAge        = 5 * time.Minute // in the past, or in the future, because clocks differ
	maxProofBytes = 8 << 10
	maxIDBytes    = 256
)

// A ProofError says why a proof is rejected. Its text contains no secrets, and is sent to the
// client.
type ProofError struct {
	Reason string
	// WrongKey reports that the proof is valid, but not signed by the key that the token is bound
	// to.
	WrongKey bool
}

// Error returns the reason.
func (e *ProofError) Error() string { return "dpop: " + e.Reason }

func refuse(format string, args ...any) error {
	return &ProofError{Reason: fmt.Sprintf(format, args...)}
}

// A Verifier checks proofs. It is safe for concurrent use. Create one with [NewVerifier].
type Verifier struct {
	replays *Replays
	now     func() time.Time
}

// NewVerifier returns a verifier that accepts each proof once.
func NewVerifier(replays *Replays) *Verifier { return &Verifier{replays: replays, now: time.Now} }

// Algorithms returns the accepted JWS algorithms, for metadata and challenges.
func (v *Verifier) Algorithms() []string { return keys.Names(keys.All) }

// A Request is the HTTP request that a proof must be for.
type Request struct {
	// Verb is the HTTP method of the request. URL is its URL as the client sees it.
	Verb, URL string
	// Token is the access token of the request. Thumbprint is the thumbprint of the key that the
	// token is bound to, its cnf.jkt. Both are empty at a token endpoint, which accepts a proof by
	// any key.
	Token, Thumbprint string
}

// Verify checks the proof of a request (RFC 9449, section 4.3) and returns the thumbprint of the
// key that signed it. It returns a [*ProofError] for a proof that it rejects. Any other error means
// that the proof could not be remembered.
//
// Verify stores only valid proofs. Otherwise a thief with a stolen token could fill the store with
// proofs signed by other keys.
func (v *Verifier) Verify(ctx context.Context, text string, r Request) (thumbprint string, err error) {
	key, claims, err := parse(text)
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
	id := proofID(sha256.Sum256([]byte(thumbprint + "\x00" + claims.ID)))
	seen, err := v.replays.seen(ctx, v.now(), id, issued.Add(maxAge+time.Second))
	if err != nil {
		return "", fmt.Errorf("dpop: remembering the proof: %w", err)
	}
	if seen {
		return "", refuse("the proof was used before")
	}
	return thumbprint, nil
}

// VerifyToken checks the proof of a request to the token endpoint at url (RFC 9449, section 5). It
// returns the thumbprint of the key that signed it, or "" without a proof. It returns a
// [*metadata.Refusal] for a proof that it rejects.
func (v *Verifier) VerifyToken(r *http.Request, url string) (thumbprint string, err error) {
	const code = "invalid_dpop_proof"
	switch proofs := r.Header.Values(Header); len(proofs) {
	case 0:
		return "", nil
	case 1:
		thumbprint, err = v.Verify(r.Context(), proofs[0], Request{Verb: r.Method, URL: url})
	default:
		return "", metadata.Refuse(code, "the request has more than one proof")
	}
	if bad, ok := errors.AsType[*ProofError](err); ok {
		return "", metadata.Refuse(code, "%s", bad.Reason)
	}
	return thumbprint, err
}

// check compares the claims of a proof with the request. It returns the time at which the proof was
// made.
func (v *Verifier) check(claims *Claims, r Request) (issued time.Time, err error) {
	switch {
	case claims.Verb != r.Verb:
		return issued, refuse("the proof is for the verb %.20q", claims.Verb)
	case !sameURI(claims.URI, r.URL):
		return issued, refuse("the proof is for another URL")
	case r.Token != "" && subtle.ConstantTimeCompare([]byte(claims.Token), []byte(TokenHash(r.Token))) != 1:
		return issued, refuse("the proof is for another token")
	case !(math.Abs(claims.IssuedAt) < 1<<40):
		return issued, refuse("the proof does not say when it was made")
	}
	issued = time.Unix(int64(claims.IssuedAt), 0)
	if age := v.now().Sub(issued); age > maxAge || age < -maxAge {
		return issued, refuse("the proof is too old, or was made by a clock that is wrong")
	}
	return issued, nil
}

// parse checks the type, algorithm, key and signature of a proof.
func parse(text string) (*jose.JSONWebKey, *Claims, error) {
	if len(text) > maxProofBytes {
		return nil, nil, refuse("the proof is larger than %d bytes", maxProofBytes)
	}
	jws, err := jose.ParseSignedCompact(text, keys.All)
	if err != nil {
		if _, ok := errors.AsType[*jose.ErrUnexpectedSignatureAlgorithm](err); ok {
			return nil, nil, refuse("the algorithm of the proof is not allowed")
		}
		return nil, nil, refuse("the proof is not a signed JWT")
	}
	header := jws.Signatures[0].Protected
	if typ, _ := header.ExtraHeaders[jose.HeaderType].(string); typ != Type {
		return nil, nil, refuse("the typ of the proof is not %q", Type)
	}
	key := header.JSONWebKey
	if key == nil || !key.Valid() || !key.IsPublic() {
		return nil, nil, refuse("the proof has no public key in jwk")
	}
	if len(keys.Algorithms(key.Key)) == 0 { // jose decodes no RSA keys over 4096 bits
		return nil, nil, refuse("the key of the proof is too short or of an unsupported kind")
	}
	payload, err := jws.Verify(key)
	if err != nil {
		return nil, nil, refuse("the signature of the proof is wrong")
	}
	var claims Claims
	if jsonx.Unmarshal(payload, &claims) != nil {
		return nil, nil, refuse("the claims of the proof are invalid")
	}
	if claims.ID == "" || len(claims.ID) > maxIDBytes || claims.Verb == "" || claims.URI == "" || claims.IssuedAt == 0 {
		return nil, nil, refuse("the proof needs jti, htm, htu and iat")
	}
	return key, &claims, nil
}
