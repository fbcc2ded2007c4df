// Package keys says which signature algorithms a key can use.
package keys

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"

	"github.com/go-jose/go-jose/v4"
)

// Supported lists the supported private keys, for error messages.
const Supported = "an *ecdsa.PrivateKey on P-256, P-384 or P-521, an ed25519.PrivateKey, or an *rsa.PrivateKey of at least 2048 bits"

// Algorithms returns the JWS algorithms that a public key can use, the preferred one first. It
// returns none for keys that are not [Supported]. RFC 7518, section 3.3, forbids shorter RSA keys.
func Algorithms(key crypto.PublicKey) []jose.SignatureAlgorithm {
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		switch key.Curve.Params().BitSize {
		case 256:
			return []jose.SignatureAlgorithm{jose.ES256}
		case 384:
			return []jose.SignatureAlgorithm{jose.ES384}
		case 521:
			return []jose.SignatureAlgorithm{jose.ES512}
		}
	case ed25519.PublicKey:
		return []jose.SignatureAlgorithm{jose.EdDSA}
	case *rsa.PublicKey:
		if key.N.BitLen() >= 2048 {
			return []jose.SignatureAlgorithm{jose.PS256, jose.RS256, jose.PS384, jose.PS512, jose.RS384, jose.RS512}
		}
	}
	return nil
}

// All returns the names of all supported algorithms. They are all asymmetric: with a symmetric one,
// a verifier could forge tokens, or a public key could serve as the secret.
func All() []string {
	return []string{"ES256", "ES384", "ES512", "EdDSA", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512"}
}
