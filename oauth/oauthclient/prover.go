package oauthclient

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/url"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcpkit/mcpkit-go/oauth/internal/dpop"
	"github.com/mcpkit/mcpkit-go/oauth/internal/keys"
)

// A Prover signs DPoP proofs with one key (RFC 9449). It is safe for concurrent use. Create one with
// [NewProver].
type Prover struct {
	key        crypto.Signer
	algorithm  jose.SignatureAlgorithm
	thumbprint string
}

// NewProver returns a prover for a private key: *ecdsa.PrivateKey, ed25519.PrivateKey or
// *rsa.PrivateKey. If key is nil, NewProver generates a P-256 key. It returns an error for other
// kinds of keys.
func NewProver(key crypto.Signer) (*Prover, error) {
	if key == nil {
		var err error
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return nil, fmt.Errorf("oauthclient: %w", err)
		}
	}
	public := jose.JSONWebKey{Key: key.Public()}
	algorithms := keys.Algorithms(public.Key)
	if len(algorithms) == 0 {
		return nil, fmt.Errorf("oauthclient: the key must be %s, not a %T", keys.Supported, key)
	}
	thumbprint, err := public.Thumbprint(crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("oauthclient: %w", err)
	}
	return &Prover{key, algorithms[0], base64.RawURLEncoding.EncodeToString(thumbprint)}, nil
}

// Thumbprint returns the RFC 7638 thumbprint of the public key. It is the cnf.jkt of tokens, and
// the dpop_jkt parameter of authorization requests.
func (p *Prover) Thumbprint() string { return p.thumbprint }

// Proof returns the proof for one request with this HTTP method and URL. The token is the access
// token of the request, or "" at the token endpoint. The nonce is the one that the server requires,
// or "". Each request needs its own proof, and so does each retry. Proof returns an error if rawURL
// is not a URL or signing fails.
func (p *Prover) Proof(verb, rawURL, token, nonce string) (string, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "", fmt.Errorf("oauthclient: %q is not a URL", rawURL)
	}
	u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment, u.User = "", false, "", "", nil
	claims := dpop.Claims{ID: rand.Text(), Verb: verb, URI: u.String(), IssuedAt: float64(time.Now().Unix()), Nonce: nonce}
	if token != "" {
		claims.Token = dpop.TokenHash(token)
	}
	signed, err := keys.Sign(p.key, p.algorithm, (&jose.SignerOptions{EmbedJWK: true}).WithType(dpop.Type), claims)
	if err != nil {
		return "", fmt.Errorf("oauthclient: %w", err)
	}
	return signed, nil
}
