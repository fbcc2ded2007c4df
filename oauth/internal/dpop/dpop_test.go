package dpop

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

const (
	verb  = "POST"
	uri   = "https://mcp.example.com/api/mcp"
	token = "access-token"
)

var start = time.Unix(1_790_000_000, 0)

type object = map[string]any

func newEC(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	require.NoError(t, err)
	return key
}

// newVerifier returns a verifier with a clock that the test moves.
func newVerifier(replays *Replays) (*Verifier, *time.Time) {
	now := start
	v := NewVerifier(replays)
	v.now = func() time.Time { return now }
	return v, &now
}

func many() *Replays { return NewReplays(MaxReplays) }

// proofBy returns a proof with changed claims, signed by a key.
func proofBy(t testing.TB, key *ecdsa.PrivateKey, change object) string {
	t.Helper()
	return forge(t, jose.ES256, key, object{"typ": Type, "jwk": jose.JSONWebKey{Key: key.Public()}}, claims(t, change))
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
	all := object{"jti": rand.Text(), "htm": verb, "htu": uri, "iat": start.Unix(), "ath": TokenHash(token)}
	for name, v := range change {
		if all[name] = v; v == nil {
			delete(all, name)
		}
	}
	text, err := jsonx.Marshal(all)
	require.NoError(t, err)
	return string(text)
}

// The refusals of package resource have further ones.
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
		{"JSON", `{"payload":""}`, noJWT},
		{"none", enc([]byte(`{"typ":"dpop+jwt","alg":"none"}`)) + "." + parts[1] + ".", alg},
		{"no type", headed(object{"typ": nil}), typ},
		{"a type that is no text", headed(object{"typ": 1}), typ},
		{"a type in another case", headed(object{"typ": "DPOP+JWT"}), typ},
		{"a symmetric key", headed(object{"jwk": object{"kty": "oct", "k": "AAAA"}}), noJWT},
		{"an invalid key", headed(object{"jwk": object{"kty": "EC"}}), noJWT},
		{"a key by reference", headed(object{"jwk": nil, "jku": "https://evil.example/keys"}), noKey},
		{"another's key", headed(object{"jwk": jose.JSONWebKey{Key: other.Public()}}), wrong},
		{"a key on another curve", headed(object{"jwk": jose.JSONWebKey{Key: newEC(t, elliptic.P384()).Public()}}), wrong},
		{"another payload", parts[0] + "." + enc([]byte(claims(t, nil))) + "." + parts[2], wrong},
		{"no signature", parts[0] + "." + parts[1] + ".", wrong},
		{"claims twice", forge(t, jose.ES256, key, header(nil), `{"jti":"a","jti":"b"}`), unfit},
		{"claims in a list", forge(t, jose.ES256, key, header(nil), `[]`), unfit},
		{"an id that is no text", good(object{"jti": 1}), unfit},
		{"an empty id", good(object{"jti": ""}), needs},
		{"no verb", good(object{"htm": nil}), needs},
		{"no URL", good(object{"htu": nil}), needs},
		{"no time", good(object{"iat": nil}), needs},
		{"a long verb", good(object{"htm": strings.Repeat("V", 100)}), `the proof is for the verb "` + strings.Repeat("V", 20) + `"`},
		{"another path", good(object{"htu": uri + "/"}), url},
		{"a path alone", good(object{"htu": "/api/mcp"}), url},
		{"the token itself", good(object{"ath": token}), tokens},
		{"at no time", good(object{"iat": 1e300}), "the proof does not say when it was made"},
	} {
		t.Run(test.name, func(t *testing.T) {
			v, _ := newVerifier(many())
			_, err := verify(t, v, test.proof, token)
			require.Equal(t, &ProofError{Reason: test.reason}, err)
			require.EqualError(t, err, "dpop: "+test.reason)
		})
	}
	v, _ := newVerifier(many())
	_, err := verify(t, v, good(nil), token)
	require.NoError(t, err)
	_, err = verify(t, v, good(object{"ath": nil}), "")
	require.NoError(t, err, "token endpoints get no access token")
}

func TestRSAKeySizesAreLimited(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0")
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	require.NoError(t, err)
	v, _ := newVerifier(many())
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
	v, now := newVerifier(many())
	by := func(key *ecdsa.PrivateKey, id string, made time.Time) string {
		return proofBy(t, key, object{"jti": id, "iat": made.Unix()})
	}
	ahead := by(key, "1", start.Add(maxAge)) // the latest possible expiry
	_, err := verify(t, v, ahead, token)
	require.NoError(t, err)
	for _, passed := range []time.Duration{0, time.Minute, maxAge, 2*maxAge - time.Second, 2 * maxAge} {
		*now = start.Add(passed)
		_, err = verify(t, v, ahead, token)
		require.EqualError(t, err, "dpop: the proof was used before", "%s", passed)
	}
	*now = start.Add(2*maxAge + time.Second)
	_, err = verify(t, v, ahead, token)
	require.EqualError(t, err, "dpop: the proof is too old, or was made by a clock that is wrong")

	*now = start
	_, err = verify(t, v, by(other, "1", start), token)
	require.NoError(t, err, "each key has its own IDs")
	_, err = verify(t, v, by(key, "1", start), token)
	require.EqualError(t, err, "dpop: the proof was used before", "another proof with the same ID")
	_, err = verify(t, v, proofBy(t, key, object{"jti": "9", "htm": "GET"}), token)
	require.Error(t, err)
	_, err = verify(t, v, by(key, "9", start), token)
	require.NoError(t, err, "rejected proofs are not stored")
}

func TestConcurrentReplaysAreRejected(t *testing.T) {
	key := newEC(t, elliptic.P256())
	v, _ := newVerifier(many())
	text := proofBy(t, key, nil)
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
	r := NewReplays(2)
	until := start.Add(5 * time.Minute)
	for i := range byte(2) {
		seen, err := r.seen(t.Context(), start, [32]byte{i}, until)
		require.NoError(t, err)
		require.False(t, seen)
	}
	_, err := r.seen(t.Context(), start, [32]byte{9}, until)
	require.EqualError(t, err, "more proofs than can be remembered")
	seen, err := r.seen(t.Context(), start, [32]byte{1}, until)
	require.NoError(t, err)
	require.True(t, seen, "known proofs are still known")

	seen, err = r.seen(t.Context(), until.Add(time.Minute), [32]byte{9}, until.Add(6*time.Minute))
	require.NoError(t, err)
	require.False(t, seen)
	require.Equal(t, 1, r.count, "expired proofs are removed")
	require.Len(t, r.minutes, 1)
}

func TestTokenNeedsAProofByItsOwnKey(t *testing.T) {
	v, _ := newVerifier(NewReplays(1))
	key := newEC(t, elliptic.P256())
	text := proofBy(t, key, nil)
	_, err := v.Verify(t.Context(), text, Request{Verb: verb, URL: uri, Token: token, Thumbprint: "another"})
	require.Equal(t, &ProofError{Reason: "the token is bound to another key", WrongKey: true}, err)
	_, err = verify(t, v, text, token)
	require.NoError(t, err, "rejected proofs are not stored")
}

func TestEqualURLs(t *testing.T) {
	const base = "https://mcp.example.com/a/b"
	for other, same := range map[string]bool{
		"https://mcp.example.com/a/b":           true,
		"HTTPS://MCP.Example.COM/a/b":           true,
		"https://mcp.example.com:443/a/b":       true,
		"https://mcp.example.com/a/b?x=1#y":     true,
		"https://mcp.example.com/%61/b":         true,
		"https://mcp.example.com/a/b/":          false,
		"https://mcp.example.com/A/b":           false,
		"https://mcp.example.com/a%2Fb":         false,
		"https://mcp.example.com/a/./b":         false,
		"https://mcp.example.com//a/b":          false,
		"https://mcp.example.com:8443/a/b":      false,
		"http://mcp.example.com/a/b":            false,
		"https://evil/https://mcp.example.com/": false,
		"mcp.example.com/a/b":                   false,
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
	good := proofBy(f, key, nil)
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
		v, _ := newVerifier(many())
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

// replica returns the view of a replica. Nothing is sealed.
func replica(t *testing.T, engine fleet.Engine) *fleet.Fleet {
	t.Helper()
	f := fleet.New(engine, fleet.Options{
		Seal:   func(_ string, plain []byte) []byte { return bytes.Clone(plain) },
		Open:   func(_ string, sealed []byte) ([]byte, error) { return bytes.Clone(sealed), nil },
		Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, f.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

// fleetVerifiers returns the verifiers of n replicas.
func fleetVerifiers(t *testing.T, n int) (all []*Verifier, engine *fleet.Local) {
	t.Helper()
	engine = fleet.NewMemory(fleet.MemoryOptions{})
	t.Cleanup(func() { _ = engine.Close() })
	for range n {
		all = append(all, fleetVerifier(t, engine.Open()))
	}
	return all, engine
}

func fleetVerifier(t *testing.T, engine fleet.Engine) *Verifier {
	t.Helper()
	f, r := replica(t, engine), NewReplays(MaxReplays)
	r.Fleet = func() *fleet.Fleet { return f }
	return NewVerifier(r)
}

// newProof returns a proof that is made now.
func newProof(t *testing.T, key *ecdsa.PrivateKey) string {
	t.Helper()
	return proofBy(t, key, object{"iat": time.Now().Unix()})
}

func TestAProofIsAcceptedByOneReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, engine := fleetVerifiers(t, 3)
		key := newEC(t, elliptic.P256())
		text := newProof(t, key)
		_, err := verify(t, all[1], text, token)
		require.NoError(t, err)
		for _, v := range all {
			_, err = verify(t, v, text, token)
			require.EqualError(t, err, "dpop: the proof was used before")
		}
		another := newProof(t, key)
		_, err = verify(t, all[0], another, token)
		require.NoError(t, err)

		count := func() int {
			n, err := engine.Count(t.Context(), "proofs", "")
			require.NoError(t, err)
			return n
		}
		time.Sleep(maxAge)
		require.Equal(t, 2, count(), "for as long as they are valid")
		time.Sleep(2 * time.Minute)
		require.Zero(t, count())
	})
}

// noCreate is an engine that cannot be reached.
type noCreate struct{ *fleet.Local }

func (noCreate) Create(context.Context, string, fleet.Record) (uint64, error) {
	return 0, errors.New("connection refused")
}

func TestProofsAreRejectedWithoutTheEngine(t *testing.T) {
	v := fleetVerifier(t, noCreate{fleet.NewMemory(fleet.MemoryOptions{})})
	_, err := verify(t, v, newProof(t, newEC(t, elliptic.P256())), token)
	var away *fleet.UnavailableError
	require.ErrorAs(t, err, &away)
	var bad *ProofError
	require.NotErrorAs(t, err, &bad, "the proof is not to blame")
}
