package dpop

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

const (
	verb  = "POST"
	uri   = "https://mcp.example.com/api/mcp"
	token = "access-token"
)

var start = time.Unix(1_790_000_000, 0)

type object = map[string]any

var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func newEC(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	require.NoError(t, err)
	return key
}

// newVerifier returns a verifier with a clock that the test moves.
func newVerifier(t testing.TB, opts Options) (*Verifier, *time.Time) {
	t.Helper()
	now := start
	v, err := NewVerifier(opts)
	require.NoError(t, err)
	v.now = func() time.Time { return now }
	if m, ok := v.replays.(*memoryReplays); ok {
		m.now = v.now
	}
	return v, &now
}

// verify checks a proof for the request of all tests. The token is bound to the key of the proof.
func verify(t testing.TB, v *Verifier, text, token string) (string, error) {
	t.Helper()
	r := Request{Verb: verb, URL: uri, Token: token}
	if token != "" {
		r.Thumbprint = thumbprintOf(text)
	}
	return v.Verify(t.Context(), text, r)
}

// thumbprintOf returns the thumbprint of the key in a proof.
func thumbprintOf(text string) string {
	header, _, _ := strings.Cut(text, ".")
	raw, _ := base64.RawURLEncoding.DecodeString(header)
	var h struct {
		JWK rawJSON `json:"jwk"`
	}
	var key jose.JSONWebKey
	if jsonx.Unmarshal(raw, &h) != nil || key.UnmarshalJSON(h.JWK) != nil {
		return "none"
	}
	sum, err := key.Thumbprint(crypto.SHA256)
	if err != nil {
		return "none"
	}
	return base64.RawURLEncoding.EncodeToString(sum)
}

type rawJSON []byte

func (j *rawJSON) UnmarshalJSON(b []byte) error {
	*j = slices.Clone(b)
	return nil
}

// forge signs any header and claims.
func forge(t testing.TB, alg jose.SignatureAlgorithm, key any, header object, claims string) string {
	t.Helper()
	opts := &jose.SignerOptions{ExtraHeaders: map[jose.HeaderKey]any{}}
	for name, v := range header {
		opts.ExtraHeaders[jose.HeaderKey(name)] = v
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, opts)
	require.NoError(t, err)
	jws, err := signer.Sign([]byte(claims))
	require.NoError(t, err)
	text, err := jws.CompactSerialize()
	require.NoError(t, err)
	return text
}

// claims returns the claims of a valid proof with changes. A nil value removes a claim.
func claims(t testing.TB, change object) string {
	t.Helper()
	all := object{"jti": rand.Text(), "htm": verb, "htu": uri, "iat": start.Unix(), "ath": tokenHash(token)}
	for name, v := range change {
		if all[name] = v; v == nil {
			delete(all, name)
		}
	}
	text, err := jsonx.Marshal(all)
	require.NoError(t, err)
	return string(text)
}

func TestProofsOfEveryKindOfKey(t *testing.T) {
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	for alg, key := range map[string]crypto.Signer{
		"ES256": newEC(t, elliptic.P256()), "ES384": newEC(t, elliptic.P384()), "ES512": newEC(t, elliptic.P521()), "EdDSA": ed, "PS256": rsaKey(), "": nil,
	} {
		t.Run(alg, func(t *testing.T) {
			p, err := NewProver(key)
			require.NoError(t, err)
			if alg != "" {
				require.Equal(t, alg, p.Algorithm())
				want, err := (&jose.JSONWebKey{Key: key.Public()}).Thumbprint(crypto.SHA256)
				require.NoError(t, err)
				require.Equal(t, base64.RawURLEncoding.EncodeToString(want), p.Thumbprint())
			}
			v, now := newVerifier(t, Options{})
			*now = time.Now() // provers use the real clock
			text, err := p.Proof(verb, uri+"?q=1#f", token, "")
			require.NoError(t, err)
			thumbprint, err := verify(t, v, text, token)
			require.NoError(t, err)
			require.Equal(t, p.Thumbprint(), thumbprint)

			other, err := p.Proof(verb, uri, token, "")
			require.NoError(t, err)
			require.NotEqual(t, text, other, "each proof is for one request")
			if alg != "" && alg != "ES256" {
				only, now := newVerifier(t, Options{Algorithms: []string{"ES256"}})
				*now = time.Now()
				_, err = verify(t, only, other, token)
				require.EqualError(t, err, "dpop: the algorithm of the proof is not allowed")
			}
		})
	}
}

// A stranger is a signer of an unsupported type.
type stranger struct{ crypto.Signer }

func TestUnsupportedKeysAreRejected(t *testing.T) {
	_, err := NewProver(stranger{rsaKey()})
	require.EqualError(t, err, "dpop: the key must be an *ecdsa.PrivateKey on P-256, P-384 or P-521, an ed25519.PrivateKey, or an *rsa.PrivateKey of at least 2048 bits, not a dpop.stranger")
	_, err = NewProver(newEC(t, elliptic.P224()))
	require.EqualError(t, err, "dpop: the key must be an *ecdsa.PrivateKey on P-256, P-384 or P-521, an ed25519.PrivateKey, or an *rsa.PrivateKey of at least 2048 bits, not a *ecdsa.PrivateKey")
	p, err := NewProver(nil)
	require.NoError(t, err)
	_, err = p.Proof(verb, "https://a b", "", "")
	require.EqualError(t, err, `dpop: "https://a b" is not a URL`)
}

func TestProofContainsNoPrivateKeyAndNoQuery(t *testing.T) {
	p, err := NewProver(nil)
	require.NoError(t, err)
	text, err := p.Proof(verb, "https://u:hush@mcp.example.com/mcp?hush#hush", token, "n")
	require.NoError(t, err)
	parts := strings.Split(text, ".")
	header, err := base64.RawURLEncoding.DecodeString(parts[0])
	require.NoError(t, err)
	require.NotContains(t, string(header), `"d"`)
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	require.NoError(t, err)
	require.NotContains(t, string(payload), "hush")
	require.NotContains(t, string(payload), token)
	require.Contains(t, string(payload), `"htu":"https://mcp.example.com/mcp"`)
	require.Contains(t, string(payload), `"nonce":"n"`)
}

func TestInvalidProofsAreRejected(t *testing.T) {
	key, other := newEC(t, elliptic.P256()), newEC(t, elliptic.P256())
	public := jose.JSONWebKey{Key: key.Public()}
	header := func(change object) object {
		h := object{"typ": Type, "jwk": public}
		for name, v := range change {
			if h[name] = v; v == nil {
				delete(h, name)
			}
		}
		return h
	}
	good := func(change object) string { return forge(t, jose.ES256, key, header(nil), claims(t, change)) }
	headed := func(change object) string { return forge(t, jose.ES256, key, header(change), claims(t, nil)) }
	enc := base64.RawURLEncoding.EncodeToString
	parts := strings.Split(good(nil), ".")
	const (
		noJWT  = "the proof is not a signed JWT"
		noKey  = "the proof has no public key in jwk"
		typ    = `the typ of the proof is not "dpop+jwt"`
		unfit  = "the claims of the proof are invalid"
		needs  = "the proof needs jti, htm, htu and iat"
		old    = "the proof is too old, or was made by a clock that is wrong"
		url    = "the proof is for another URL"
		tokens = "the proof is for another token"
		wrong  = "the signature of the proof is wrong"
		alg    = "the algorithm of the proof is not allowed"
	)
	for _, test := range []struct{ name, proof, reason string }{
		{"nothing", "", noJWT},
		{"text", "x", noJWT},
		{"a list of proofs", good(nil) + "," + good(nil), noJWT},
		{"JSON", `{"payload":""}`, noJWT},
		{"huge", strings.Repeat("a", maxProofBytes+1), "the proof is larger than 8192 bytes"},
		{"none", enc([]byte(`{"typ":"dpop+jwt","alg":"none"}`)) + "." + parts[1] + ".", alg},
		{"symmetric", forge(t, jose.HS256, []byte("0123456789abcdef0123456789abcdef"), header(nil), claims(t, nil)), alg},
		{"no type", headed(object{"typ": nil}), typ},
		{"a type that is no text", headed(object{"typ": 1}), typ},
		{"an access token", headed(object{"typ": "at+jwt"}), typ},
		{"a type in another case", headed(object{"typ": "DPOP+JWT"}), typ},
		{"no key", headed(object{"jwk": nil}), noKey},
		{"a private key", headed(object{"jwk": jose.JSONWebKey{Key: key}}), noJWT},
		{"a symmetric key", headed(object{"jwk": object{"kty": "oct", "k": "AAAA"}}), noJWT},
		{"an invalid key", headed(object{"jwk": object{"kty": "EC"}}), noJWT},
		{"a key by reference", headed(object{"jwk": nil, "jku": "https://evil.example/keys"}), noKey},
		{"another's key", headed(object{"jwk": jose.JSONWebKey{Key: other.Public()}}), wrong},
		{"a key of another kind", headed(object{"jwk": jose.JSONWebKey{Key: rsaKey().Public()}}), wrong},
		{"a key on another curve", headed(object{"jwk": jose.JSONWebKey{Key: newEC(t, elliptic.P384()).Public()}}), wrong},
		{"another payload", parts[0] + "." + enc([]byte(claims(t, nil))) + "." + parts[2], wrong},
		{"no signature", parts[0] + "." + parts[1] + ".", wrong},
		{"claims twice", forge(t, jose.ES256, key, header(nil), `{"jti":"a","jti":"b"}`), unfit},
		{"claims in a list", forge(t, jose.ES256, key, header(nil), `[]`), unfit},
		{"an id that is no text", good(object{"jti": 1}), unfit},
		{"no id", good(object{"jti": nil}), needs},
		{"an empty id", good(object{"jti": ""}), needs},
		{"a long id", good(object{"jti": strings.Repeat("i", maxIDBytes+1)}), needs},
		{"no verb", good(object{"htm": nil}), needs},
		{"no URL", good(object{"htu": nil}), needs},
		{"no time", good(object{"iat": nil}), needs},
		{"another verb", good(object{"htm": "GET"}), `the proof is for the verb "GET"`},
		{"the verb in another case", good(object{"htm": "post"}), `the proof is for the verb "post"`},
		{"a long verb", good(object{"htm": strings.Repeat("V", 100)}), `the proof is for the verb "` + strings.Repeat("V", 20) + `"`},
		{"another path", good(object{"htu": uri + "/"}), url},
		{"another host", good(object{"htu": "https://evil.example/api/mcp"}), url},
		{"another scheme", good(object{"htu": "http://mcp.example.com/api/mcp"}), url},
		{"a path alone", good(object{"htu": "/api/mcp"}), url},
		{"another token", good(object{"ath": tokenHash("other")}), tokens},
		{"no token", good(object{"ath": nil}), tokens},
		{"the token itself", good(object{"ath": token}), tokens},
		{"too old", good(object{"iat": start.Add(-DefaultMaxAge - time.Second).Unix()}), old},
		{"of the future", good(object{"iat": start.Add(DefaultMaxAge + time.Second).Unix()}), old},
		{"in milliseconds", good(object{"iat": start.UnixMilli()}), "the proof does not say when it was made"},
		{"at no time", good(object{"iat": 1e300}), "the proof does not say when it was made"},
	} {
		t.Run(test.name, func(t *testing.T) {
			v, _ := newVerifier(t, Options{})
			_, err := verify(t, v, test.proof, token)
			require.Equal(t, &ProofError{Reason: test.reason}, err)
			require.EqualError(t, err, "dpop: "+test.reason)
		})
	}
	v, _ := newVerifier(t, Options{})
	_, err := verify(t, v, good(nil), token)
	require.NoError(t, err)
	_, err = verify(t, v, good(object{"ath": nil}), "")
	require.NoError(t, err, "token endpoints get no access token")
}

func TestRSAKeySizesAreLimited(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0")
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	require.NoError(t, err)
	v, _ := newVerifier(t, Options{})
	_, err = verify(t, v, forge(t, jose.RS256, short, object{"typ": Type, "jwk": jose.JSONWebKey{Key: short.Public()}}, claims(t, nil)), token)
	require.EqualError(t, err, "dpop: the key of the proof is too short or of an unsupported kind")
	// A long key need not be valid: its signature is not checked.
	modulus := make([]byte, 1100)
	modulus[0], modulus[len(modulus)-1] = 0x80, 1
	enc := base64.RawURLEncoding.EncodeToString
	long := enc([]byte(fmt.Sprintf(`{"typ":"dpop+jwt","alg":"RS256","jwk":{"kty":"RSA","e":"AQAB","n":%q}}`, enc(modulus)))) + "." + enc([]byte(claims(t, nil))) + "." + enc(modulus)
	_, err = verify(t, v, long, token)
	require.EqualError(t, err, "dpop: the proof is not a signed JWT")
}

func TestProofIsAcceptedOnce(t *testing.T) {
	key, other := newEC(t, elliptic.P256()), newEC(t, elliptic.P256())
	v, now := newVerifier(t, Options{})
	by := func(key *ecdsa.PrivateKey, id string, made time.Time) string {
		return forge(t, jose.ES256, key, object{"typ": Type, "jwk": jose.JSONWebKey{Key: key.Public()}}, claims(t, object{"jti": id, "iat": made.Unix()}))
	}
	ahead := by(key, "1", start.Add(DefaultMaxAge)) // the latest possible expiry
	_, err := verify(t, v, ahead, token)
	require.NoError(t, err)
	for _, passed := range []time.Duration{0, time.Minute, DefaultMaxAge, 2*DefaultMaxAge - time.Second, 2 * DefaultMaxAge} {
		*now = start.Add(passed)
		_, err = verify(t, v, ahead, token)
		require.EqualError(t, err, "dpop: the proof was used before", "%s", passed)
	}
	*now = start.Add(2*DefaultMaxAge + time.Second)
	_, err = verify(t, v, ahead, token)
	require.EqualError(t, err, "dpop: the proof is too old, or was made by a clock that is wrong")

	*now = start
	_, err = verify(t, v, by(other, "1", start), token)
	require.NoError(t, err, "each key has its own IDs")
	_, err = verify(t, v, by(key, "1", start), token)
	require.EqualError(t, err, "dpop: the proof was used before", "another proof with the same ID")
	_, err = verify(t, v, forge(t, jose.ES256, key, object{"typ": Type, "jwk": jose.JSONWebKey{Key: key.Public()}}, claims(t, object{"jti": "9", "htm": "GET"})), token)
	require.Error(t, err)
	_, err = verify(t, v, by(key, "9", start), token)
	require.NoError(t, err, "rejected proofs are not stored")
}

func TestConcurrentReplaysAreRejected(t *testing.T) {
	key := newEC(t, elliptic.P256())
	v, _ := newVerifier(t, Options{})
	text := forge(t, jose.ES256, key, object{"typ": Type, "jwk": jose.JSONWebKey{Key: key.Public()}}, claims(t, nil))
	errs := make(chan error, 16)
	var wg sync.WaitGroup
	for range cap(errs) {
		// Ends after one attempt.
		wg.Go(func() {
			_, err := verify(t, v, text, token)
			errs <- err
		})
	}
	wg.Wait()
	taken := 0
	for range cap(errs) {
		if <-errs == nil {
			taken++
		}
	}
	require.Equal(t, 1, taken)
}

func TestFullReplayStoreRejectsNewProofs(t *testing.T) {
	m := NewMemoryReplays(2, 0).(*memoryReplays)
	now := start
	m.now = func() time.Time { return now }
	until := start.Add(5 * time.Minute)
	for i := range byte(2) {
		seen, err := m.Seen(t.Context(), "key", [32]byte{i}, until)
		require.NoError(t, err)
		require.False(t, seen)
	}
	_, err := m.Seen(t.Context(), "key", [32]byte{9}, until)
	require.EqualError(t, err, "the store is full; raise the limits of NewMemoryReplays")
	seen, err := m.Seen(t.Context(), "key", [32]byte{1}, until)
	require.NoError(t, err)
	require.True(t, seen, "known proofs are still known")

	now = until.Add(time.Minute)
	seen, err = m.Seen(t.Context(), "key", [32]byte{9}, now.Add(5*time.Minute))
	require.NoError(t, err)
	require.False(t, seen)
	require.Equal(t, 1, m.count, "expired proofs are removed")
	require.Len(t, m.minutes, 1)

	v, _ := newVerifier(t, Options{Replays: brokenStore{}})
	key := newEC(t, elliptic.P256())
	_, err = verify(t, v, forge(t, jose.ES256, key, object{"typ": Type, "jwk": jose.JSONWebKey{Key: key.Public()}}, claims(t, nil)), token)
	require.EqualError(t, err, "dpop: the replay store: out of reach")
	require.False(t, errors.As(err, new(*ProofError)), "this is not an error of the client")
}

func TestTokenNeedsAProofByItsOwnKey(t *testing.T) {
	v, _ := newVerifier(t, Options{Replays: NewMemoryReplays(1, 1)})
	key := newEC(t, elliptic.P256())
	text := forge(t, jose.ES256, key, object{"typ": Type, "jwk": jose.JSONWebKey{Key: key.Public()}}, claims(t, nil))
	_, err := v.Verify(t.Context(), text, Request{Verb: verb, URL: uri, Token: token, Thumbprint: "another"})
	require.Equal(t, &ProofError{Reason: "the token is bound to another key", WrongKey: true}, err)
	_, err = v.Verify(t.Context(), text, Request{Verb: verb, URL: uri, Token: token})
	require.EqualError(t, err, "dpop: the Request has a Token and no Thumbprint; a token that is not bound to a key needs no proof")
	_, err = verify(t, v, text, token)
	require.NoError(t, err, "rejected proofs are not stored")
	text = forge(t, jose.ES256, key, object{"typ": Type, "jwk": jose.JSONWebKey{Key: key.Public()}}, claims(t, nil))
	_, err = verify(t, v, text, token)
	require.ErrorIs(t, err, ErrTooManyProofs)
}

type brokenStore struct{}

func (brokenStore) Seen(context.Context, string, [32]byte, time.Time) (bool, error) {
	return false, errors.New("out of reach")
}

func TestNonces(t *testing.T) {
	nonces, err := NewNonces(nil, time.Minute)
	require.NoError(t, err)
	others, err := NewNonces(nil, time.Minute)
	require.NoError(t, err)
	v, now := newVerifier(t, Options{Nonces: nonces})
	key := newEC(t, elliptic.P256())
	ask := func(nonce any) error {
		text := forge(t, jose.ES256, key, object{"typ": Type, "jwk": jose.JSONWebKey{Key: key.Public()}}, claims(t, object{"nonce": nonce}))
		_, err := verify(t, v, text, token)
		return err
	}
	fresh := &ProofError{Reason: "the proof needs a fresh nonce of this server", NeedsNonce: true}
	nonce := v.Nonce()
	require.NoError(t, ask(nonce))
	require.NoError(t, ask(nonce), "the nonce is still valid")
	flipped := []byte(nonce)
	flipped[3] ^= 1
	for name, bad := range map[string]any{
		"none": nil, "empty": "", "another server's": others.issue(start), "made up": "AAAA", "changed": string(flipped), "longer": nonce + "A", "cut": nonce[:8],
		"no base64": "!", "far ahead": nonces.issue(start.Add(time.Minute + time.Second)), "padded": nonce + "=",
	} {
		require.Equal(t, fresh, ask(bad), name)
	}
	require.NoError(t, ask(nonces.issue(start.Add(time.Minute))), "the clock of the issuer may be ahead")
	*now = start.Add(time.Minute)
	require.NoError(t, ask(nonce))
	*now = start.Add(time.Minute + time.Second)
	require.Equal(t, fresh, ask(nonce))

	_, err = NewNonces(make([]byte, 31), 0)
	require.EqualError(t, err, "dpop: the key of nonces has 31 bytes; at least 32 random bytes are needed")
	shared := make([]byte, 32)
	a, err := NewNonces(shared, 0)
	require.NoError(t, err)
	b, err := NewNonces(shared, 0)
	require.NoError(t, err)
	require.True(t, b.valid(a.issue(start), start.Add(5*time.Minute)), "servers with the same key accept each other's nonces")
	require.False(t, b.valid(a.issue(start), start.Add(5*time.Minute+time.Second)))

	without, _ := newVerifier(t, Options{})
	require.Empty(t, without.Nonce())
}

func TestMistakesInOptions(t *testing.T) {
	for _, alg := range []string{"HS256", "none", "es256", "ES256K", ""} {
		_, err := NewVerifier(Options{Algorithms: []string{alg}})
		require.EqualError(t, err, fmt.Sprintf(`dpop: algorithms [%q] cannot be used; known are ES256, ES384, ES512, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512`, alg))
	}
	v, err := NewVerifier(Options{})
	require.NoError(t, err)
	v.Algorithms()[0] = "changed"
	require.Equal(t, "ES256", v.Algorithms()[0], "it is a copy")
}

func TestEqualURLs(t *testing.T) {
	const base = "https://mcp.example.com/a/b"
	for other, same := range map[string]bool{
		"https://mcp.example.com/a/b":           true,
		"HTTPS://MCP.Example.COM/a/b":           true,
		"https://mcp.example.com:443/a/b":       true,
		"https://mcp.example.com/a/b?x=1#y":     true,
		"https://mcp.example.com/%61/b":         true,
		"https://mcp.example.com/a/%62?":        true,
		"https://mcp.example.com/a/b/":          false,
		"https://mcp.example.com/A/b":           false,
		"https://mcp.example.com/a%2Fb":         false,
		"https://mcp.example.com/a/./b":         false,
		"https://mcp.example.com//a/b":          false,
		"https://mcp.example.com:8443/a/b":      false,
		"https://mcp.example.com:80/a/b":        false,
		"http://mcp.example.com/a/b":            false,
		"https://mcp.example.com.evil/a/b":      false,
		"https://evil/https://mcp.example.com/": false,
		"mcp.example.com/a/b":                   false,
		"https:mcp.example.com/a/b":             false,
		"https:///a/b":                          false,
		"/a/b":                                  false,
		"":                                      false,
		"https://mcp.example.com/a/b%":          false,
	} {
		require.Equal(t, same, sameURI(base, other), other)
		require.Equal(t, same, sameURI(other, base), other)
	}
	for _, pair := range [][2]string{
		{"https://a.example", "https://a.example/"},
		{"http://a.example:80/x", "http://a.example/x"},
		{"https://a.example/%c3%a9", "https://a.example/%C3%A9"},
		{"https://a.example/%C3%A9", "https://a.example/é"},
		{"https://a.example/%7Euser", "https://a.example/~user"},
		{"https://[2001:DB8::1]/", "https://[2001:db8::1]"},
	} {
		require.True(t, sameURI(pair[0], pair[1]), "%q", pair)
	}
}

// FuzzVerify checks that only proofs that the test signed are accepted.
func FuzzVerify(f *testing.F) {
	key := newEC(f, elliptic.P256())
	good := forge(f, jose.ES256, key, object{"typ": Type, "jwk": jose.JSONWebKey{Key: key.Public()}}, claims(f, nil))
	parts := strings.Split(good, ".")
	enc := base64.RawURLEncoding.EncodeToString
	for _, seed := range []string{
		good, "", "..", parts[0] + ".." + parts[2], parts[0] + "." + parts[1] + ".",
		enc([]byte(`{"typ":"dpop+jwt","alg":"none"}`)) + ".e30.", enc([]byte(`{"typ":"dpop+jwt","alg":"ES256","jwk":{"kty":"oct","k":"AA"}}`)) + ".e30.AA",
		enc([]byte(`{"typ":"dpop+jwt","alg":"RS256","jwk":{"kty":"RSA","e":"AQAB","n":"AA"}}`)) + ".e30.AA",
		enc([]byte(`{"typ":"dpop+jwt","alg":"EdDSA","jwk":{"kty":"OKP","crv":"Ed25519","x":"AA"}}`)) + ".e30.AA",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, _ := newVerifier(t, Options{})
		_, err := verify(t, v, text, token)
		if err != nil {
			var bad *ProofError
			require.ErrorAs(t, err, &bad)
			return
		}
		_, err = verify(t, v, text, token)
		require.EqualError(t, err, "dpop: the proof was used before")
	})
}

func FuzzSameURI(f *testing.F) {
	for _, seed := range []string{"https://a.example/x", "HTTPS://A:443/%61", "http://a:80", "https://a/%2f%2F", "https://a/%", "https://a/%zz", "//a", "https://[::1]:443/", "https://:443"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		once := normalize(raw)
		if once == "" {
			return
		}
		require.Equal(t, once, normalize(once), "a normalized URL stays as it is")
		require.True(t, sameURI(raw, once))
	})
}
