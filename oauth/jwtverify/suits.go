package jwtverify

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"

	"github.com/go-jose/go-jose/v4"
)

// suits reports whether alg can use key.
func suits(key jose.JSONWebKey, alg string) bool {
	switch k := key.Key.(type) {
	case *rsa.PublicKey:
		// Shorter ones are refused by RFC 7518, section 3.3.
		return (alg[:2] == "RS" || alg[:2] == "PS") && k.N.BitLen() >= 2048
	case *ecdsa.PublicKey:
		bits := map[string]int{"ES256": 256, "ES384": 384, "ES512": 521}
		return bits[alg] == k.Curve.Params().BitSize
	case ed25519.PublicKey:
		return alg == "EdDSA"
	}
	return false
}
