package dpop

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"fmt"

	"github.com/go-jose/go-jose/v4"
)

// defaultAlgorithms are accepted by a [Verifier] by default. They are asymmetric, as RFC 9449
// requires.
var defaultAlgorithms = []string{"ES256", "ES384", "ES512", "EdDSA", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512"}

// algorithm returns the signature algorithm for a key.
func algorithm(key crypto.Signer) (jose.SignatureAlgorithm, error) {
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		switch key.Curve.Params().BitSize {
		case 256:
			return jose.ES256, nil
		case 384:
			return jose.ES384, nil
		case 521:
			return jose.ES512, nil
		}
	case ed25519.PrivateKey:
		return jose.EdDSA, nil
	case *rsa.PrivateKey:
		return jose.PS256, nil
	}
	return "", fmt.Errorf("dpop: a key must be an *ecdsa.PrivateKey, an ed25519.PrivateKey or an *rsa.PrivateKey, not %T", key)
}
