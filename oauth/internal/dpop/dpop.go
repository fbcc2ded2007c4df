// Package dpop verifies DPoP proofs, which show that a client holds the key that its tokens are bound
// to (RFC 9449). Package oauthclient makes them.
package dpop

import (
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strings"

	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
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

// Claims are the claims of a proof (RFC 9449, section 4.2).
type Claims struct {
	ID       string  `json:"jti"`
	Verb     string  `json:"htm"`
	URI      string  `json:"htu"`
	IssuedAt float64 `json:"iat"`
	Token    string  `json:"ath,omitempty"`
	Nonce    string  `json:"nonce,omitempty"`
}

// TokenHash returns the ath of an access token.
func TokenHash(token string) string {
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
	// Needless escapes do not matter, but an encoded slash differs from a slash.
	segments := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	for i, segment := range segments {
		plain, err := url.PathUnescape(segment)
		if err != nil {
			return ""
		}
		segments[i] = url.PathEscape(plain)
	}
	return metadata.Origin(u) + "/" + strings.Join(segments, "/")
}
