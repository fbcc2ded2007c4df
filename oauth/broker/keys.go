package broker

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth/internal/keys"
)

const (
	minKeyBytes = 32
	purpose     = "mcpkit broker v1" // separates these keys from other uses of the same secret
)

// keyring holds what is derived from Options.Keys: the keys that seal what the engine, browsers and
// clients keep for the broker, and those that sign access tokens. The first key seals and signs; all
// of them open, and are published.
type keyring struct {
	bound  string // what all sealed data belongs to: the issuer and its provider
	sealed []cipher.AEAD
	signed []jose.JSONWebKey // private keys
}

func newKeyring(secrets [][]byte, bound string) (*keyring, error) {
	if len(secrets) == 0 {
		secret := make([]byte, minKeyBytes)
		rand.Read(secret) // never fails
		secrets = [][]byte{secret}
	}
	k := &keyring{bound: bound}
	for i, secret := range secrets {
		if len(secret) < minKeyBytes {
			return nil, fmt.Errorf("key %d of Keys has %d bytes; at least %d random bytes are needed",
				i+1, len(secret), minKeyBytes)
		}
		aead := must(cipher.NewGCMWithRandomNonce(must(aes.NewCipher(derive(secret, "seal")))))
		private := ed25519.NewKeyFromSeed(derive(secret, "sign"))
		key := jose.JSONWebKey{Key: private, Algorithm: string(jose.EdDSA), Use: "sig"}
		key.KeyID = base64.RawURLEncoding.EncodeToString(must(key.Thumbprint(crypto.SHA256)))
		k.sealed, k.signed = append(k.sealed, aead), append(k.signed, key)
	}
	return k, nil
}

// derive returns 32 bytes of a secret for one use.
func derive(secret []byte, use string) []byte {
	return must(hkdf.Key(sha256.New, secret, nil, purpose+" "+use, 32))
}

// must returns v. The errors are for sizes and kinds of keys that are not used here, for URLs that were
// checked before, and for texts that are no JSON.
func must[T any](v T, err error) T {
	if err != nil {
		panic("broker: " + err.Error())
	}
	return v
}

// public returns the keys that verify access tokens.
func (k *keyring) public() (set jose.JSONWebKeySet) {
	for _, key := range k.signed {
		set.Keys = append(set.Keys, key.Public())
	}
	return set
}

// sign returns an access token with these claims.
func (k *keyring) sign(claims any) (string, error) {
	return keys.Sign(k.signed[0], jose.EdDSA, (&jose.SignerOptions{}).WithType(typeAccess), claims)
}

// verify returns the claims of an access token of this broker, expired or not.
func (k *keyring) verify(token string) ([]byte, error) {
	jws, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return nil, err
	}
	return jws.Verify(k.public())
}

// seal encrypts and authenticates data, bound to what it is for.
func (k *keyring) seal(use string, plain []byte) []byte {
	return k.sealed[0].Seal(nil, nil, plain, []byte(k.bound+"\x00"+use))
}

// open is the inverse of seal.
func (k *keyring) open(use string, sealed []byte) ([]byte, error) {
	for _, key := range k.sealed {
		if plain, err := key.Open(nil, nil, sealed, []byte(k.bound+"\x00"+use)); err == nil {
			return plain, nil
		}
	}
	return nil, errors.New("broker: the data was not sealed by this broker")
}

// write returns v as sealed text, which is safe in URLs and cookies.
func (k *keyring) write(use string, v any) (string, error) {
	plain, err := jsonx.Marshal(v)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(k.seal(use, plain)), nil
}

// read reads what write has written for the same use. It reports whether text is that.
func (k *keyring) read(use, text string, v any) bool {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return false
	}
	plain, err := k.open(use, sealed)
	return err == nil && jsonx.Unmarshal(plain, v) == nil
}
