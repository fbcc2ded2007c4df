package resource

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
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
			text := sign(t, test.alg, test.key, object{"kid": kid}, payload(t, nil))
			if kid == "" {
				text = sign(t, test.alg, test.key, nil, payload(t, nil))
			}
			_, err := v.Verify(t.Context(), text)
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
			_, err := v.Verify(t.Context(), sign(t, test.alg, test.key, object{"kid": test.kid}, payload(t, nil)))
			require.Equal(t, refused("its algorithm is not allowed"), err)
		})
	}
}

func TestShortKeysAreNotUsed(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0")
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	require.NoError(t, err)
	_, err = fixed(t, jwks(t, jwk(short, "1")), nil).Verify(t.Context(), sign(t, jose.RS256, short, object{"kid": "1"}, payload(t, nil)))
	require.Equal(t, refused("its key is not known"), err)
}

func TestAcceptedTokensAreCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := newEC(t, elliptic.P256())
		caching := func(cacheTime time.Duration) *cache {
			v, err := newVerifier(&Options{Issuer: issuerURL, Resource: resource, JWKS: jwks(t, jwk(key, "1")), CacheTime: cacheTime})
			require.NoError(t, err)
			return v.(*cache)
		}

		c := caching(0)
		brief := token(t, key, "1", object{"exp": time.Now().Add(20 * time.Second).Unix()})
		p, err := c.Verify(t.Context(), brief)
		require.NoError(t, err)
		require.WithinDuration(t, time.Now().Add(20*time.Second+leeway), p.Expires, 0, "streams last as long as requests are accepted")
		time.Sleep(20*time.Second + leeway - 1)
		again, err := c.Verify(t.Context(), brief)
		require.NoError(t, err)
		require.Same(t, p, again)
		time.Sleep(2 * time.Nanosecond)
		require.Equal(t, refused("it has expired"), verify(t, c, brief))

		long := token(t, key, "1", nil)
		require.NoError(t, verify(t, c, long))
		c.next.(*jwtVerifier).keys[issuerURL].keys = nil // without keys
		time.Sleep(time.Minute - 1)
		require.NoError(t, verify(t, c, long))
		time.Sleep(time.Nanosecond)
		require.Equal(t, refused("its key is not known"), verify(t, c, long), "a token is cached for a minute")

		for i := range cacheSize + 10 {
			c.accepted.Put(sha256.Sum256([]byte(fmt.Sprint(i))), nil, time.Now().Add(time.Minute))
		}
		require.Equal(t, 4096, c.accepted.Len())

		c = caching(0)
		require.Error(t, verify(t, c, token(t, key, "1", object{"aud": "x"})))
		require.Zero(t, c.accepted.Len()+c.refused.Len(), "rejected tokens are not cached")
		c = caching(-1)
		require.NoError(t, verify(t, c, token(t, key, "1", nil)))
		require.Zero(t, c.accepted.Len(), "a negative time disables the cache")
	})
}

func TestTokensAreCheckedWithTheKeysOfTheirIssuer(t *testing.T) {
	const other = "https://other.example"
	keyA, keyB := newEC(t, elliptic.P256()), newEC(t, elliptic.P256())
	b := newIssuer(jwk(keyB, "same"))
	b.metadata["/.well-known/oauth-authorization-server"]["issuer"] = other
	v := fixed(t, jwks(t, jwk(keyA, "same")), func(o *Options) { o.OtherIssuers, o.Client = []string{other}, &http.Client{Transport: b} })
	for _, test := range []struct {
		name, token string
		issuer      string
		reason      string
	}{
		{"a", token(t, keyA, "same", nil), issuerURL, ""},
		{"b", token(t, keyB, "same", object{"iss": other}), other, ""},
		{"a by the key of b", token(t, keyB, "same", nil), "", "its signature is wrong"},
		{"b by the key of a", token(t, keyA, "same", object{"iss": other}), "", "its signature is wrong"},
		{"nobody", token(t, keyA, "same", object{"iss": nil}), "", "it is of another issuer"},
		{"two issuers", sign(t, jose.ES256, keyA, object{"kid": "same"}, `{"iss":"https://as.example","iss":"https://other.example"}`), "", "its claims are not a JSON object"},
		{"an issuer in another case", sign(t, jose.ES256, keyA, object{"kid": "same"}, `{"ISS":"https://as.example"}`), "", "it is of another issuer"},
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

func TestOtherTokenTypesAreRejectedByDefault(t *testing.T) {
	key := newEC(t, elliptic.P256())
	var log testkit.Buffer
	logged := func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) }
	typed := func(key any, typ string) string {
		header := object{"kid": "key", "typ": typ}
		if typ == "" {
			header["typ"] = nil
		}
		return sign(t, jose.ES256, key, header, payload(t, nil))
	}
	v := fixed(t, jwks(t, jwk(key, "key")), logged)
	require.Equal(t, refused("its signature is wrong"), verifyOnce(t, v, typed(newEC(t, elliptic.P256()), "JWT")))
	require.Empty(t, log.String(), "forged tokens cause no hint")
	for _, typ := range []string{"JWT", "", "jwt", "application/jwt", "id+jwt"} {
		require.Equal(t, refused("its typ is not that of an access token"), verifyOnce(t, v, typed(key, typ)), "%q", typ)
	}
	require.Equal(t, 1, strings.Count(log.String(), "\n"), "the hint is logged once")
	require.Contains(t, log.String(), `set Options.AllowUntyped" issuer=`+issuerURL)
	for _, typ := range []string{"at+jwt", "AT+JWT", "application/at+jwt"} {
		require.NoError(t, verifyOnce(t, v, typed(key, typ)), "%q", typ)
	}
	v = fixed(t, jwks(t, jwk(key, "key")), func(o *Options) { o.AllowUntyped = true })
	for _, typ := range []string{"JWT", "", "jwt", "application/jwt", "at+jwt"} {
		require.NoError(t, verifyOnce(t, v, typed(key, typ)), "%q", typ)
	}
	require.Equal(t, refused("its typ is not that of an access token"), verifyOnce(t, v, typed(key, "id+jwt")))
}

// verifyOnce returns the error of a verifier.
func verifyOnce(t *testing.T, v oauth.Verifier, token string) error {
	_, err := v.Verify(t.Context(), token)
	return err
}

// FuzzVerify checks that only tokens that the test signed are accepted.
func FuzzVerify(f *testing.F) {
	key := newEC(f, elliptic.P256())
	v := fixed(f, jwks(f, jwk(key, "1")), nil)
	good := sign(f, jose.ES256, key, object{"kid": "1"}, payload(f, nil))
	parts := strings.Split(good, ".")
	for _, seed := range []string{
		good, "", ".", "..", "...", "a.b.c", parts[0] + ".." + parts[2], parts[0] + "." + parts[1] + ".", handmade(`{"alg":"none"}`, payload(f, nil)),
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

// handmade returns a token with any header and payload and an invalid signature.
func handmade(header, payload string) string {
	enc := base64.RawURLEncoding.EncodeToString
	return enc([]byte(header)) + "." + enc([]byte(payload)) + "." + enc([]byte("signature"))
}

// check checks claims for an issuer with two names of the resource.
func check(payload []byte) (*oauth.Principal, error) {
	c, err := parseClaims(payload)
	if err != nil {
		return nil, err
	}
	return c.principal("https://as", []string{"https://rs/mcp", "rs"}, time.Unix(1_790_000_000, 0))
}

func TestValidClaimsAreAccepted(t *testing.T) {
	expires := time.Unix(1_790_000_130, 0) // with the leeway
	for _, test := range []struct {
		name   string
		change object
		want   oauth.Principal // without its claims
	}{
		{"a user", nil, oauth.Principal{Subject: "ann", Expires: expires}},
		{"a user by a client", object{"client_id": "app", "azp": "other"}, oauth.Principal{Subject: "ann", ClientID: "app", Expires: expires}},
		{"a user by an authorized party", object{"azp": "app"}, oauth.Principal{Subject: "ann", ClientID: "app", Expires: expires}},
		{"a client for itself", object{"sub": nil, "client_id": "app"}, oauth.Principal{Subject: "app", ClientID: "app", Expires: expires}},
		{"one of the audiences", object{"aud": []any{"x", "https://rs/mcp"}}, oauth.Principal{Subject: "ann", Expires: expires}},
		{"scopes", object{"scope": " a  b\tc "}, oauth.Principal{Subject: "ann", Scopes: []string{"a", "b", "c"}, Expires: expires}},
		{"scopes in a list", object{"scp": []any{"a", 1.0, "b c"}}, oauth.Principal{Subject: "ann", Scopes: []string{"a", "b c"}, Expires: expires}},
		{"scope before scp", object{"scope": "", "scp": "admin"}, oauth.Principal{Subject: "ann", Scopes: []string{}, Expires: expires}},
		{"scope of no kind", object{"scope": 1.0, "scp": "admin"}, oauth.Principal{Subject: "ann", Expires: expires}},
		{"expired within the leeway", object{"exp": 1_789_999_970.5}, oauth.Principal{Subject: "ann", Expires: time.Unix(1_790_000_000, 0)}},
		{"valid soon", object{"nbf": 1_790_000_030.0, "iat": 1_790_000_030.0}, oauth.Principal{Subject: "ann", Expires: expires}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := check([]byte(changed(t, object{"iss": "https://as", "aud": "rs", "sub": "ann", "exp": 1_790_000_100.0}, test.change)))
			require.NoError(t, err)
			require.Equal(t, "https://as", p.Claims["iss"])
			test.want.Issuer, test.want.Claims = "https://as", p.Claims
			require.Equal(t, &test.want, p)
		})
	}
}

// FuzzClaims checks that accepted claims fulfil the requirements.
func FuzzClaims(f *testing.F) {
	for _, seed := range []string{
		`{"iss":"https://as","aud":"rs","sub":"ann","exp":1790000100}`,
		`{"iss":"https://as","aud":["rs"],"client_id":"app","exp":1.7900001e9,"scope":"a b","nbf":0}`,
		`{"iss":"https://as","aud":"rs","sub":5,"azp":"x","exp":1e400}`,
		`{"iss":"https://as","aud":"rs","sub":"a\u0000b","exp":-0}`,
		`{"iss":null,"aud":{},"exp":"x"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := check(raw)
		if err != nil {
			require.IsType(t, &oauth.TokenError{}, err)
			return
		}
		require.Equal(t, "https://as", p.Claims["iss"])
		require.NotEmpty(t, p.Subject)
		require.NotContains(t, p.Subject+p.ClientID, "\x00")
		require.True(t, p.Expires.IsZero() || p.Expires.Unix() >= 1_790_000_000)
		for _, scope := range p.Scopes {
			if _, ok := p.Claims["scope"].(string); ok {
				require.Len(t, strings.Fields(scope), 1)
			}
		}
	})
}

const (
	resource  = "https://mcp.example.com/mcp"
	issuerURL = "https://as.example"
)

type object = map[string]any

// rsaKeys are generated once, since this takes long. It panics since no test is there that could fail.
var rsaKeys = sync.OnceValue(func() (keys [2]*rsa.PrivateKey) {
	for i := range keys {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		keys[i] = key
	}
	return keys
})

func newEC(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	require.NoError(t, err)
	return key
}

func newEd(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	return key
}

// with returns all with changes. A nil value removes a member.
func with(all, change object) object {
	for name, v := range change {
		if all[name] = v; v == nil {
			delete(all, name)
		}
	}
	return all
}

// changed returns a JSON object with changes.
func changed(t testing.TB, all, change object) string {
	t.Helper()
	text, err := jsonx.Marshal(with(all, change))
	require.NoError(t, err)
	return string(text)
}

// payload returns the claims of a valid token with changes.
func payload(t testing.TB, change object) string {
	t.Helper()
	now := time.Now()
	return changed(t, object{"iss": issuerURL, "aud": resource, "sub": "ann", "iat": now.Unix(), "exp": now.Add(48 * time.Hour).Unix()}, change)
}

// sign returns a token of the type at+jwt with changes of the header. A nil value removes a member.
func sign(t testing.TB, alg jose.SignatureAlgorithm, key any, header object, payload string) string {
	t.Helper()
	opts := &jose.SignerOptions{ExtraHeaders: map[jose.HeaderKey]any{jose.HeaderType: "at+jwt"}}
	for name, v := range header {
		if opts.ExtraHeaders[jose.HeaderKey(name)] = v; v == nil {
			delete(opts.ExtraHeaders, jose.HeaderKey(name))
		}
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, opts)
	require.NoError(t, err)
	jws, err := signer.Sign([]byte(payload))
	require.NoError(t, err)
	text, err := jws.CompactSerialize()
	require.NoError(t, err)
	return text
}

// token returns a token with changed claims that is signed by a key. A kid of "" means none.
func token(t testing.TB, key *ecdsa.PrivateKey, kid string, change object) string {
	t.Helper()
	header := object{}
	if kid != "" {
		header["kid"] = kid
	}
	return sign(t, jose.ES256, key, header, payload(t, change))
}

func jwk(key crypto.Signer, kid string) jose.JSONWebKey {
	return jose.JSONWebKey{Key: key.Public(), KeyID: kid}
}

func jwks(t testing.TB, keys ...any) []byte {
	t.Helper()
	text, err := jsonx.Marshal(object{"keys": append([]any{}, keys...)})
	require.NoError(t, err)
	return text
}

// fixed returns a verifier of the issuer with fixed keys.
func fixed(t testing.TB, keys []byte, change func(*Options)) *jwtVerifier {
	t.Helper()
	opts := &Options{Issuer: issuerURL, Resource: resource, JWKS: keys, Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(opts)
	}
	v, err := newJWTVerifier(opts)
	require.NoError(t, err)
	return v
}

func refused(reason string) error { return &oauth.TokenError{Reason: reason} }

// An issuer publishes its metadata and its keys, without a network.
type issuer struct {
	mu       sync.Mutex
	keys     []any
	metadata map[string]object // by path
	asked    []string          // paths
	hold     chan struct{}     // if set, requests for the key set wait until it is closed
	status   int               // status of the key set; 0 means 200
}

func newIssuer(keys ...any) *issuer {
	return &issuer{keys: keys, metadata: map[string]object{
		"/.well-known/oauth-authorization-server": {"issuer": issuerURL, "jwks_uri": issuerURL + "/keys"},
	}}
}

// RoundTrip implements http.RoundTripper.
func (s *issuer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.asked = append(s.asked, r.URL.Path)
	doc, ok := s.metadata[r.URL.Path]
	hold, status := s.hold, s.status
	if r.URL.Path == "/keys" {
		doc, ok = object{"keys": append([]any{}, s.keys...)}, true
	}
	s.mu.Unlock()
	if r.URL.Path == "/keys" && hold != nil {
		<-hold
	}
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	case r.URL.Path == "/keys" && status != 0:
		w.WriteHeader(status)
	}
	text, err := jsonx.Marshal(doc)
	_, _ = w.Write(text)
	return w.Result(), err
}

// takeAsked returns the paths requested since the last call.
func (s *issuer) takeAsked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

func (s *issuer) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// verifier returns a verifier that fetches the keys of s.
func (s *issuer) verifier(t testing.TB, change func(*Options)) *jwtVerifier {
	t.Helper()
	return fixed(t, nil, func(o *Options) {
		o.JWKSURI, o.Client = issuerURL+"/keys", &http.Client{Transport: s}
		if change != nil {
			change(o)
		}
	})
}
