// Package dpop makes and checks proofs that a client holds the key its tokens are bound to (RFC 9449).
//
// A client has a [Prover], a server of either kind a [Verifier].
package dpop

import (
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

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// Names of header fields, and what their values hold.
const (
	// Header carries a proof.
	Header = "DPoP"
	// NonceHeader carries a nonce that the next proof has to hold.
	NonceHeader = "DPoP-Nonce"
	// Scheme is the authorization scheme, and the token type, of tokens that are bound to a key.
	Scheme = "DPoP"
	// Type is what a proof's typ says.
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

// A Prover makes proofs by one key. It is safe for concurrent use.
type Prover struct {
	signer     jose.Signer
	thumbprint string
	alg        string
}

// NewProver makes a prover of a private key: *ecdsa.PrivateKey, ed25519.PrivateKey or *rsa.PrivateKey. A nil key is a
// new one on P-256, which lives as long as the prover does.
func NewProver(key crypto.Signer) (*Prover, error) {
	if key == nil {
		var err error
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return nil, fmt.Errorf("dpop: %w", err)
		}
	}
	public := jose.JSONWebKey{Key: key.Public()}
	alg, err := algorithm(key)
	if err != nil {
		return nil, err
	}
	opts := (&jose.SignerOptions{EmbedJWK: true}).WithType(Type)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, opts)
	if err != nil {
		return nil, fmt.Errorf("dpop: %w", err)
	}
	thumbprint, err := public.Thumbprint(crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("dpop: %w", err)
	}
	return &Prover{signer: signer, thumbprint: base64.RawURLEncoding.EncodeToString(thumbprint), alg: string(alg)}, nil
}

// Thumbprint is the RFC 7638 thumbprint of the public key: what a token's cnf.jkt says, and the dpop_jkt parameter of an
// authorization request.
func (p *Prover) Thumbprint() string { return p.thumbprint }

// Algorithm is the JWS algorithm of the proofs, to be compared with dpop_signing_alg_values_supported.
func (p *Prover) Algorithm() string { return p.alg }

// Proof makes the proof for one request: its verb, its URL, the access token that it carries ("" at the token endpoint)
// and the nonce that the server asked for ("" for none). Every request, also one that is sent again, needs its own.
func (p *Prover) Proof(verb, rawURL, token, nonce string) (string, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "", fmt.Errorf("dpop: %q is no URL", rawURL)
	}
	u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment, u.User = "", false, "", "", nil
	claims := proof{ID: rand.Text(), Verb: verb, URI: u.String(), IssuedAt: float64(time.Now().Unix()), Nonce: nonce}
	if token != "" {
		claims.Token = tokenHash(token)
	}
	payload, err := jsonx.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("dpop: %w", err)
	}
	signed, err := p.signer.Sign(payload)
	if err != nil {
		return "", fmt.Errorf("dpop: %w", err)
	}
	return signed.CompactSerialize()
}

// tokenHash is what ath says of an access token.
func tokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// sameURI compares two URLs as RFC 9449, section 4.3, has it: without query and fragment, after the normalization of
// RFC 3986, sections 6.2.2 and 6.2.3.
func sameURI(a, b string) bool {
	x, okX := normalize(a)
	y, okY := normalize(b)
	return okX && okY && x == y
}

func normalize(raw string) (string, bool) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme == "" || u.Host == "" || u.Opaque != "" {
		return "", false
	}
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	switch scheme {
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	}
	// What is encoded without need is the same; an encoded slash is not a slash.
	path := (&url.URL{Path: u.Path, RawPath: u.RawPath}).EscapedPath()
	if path == "" {
		path = "/"
	}
	return scheme + "://" + host + upperEscapes(path), true
}

// upperEscapes writes the digits of %xx in upper case, and decodes what need not be encoded.
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
		if plain, err := url.PathUnescape(escape); err == nil && len(plain) == 1 && isUnreserved(plain[0]) {
			b.WriteString(plain)
		} else {
			b.WriteString(escape)
		}
		i += 2
	}
	return b.String()
}

func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}
