package jwtverify

import (
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth"
)

func TestNewReportsEveryMistakeInOptions(t *testing.T) {
	const known = "ES256, ES384, ES512, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512"
	for _, test := range []struct {
		name string
		opts Options
		err  string
	}{
		{"nothing", Options{}, "jwtverify: Issuer is empty; name the issuer whose tokens are accepted\n" +
			`jwtverify: Audience is empty; name this resource, for example "https://mcp.example.com/mcp"`},
		{"an empty audience", Options{Issuer: "https://as", Audience: []string{"a", ""}},
			`jwtverify: Audience is empty; name this resource, for example "https://mcp.example.com/mcp"`},
		{"symmetric algorithms", Options{Issuer: "https://as", Audience: []string{"a"}, Algorithms: []string{"HS256", "none", "es256"}},
			`jwtverify: algorithms ["HS256" "none" "es256"] cannot be used; known are ` + known},
		{"keys without protection", Options{Issuer: "https://as", Audience: []string{"a"}, JWKSURI: "http://as/keys"},
			`jwtverify: JWKSURI: "http://as/keys" is not encrypted; use https`},
		{"an issuer that is not a URL", Options{Issuer: "as", Audience: []string{"a"}},
			`jwtverify: the metadata of Issuer cannot be looked up; give JWKSURI: "as" is not an absolute https URL`},
		{"no key set", Options{Issuer: "as", Audience: []string{"a"}, JWKS: []byte("{")}, "jwtverify: JWKS is not a JSON Web Key Set"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := New(test.opts)
			require.EqualError(t, err, test.err)
		})
	}
}

func TestAlgorithmsNeedKeysOfTheirKind(t *testing.T) {
	rsa, p256, p384, p521, ed := rsaKeys()[0], newEC(t, elliptic.P256()), newEC(t, elliptic.P384()), newEC(t, elliptic.P521()), newEd(t)
	fixed := jwks(t, jwk(rsa, "rsa"), jwk(p256, "256"), jwk(p384, "384"), jwk(p521, "521"), jwk(ed, "ed"))
	kids := []string{"rsa", "256", "384", "521", "ed"}
	v, err := New(Options{Issuer: "https://as", Audience: []string{resource}, JWKS: fixed, CacheTime: -1})
	require.NoError(t, err)
	v.now = func() time.Time { return start }
	for _, test := range []struct {
		alg jose.SignatureAlgorithm
		key any
		kid string
	}{
		{jose.RS256, rsa, "rsa"}, {jose.RS384, rsa, "rsa"}, {jose.RS512, rsa, "rsa"},
		{jose.PS256, rsa, "rsa"}, {jose.PS384, rsa, "rsa"}, {jose.PS512, rsa, "rsa"},
		{jose.ES256, p256, "256"}, {jose.ES384, p384, "384"}, {jose.ES512, p521, "521"}, {jose.EdDSA, ed, "ed"},
	} {
		for _, kid := range append(kids, "", "zzz") {
			token := sign(t, test.alg, test.key, object{"kid": kid}, payload(t, "https://as", nil))
			if kid == "" {
				token = sign(t, test.alg, test.key, nil, payload(t, "https://as", nil))
			}
			_, err := v.Verify(t.Context(), token)
			if kid == test.kid || kid == "" {
				require.NoError(t, err, "%s %q", test.alg, kid)
			} else {
				require.Equal(t, refused("its key is not known"), err, "%s %q", test.alg, kid)
			}
		}
		t.Run("where it is not allowed: "+string(test.alg), func(t *testing.T) {
			other := "RS256"
			if test.alg == jose.RS256 {
				other = "ES256"
			}
			v, err := New(Options{Issuer: "https://as", Audience: []string{resource}, JWKS: fixed, Algorithms: []string{other}})
			require.NoError(t, err)
			_, err = v.Verify(t.Context(), sign(t, test.alg, test.key, object{"kid": test.kid}, payload(t, "https://as", nil)))
			require.Equal(t, refused("its algorithm is not allowed"), err)
		})
	}
}

func TestKeyIsUsedOnlyWithItsAlgorithm(t *testing.T) {
	key := rsaKeys()[0]
	v, err := New(Options{Issuer: "https://as", Audience: []string{resource},
		JWKS: jwks(t, jose.JSONWebKey{Key: key.Public(), KeyID: "1", Algorithm: "PS256"})})
	require.NoError(t, err)
	v.now = func() time.Time { return start }
	_, err = v.Verify(t.Context(), sign(t, jose.PS256, key, object{"kid": "1"}, payload(t, "https://as", nil)))
	require.NoError(t, err)
	_, err = v.Verify(t.Context(), sign(t, jose.RS256, key, object{"kid": "1"}, payload(t, "https://as", nil)))
	require.Equal(t, refused("its key is not known"), err)
}

func TestShortKeysAreNotUsed(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0")
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	require.NoError(t, err)
	v, err := New(Options{Issuer: "https://as", Audience: []string{resource}, JWKS: jwks(t, jwk(short, "1"))})
	require.NoError(t, err)
	_, err = v.Verify(t.Context(), sign(t, jose.RS256, short, object{"kid": "1"}, payload(t, "https://as", nil)))
	require.Equal(t, refused("its key is not known"), err)
}

func TestMalformedTokensAreRejected(t *testing.T) {
	key, other := rsaKeys()[0], rsaKeys()[1]
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	require.NoError(t, err)
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	v, err := New(Options{Issuer: "https://as", Audience: []string{resource}, JWKS: jwks(t, jwk(key, "1"))})
	require.NoError(t, err)
	v.now = func() time.Time { return start }
	body := payload(t, "https://as", nil)
	good := sign(t, jose.RS256, key, object{"kid": "1"}, body)
	parts := strings.Split(good, ".")
	const (
		noJWT     = "it is not a signed JWT"
		algorithm = "its algorithm is not allowed"
		unknown   = "its key is not known"
		wrong     = "its signature is wrong"
		typ       = "its typ is not that of an access token"
		noClaims  = "its claims are not a JSON object"
	)
	for _, test := range []struct{ name, token, reason string }{
		{"nothing", "", noJWT},
		{"dots", "..", algorithm},
		{"one part more", good + ".x", noJWT},
		{"an encrypted one", "a.b.c.d.e", noJWT},
		{"JSON", `{"payload":"","signatures":[]}`, noJWT},
		{"padded", parts[0] + "=." + parts[1] + "." + parts[2], noJWT},
		{"a header that is not valid JSON", handmade("x", body), noJWT},
		{"a header that is not an object", handmade("[]", body), noJWT},
		{"an empty header", handmade("{}", body), algorithm},
		{"none", handmade(`{"alg":"none"}`, body), algorithm},
		{"None", handmade(`{"alg":"None"}`, body), algorithm},
		{"an algorithm twice", handmade(`{"alg":"RS256","alg":"none"}`, body), noJWT},
		{"an algorithm that is no text", handmade(`{"alg":1}`, body), algorithm},
		{"a kid that is no text", handmade(`{"alg":"RS256","kid":1}`, body), noJWT},
		{"extensions that are not understood", sign(t, jose.RS256, key, object{"kid": "1", "crit": []string{"x"}, "x": 1}, body), wrong},
		{"a code by the public key", sign(t, jose.HS256, public, object{"kid": "1"}, body), algorithm},
		{"another's key", sign(t, jose.RS256, other, object{"kid": "1"}, body), wrong},
		{"another's key, under no name", sign(t, jose.RS256, other, nil, body), wrong},
		{"another's key, brought along", sign(t, jose.RS256, other, object{"jwk": jwk(other, "1")}, body), wrong},
		{"another's key, pointed to", sign(t, jose.RS256, other, object{"jku": "https://evil.example/keys", "x5u": "https://evil.example/x"}, body), wrong},
		{"a kid of another", sign(t, jose.RS256, key, object{"kid": "../1"}, body), unknown},
		{"a long kid", sign(t, jose.RS256, key, object{"kid": strings.Repeat("k", 513)}, body), "its kid is too long"},
		{"a signature cut short", good[:len(good)-4], wrong},
		{"another header", strings.Split(handmade(`{"alg":"RS256","kid":"1","typ":"JWT"}`, body), ".")[0] + "." + parts[1] + "." + parts[2], wrong},
		{"a proof", sign(t, jose.RS256, key, object{"kid": "1", "typ": "dpop+jwt"}, body), typ},
		{"an assertion", sign(t, jose.RS256, key, object{"kid": "1", "typ": "oauth-id-jag+jwt"}, body), typ},
		{"a logout", sign(t, jose.RS256, key, object{"kid": "1", "typ": "logout+jwt"}, body), typ},
		{"a type that is no text", sign(t, jose.RS256, key, object{"kid": "1", "typ": 1}, body), typ},
		{"text", sign(t, jose.RS256, key, object{"kid": "1"}, `"x"`), noClaims},
		{"null", sign(t, jose.RS256, key, object{"kid": "1"}, `null`), noClaims},
		{"claims twice", sign(t, jose.RS256, key, object{"kid": "1"}, `{"sub":"a","sub":"b"}`), noClaims},
		{"claims and more", sign(t, jose.RS256, key, object{"kid": "1"}, body+"{}"), noClaims},
		{"no UTF-8", sign(t, jose.RS256, key, object{"kid": "1"}, "{\"sub\":\"\xff\"}"), noClaims},
		{"huge", strings.Repeat("x", maxTokenBytes+1), "it is too large"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := v.Verify(t.Context(), test.token)
			require.Nil(t, p)
			require.Equal(t, refused(test.reason), err)
		})
	}
	_, err = v.Verify(t.Context(), good)
	require.NoError(t, err)
}

func TestAcceptedTokensAreCachedUntilTheyExpire(t *testing.T) {
	key := newEC(t, elliptic.P256())
	v, err := New(Options{Issuer: "https://as", Audience: []string{resource}, JWKS: jwks(t, jwk(key, "1")), Leeway: 10 * time.Second, CacheSize: 3})
	require.NoError(t, err)
	now := start
	v.now = func() time.Time { return now }
	token := sign(t, jose.ES256, key, object{"kid": "1"}, payload(t, "https://as", object{"exp": start.Add(20 * time.Second).Unix()}))
	first, err := v.Verify(t.Context(), token)
	require.NoError(t, err)
	v.keys.keys = nil // without keys
	now = start.Add(30*time.Second - 1)
	again, err := v.Verify(t.Context(), token)
	require.NoError(t, err)
	require.Same(t, first, again)
	now = start.Add(30 * time.Second)
	_, err = v.Verify(t.Context(), token)
	require.Equal(t, refused("its key is not known"), err, "the cache entry has expired")

	t.Run("for a while", func(t *testing.T) {
		v.keys.keys, now = []jose.JSONWebKey{jwk(key, "1")}, start
		token := sign(t, jose.ES256, key, object{"kid": "1"}, payload(t, "https://as", nil))
		_, err := v.Verify(t.Context(), token)
		require.NoError(t, err)
		v.keys.keys, now = nil, start.Add(DefaultCacheTime)
		_, err = v.Verify(t.Context(), token)
		require.Equal(t, refused("its key is not known"), err)
	})
	t.Run("and not too many", func(t *testing.T) {
		v.keys.keys, now = []jose.JSONWebKey{jwk(key, "1")}, start
		for i := range 10 {
			_, err := v.Verify(t.Context(), sign(t, jose.ES256, key, object{"kid": "1"}, payload(t, "https://as", object{"sub": fmt.Sprint(i)})))
			require.NoError(t, err)
		}
		require.Equal(t, 3, v.cache.Len())
	})
	t.Run("bad ones are not", func(t *testing.T) {
		before := v.cache.Len()
		_, err := v.Verify(t.Context(), sign(t, jose.ES256, key, object{"kid": "1"}, payload(t, "https://as", object{"aud": "x"})))
		require.Error(t, err)
		require.Equal(t, before, v.cache.Len())
	})
	t.Run("none, when that is wanted", func(t *testing.T) {
		v, err := New(Options{Issuer: "https://as", Audience: []string{resource}, JWKS: jwks(t, jwk(key, "1")), CacheTime: -1})
		require.NoError(t, err)
		v.now = func() time.Time { return start }
		_, err = v.Verify(t.Context(), sign(t, jose.ES256, key, object{"kid": "1"}, payload(t, "https://as", nil)))
		require.NoError(t, err)
		require.Zero(t, v.cache.Len())
	})
}

func TestLeewayAllowsClockDifferences(t *testing.T) {
	key := newEC(t, elliptic.P256())
	for leeway, late := range map[time.Duration]time.Duration{0: DefaultLeeway, -1: 0, time.Minute: time.Minute} {
		v, err := New(Options{Issuer: "https://as", Audience: []string{resource}, JWKS: jwks(t, jwk(key, "1")), Leeway: leeway, CacheTime: -1})
		require.NoError(t, err)
		token := sign(t, jose.ES256, key, object{"kid": "1"}, payload(t, "https://as", nil))
		v.now = func() time.Time { return start.Add(time.Hour + late - 1) }
		p, err := v.Verify(t.Context(), token)
		require.NoError(t, err)
		require.WithinDuration(t, start.Add(time.Hour+late), p.Expires, 0, "streams last as long as requests are accepted")
		v.now = func() time.Time { return start.Add(time.Hour + late) }
		_, err = v.Verify(t.Context(), token)
		require.Equal(t, refused("it has expired"), err)
	}
}

func TestOneOfUsesTheVerifierOfTheIssuer(t *testing.T) {
	keyA, keyB := newEC(t, elliptic.P256()), newEC(t, elliptic.P256())
	make1 := func(issuer string, keys ...any) *Verifier {
		v, err := New(Options{Issuer: issuer, Audience: []string{resource}, JWKS: jwks(t, keys...)})
		require.NoError(t, err)
		v.now = func() time.Time { return start }
		return v
	}
	a, b := make1("https://a", jwk(keyA, "same")), make1("https://b", jwk(keyB, "same"))
	both, err := OneOf(a, b)
	require.NoError(t, err)
	require.Equal(t, []string{"https://a", "https://b"}, slices.Sorted(maps.Keys(both.(multi))))
	for _, test := range []struct {
		name, token string
		issuer      string
		reason      string
	}{
		{"a", sign(t, jose.ES256, keyA, object{"kid": "same"}, payload(t, "https://a", nil)), "https://a", ""},
		{"b", sign(t, jose.ES256, keyB, object{"kid": "same"}, payload(t, "https://b", nil)), "https://b", ""},
		{"a by the key of b", sign(t, jose.ES256, keyB, object{"kid": "same"}, payload(t, "https://a", nil)), "", "its signature is wrong"},
		{"b by the key of a, under no name", sign(t, jose.ES256, keyA, nil, payload(t, "https://b", nil)), "", "its signature is wrong"},
		{"another", sign(t, jose.ES256, keyA, object{"kid": "same"}, payload(t, "https://c", nil)), "", "it is of another issuer"},
		{"nobody", sign(t, jose.ES256, keyA, object{"kid": "same"}, payload(t, "", object{"iss": nil})), "", "it is of another issuer"},
		{"two issuers", sign(t, jose.ES256, keyA, object{"kid": "same"}, `{"iss":"https://a","iss":"https://b"}`), "", "it is of another issuer"},
		{"an issuer in another case", sign(t, jose.ES256, keyA, object{"kid": "same"}, `{"ISS":"https://a"}`), "", "it is of another issuer"},
		{"no base64", "a.!.c", "", "it is of another issuer"},
		{"no JWT", "opaque", "", "it is not a signed JWT"},
		{"two parts", "a.b", "", "it is not a signed JWT"},
		{"huge", strings.Repeat("x", maxTokenBytes+1), "", "it is too large"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := both.Verify(t.Context(), test.token)
			if test.reason != "" {
				require.Equal(t, refused(test.reason), err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.issuer, p.Issuer)
		})
	}
	_, err = OneOf(a, a)
	require.EqualError(t, err, `jwtverify: the issuer "https://a" is given twice`)
	_, err = OneOf()
	require.EqualError(t, err, "jwtverify: OneOf needs a verifier")
	_, err = OneOf(a, nil)
	require.EqualError(t, err, "jwtverify: OneOf was given a verifier that is nil")
}

// FuzzVerify checks that only tokens that the test signed are accepted.
func FuzzVerify(f *testing.F) {
	key := newEC(f, elliptic.P256())
	v, err := New(Options{Issuer: "https://as", Audience: []string{resource}, JWKS: jwks(f, jwk(key, "1")), CacheTime: -1})
	require.NoError(f, err)
	v.now = func() time.Time { return start }
	both, err := OneOf(v)
	require.NoError(f, err)
	good := sign(f, jose.ES256, key, object{"kid": "1"}, payload(f, "https://as", nil))
	parts := strings.Split(good, ".")
	for _, seed := range []string{
		good, "", ".", "..", "...", "a.b.c", parts[0] + ".." + parts[2], parts[0] + "." + parts[1] + ".", handmade(`{"alg":"none"}`, payload(f, "https://as", nil)),
		handmade(`{"alg":"ES256","kid":"1","crit":["b64"],"b64":false}`, "x"), handmade(`{"alg":"ES256","jwk":{"kty":"EC"}}`, "{}"),
		handmade(`{"alg":"ES256","x5c":["AAAA"]}`, "{}"), `{"payload":"e30","protected":"e30","signature":"AA"}`, strings.Repeat("A", 300) + ".e30.AA",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		for _, verifier := range []oauth.Verifier{v, both} {
			p, err := verifier.Verify(t.Context(), token)
			if err == nil {
				require.Equal(t, "ann", p.Subject)
				body := strings.Split(token, ".")
				require.Equal(t, parts[:2], body[:2], "only signed tokens are accepted")
				continue
			}
			require.Nil(t, p)
			var bad *oauth.TokenError
			require.ErrorAs(t, err, &bad, "fixed keys need no requests")
			for _, part := range strings.Split(token, ".") {
				if len(part) > 30 {
					require.NotContains(t, err.Error(), part)
				}
			}
		}
	})
}
