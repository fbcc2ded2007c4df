package resource

import (
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth"
)

func TestMistakesInKeys(t *testing.T) {
	for _, test := range []struct {
		opts Options
		err  string
	}{
		{Options{Issuer: "https://as", JWKSURI: "http://as/keys"}, `JWKSURI: "http://as/keys" is not encrypted; use https`},
		{Options{Issuer: "as"}, `the metadata of the issuer cannot be looked up; give JWKSURI: "as" is not an absolute https URL`},
		{Options{Issuer: "as", JWKS: []byte("{")}, "JWKS is not a JSON Web Key Set"},
		{Options{Issuer: "https://as", OtherIssuers: []string{"https://b", "https://as"}}, `the issuer "https://as" is given twice`},
	} {
		_, err := newVerifier(&test.opts)
		require.EqualError(t, err, test.err)
	}
}

func TestAlgorithmsNeedKeysOfTheirKind(t *testing.T) {
	rsa, p256, p384, p521, ed := rsaKeys()[0], newEC(t, elliptic.P256()), newEC(t, elliptic.P384()), newEC(t, elliptic.P521()), newEd(t)
	published := jwks(t, jwk(rsa, "rsa"), jwk(p256, "256"), jwk(p384, "384"), jwk(p521, "521"), jwk(ed, "ed"))
	kids := []string{"rsa", "256", "384", "521", "ed"}
	v := fixed(t, published, nil)
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
			v := fixed(t, published, func(o *Options) { o.Algorithms = []string{other} })
			_, err := v.Verify(t.Context(), sign(t, test.alg, test.key, object{"kid": test.kid}, payload(t, "https://as", nil)))
			require.Equal(t, refused("its algorithm is not allowed"), err)
		})
	}
}

func TestShortKeysAreNotUsed(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0")
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	require.NoError(t, err)
	_, err = fixed(t, jwks(t, jwk(short, "1")), nil).Verify(t.Context(), sign(t, jose.RS256, short, object{"kid": "1"}, payload(t, "https://as", nil)))
	require.Equal(t, refused("its key is not known"), err)
}

func TestAcceptedTokensAreCachedUntilTheyExpire(t *testing.T) {
	key := newEC(t, elliptic.P256())
	now := start
	c := func(cacheTime time.Duration) *cache {
		v, err := newVerifier(&Options{Issuer: "https://as", Resource: resource, JWKS: jwks(t, jwk(key, "1")), CacheTime: cacheTime, now: func() time.Time { return now }})
		require.NoError(t, err)
		return v.(*cache)
	}
	token := func(change object) string {
		return sign(t, jose.ES256, key, object{"kid": "1"}, payload(t, "https://as", change))
	}
	verify := func(c *cache, token string) error {
		_, err := c.Verify(t.Context(), token)
		return err
	}
	t.Run("until they expire", func(t *testing.T) {
		c := c(0)
		brief := token(object{"exp": start.Add(20 * time.Second).Unix()})
		p, err := c.Verify(t.Context(), brief)
		require.NoError(t, err)
		require.WithinDuration(t, start.Add(20*time.Second+leeway), p.Expires, 0, "streams last as long as requests are accepted")
		now = p.Expires.Add(-1)
		again, err := c.Verify(t.Context(), brief)
		require.NoError(t, err)
		require.Same(t, p, again)
		now = p.Expires.Add(1)
		require.Equal(t, refused("it has expired"), verify(c, brief))
	})
	t.Run("for a minute", func(t *testing.T) {
		c := c(0)
		now = start
		require.NoError(t, verify(c, token(nil)))
		long := token(object{"sub": "bob"})
		require.NoError(t, verify(c, long))
		c.next.(*jwtVerifier).keys["https://as"].keys = nil // without keys
		now = start.Add(time.Minute - 1)
		require.NoError(t, verify(c, long))
		now = start.Add(time.Minute)
		require.Equal(t, refused("its key is not known"), verify(c, long))
	})
	t.Run("up to 4096 of them", func(t *testing.T) {
		c := c(0)
		now = start
		for i := range cacheSize + 10 {
			c.accepted.Put(sha256.Sum256([]byte(fmt.Sprint(i))), nil, now.Add(time.Minute))
		}
		require.Equal(t, 4096, c.accepted.Len())
	})
	t.Run("rejected ones are not", func(t *testing.T) {
		c := c(0)
		require.Error(t, verify(c, token(object{"aud": "x"})))
		require.Zero(t, c.accepted.Len()+c.refused.Len())
	})
	t.Run("not if the option says so", func(t *testing.T) {
		c := c(-1)
		require.NoError(t, verify(c, token(nil)))
		require.Zero(t, c.accepted.Len())
	})
}

func TestTokensAreCheckedWithTheKeysOfTheirIssuer(t *testing.T) {
	keyA, keyB := newEC(t, elliptic.P256()), newEC(t, elliptic.P256())
	a, b := newIssuer(t, jwk(keyA, "same")), newIssuer(t, jwk(keyB, "same"))
	v := a.verifier(func(o *Options) { o.OtherIssuers = []string{b.url} })
	for _, test := range []struct {
		name, token string
		issuer      string
		reason      string
	}{
		{"a", a.token(jose.ES256, keyA, "same"), a.url, ""},
		{"b", b.token(jose.ES256, keyB, "same"), b.url, ""},
		{"a by the key of b", a.token(jose.ES256, keyB, "same"), "", "its signature is wrong"},
		{"b by the key of a", b.token(jose.ES256, keyA, "same"), "", "its signature is wrong"},
		{"nobody", sign(t, jose.ES256, keyA, object{"kid": "same"}, payload(t, "", object{"iss": nil})), "", "it is of another issuer"},
		{"two issuers", sign(t, jose.ES256, keyA, object{"kid": "same"}, `{"iss":"`+a.url+`","iss":"`+b.url+`"}`), "", "its claims are not a JSON object"},
		{"an issuer in another case", sign(t, jose.ES256, keyA, object{"kid": "same"}, `{"ISS":"`+a.url+`"}`), "", "it is of another issuer"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := v.Verify(t.Context(), test.token)
			if test.reason != "" {
				require.Equal(t, refused(test.reason), err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.issuer, p.Issuer)
		})
	}
}

// FuzzVerify checks that only tokens that the test signed are accepted.
func FuzzVerify(f *testing.F) {
	key := newEC(f, elliptic.P256())
	v := fixed(f, jwks(f, jwk(key, "1")), nil)
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
		p, err := v.Verify(t.Context(), token)
		if err == nil {
			require.Equal(t, "ann", p.Subject)
			body := strings.Split(token, ".")
			require.Equal(t, parts[:2], body[:2], "only signed tokens are accepted")
			return
		}
		require.Nil(t, p)
		var bad *oauth.TokenError
		require.ErrorAs(t, err, &bad, "fixed keys need no requests")
		for _, part := range strings.Split(token, ".") {
			if len(part) > 30 {
				require.NotContains(t, err.Error(), part)
			}
		}
	})
}
