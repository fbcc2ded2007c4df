// Package keys signs JWTs, and says which signature algorithms a key can use.
package keys

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"fmt"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Sign returns claims as a JWT. The key is a private key, or a [jose.JSONWebKey] with one and a key ID.
func Sign(key any, algorithm jose.SignatureAlgorithm, opts *jose.SignerOptions, claims any) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, opts)
	if err != nil {
		return "", err
	}
	return jwt.Signed(signer).Claims(claims).Serialize()
}

// Supported lists the supported private keys, for error messages.
const Supported = "an *ecdsa.PrivateKey on P-256, P-384 or P-521, an ed25519.PrivateKey, " +
	"or an *rsa.PrivateKey of at least 2048 bits"

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

// All are all supported algorithms. They are all asymmetric: with a symmetric one, a verifier could
// forge tokens, or a public key could serve as the secret. Do not change it.
var All = []jose.SignatureAlgorithm{
	jose.ES256, jose.ES384, jose.ES512, jose.EdDSA, jose.PS256, jose.PS384, jose.PS512, jose.RS256, jose.RS384, jose.RS512,
}

// Parse returns the algorithms with the names, and [All] for nil. The error lists the names of others.
func Parse(names []string) ([]jose.SignatureAlgorithm, error) {
	if names == nil {
		return All, nil
	}
	var algorithms, others []jose.SignatureAlgorithm
	for _, name := range names {
		algorithm := jose.SignatureAlgorithm(name)
		algorithms = append(algorithms, algorithm)
		if !slices.Contains(All, algorithm) {
			others = append(others, algorithm)
		}
	}
	if others != nil {
		return nil, fmt.Errorf("algorithms %q cannot be used; known are %s", others, strings.Join(Names(All), ", "))
	}
	return algorithms, nil
}

// Names returns the names of algorithms.
func Names(algorithms []jose.SignatureAlgorithm) []string {
	names := make([]string, len(algorithms))
	for i, a := range algorithms {
		names[i] = string(a)
	}
	return names
}
