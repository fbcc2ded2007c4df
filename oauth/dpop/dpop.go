// Package dpop makes and verifies DPoP proofs, which show that a client holds the key that its
// tokens are bound to (RFC 9449).
//
// A client uses a [Prover]. Authorization servers and resource servers use a [Verifier], which
// returns a [*ProofError] for a proof that it rejects. All types of the package are safe for
// concurrent use.
package dpop

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcpkit/mcpkit-go/oauth/internal/keys"
)

// Names of HTTP headers and their values.
const (
	// Header is the HTTP header of a proof.
	Header = "DPoP"
	// NonceHeader is the HTTP header of the nonce for the next proof.
	NonceHeader = "DPoP-Nonce"
	// Scheme is the authorization scheme, and the token type, of tokens that are bound to a key.
	Scheme = "DPoP"
	// Type is the typ of a proof.
	Type = "dpop+jwt"
)

// proof are the claims of a proof (RFC 9449, section 4.2).
type proof struct {
	ID       string  `json:"jti"`
	Verb     string  `json:"htm"`
	URI      string  `json:"htu"`
	IssuedAt float64 `json:"iat"`
	Token    string  `json:"ath,omitempty"`
	Nonce    string  `json:"nonce,omitempty"`
}

// A Prover signs proofs with one key. It is safe for concurrent use. Create one with [NewProver].
type Prover struct {
	signer     jose.Signer
	thumbprint string
	alg        string
}

// NewProver returns a prover for a private key: *ecdsa.PrivateKey, ed25519.PrivateKey or
// *rsa.PrivateKey. If key is nil, NewProver generates a P-256 key. It returns an error for other
// kinds of keys.
func NewProver(key crypto.Signer) (*Prover, error) {
	if key == nil {
		var err error
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return nil, fmt.Errorf("dpop: %w", err)
		}
	}
	public := jose.JSONWebKey{Key: key.Public()}
	algorithms := append(keys.Algorithms(public.Key), "")
	opts := (&jose.SignerOptions{EmbedJWK: true}).WithType(Type)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithms[0], Key: key}, opts)
	if err != nil {
		return nil, fmt.Errorf("dpop: the key must be %s, not a %T", keys.Supported, key)
	}
	thumbprint, err := public.Thumbprint(crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("dpop: %w", err)
	}
	return &Prover{signer: signer, thumbprint: base64.RawURLEncoding.EncodeToString(thumbprint), alg: string(algorithms[0])}, nil
}

// Thumbprint returns the RFC 7638 thumbprint of the public key. It is the cnf.jkt of tokens, and
// the dpop_jkt parameter of authorization requests.
func (p *Prover) Thumbprint() string { return p.thumbprint }

// Algorithm returns the JWS algorithm of the proofs, to compare with
// dpop_signing_alg_values_supported.
func (p *Prover) Algorithm() string { return p.alg }

// Proof returns the proof for one request with this HTTP method and URL. The token is the access
// token of the request, or "" at the token endpoint. The nonce is the one that the server requires,
// or "". Each request needs its own proof, and so does each retry. Proof returns an error if rawURL
// is not a URL or signing fails.
func (p *Prover) Proof(verb, rawURL, token, nonce string) (string, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "", fmt.Errorf("dpop: %q is not a URL", rawURL)
	}
	u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment, u.User = "", false, "", "", nil
	claims := proof{ID: rand.Text(), Verb: verb, URI: u.String(), IssuedAt: float64(time.Now().Unix()), Nonce: nonce}
	if token != "" {
		claims.Token = tokenHash(token)
	}
	signed, err := keys.Sign(p.signer, claims)
	if err != nil {
		return "", fmt.Errorf("dpop: %w", err)
	}
	return signed, nil
}

// tokenHash returns the ath of an access token.
func tokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// sameURI compares two URLs without query and fragment (RFC 9449, section 4.3), after the
// normalization of RFC 3986, sections 6.2.2 and 6.2.3.
func sameURI(a, b string) bool {
	x := normalize(a)
	return x != "" && x == normalize(b)
}

// normalize returns "" for a text that is not an absolute URL.
func normalize(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme == "" || u.Hostname() == "" || u.Opaque != "" {
		return ""
	}
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	switch scheme {
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	}
	// Needless escapes do not matter, but an encoded slash differs from a slash.
	path := cmp.Or(u.EscapedPath(), "/")
	return scheme + "://" + host + upperEscapes(path)
}

// upperEscapes writes the digits of %xx in upper case, and decodes unreserved characters.
func upperEscapes(path string) string {
	if !strings.Contains(path, "%") {
		return path
	}
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		if path[i] != '%' || i+2 >= len(path) {
			b.WriteByte(path[i])
			continue
		}
		escape := strings.ToUpper(path[i : i+3])
		if plain, err := url.PathUnescape(escape); err == nil && strings.Trim(plain, unreserved) == "" {
			b.WriteString(plain)
		} else {
			b.WriteString(escape)
		}
		i += 2
	}
	return b.String()
}

// unreserved are the characters that need no escapes (RFC 3986, section 2.3).
const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
