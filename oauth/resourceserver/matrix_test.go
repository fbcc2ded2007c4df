package resourceserver_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/dpop"
	"github.com/mcpkit/mcpkit-go/oauth/jwtverify"
	"github.com/mcpkit/mcpkit-go/oauth/metadata"
	"github.com/mcpkit/mcpkit-go/oauth/resourceserver"
)

const (
	resource = "https://mcp.example.com/api/mcp"
	issuer   = "https://login.example.com"
)

type claims = map[string]any

// forge has the keys of an issuer, and those of somebody else.
type forge struct {
	t          *testing.T
	rsa, other *rsa.PrivateKey
	ec         *ecdsa.PrivateKey
	jwks       []byte
	used       []string // every token and proof that was made
}

func newForge(t *testing.T) *forge {
	t.Helper()
	f := &forge{t: t}
	var err error
	f.rsa, err = rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	f.other, err = rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	f.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	f.jwks, err = jsonx.Marshal(map[string]any{"keys": []any{
		claims{"kty": "nonsense"},
		jose.JSONWebKey{Key: f.rsa.Public(), KeyID: "r", Algorithm: "RS256", Use: "sig"},
		jose.JSONWebKey{Key: f.ec.Public(), KeyID: "e"},
		jose.JSONWebKey{Key: f.other.Public(), KeyID: "enc", Use: "enc"},
		jose.JSONWebKey{Key: []byte("0123456789abcdef0123456789abcdef"), KeyID: "sym"},
	}})
	require.NoError(t, err)
	return f
}

func (f *forge) sign(alg jose.SignatureAlgorithm, key any, header claims, payload string) string {
	opts := &jose.SignerOptions{ExtraHeaders: map[jose.HeaderKey]any{}}
	for name, v := range header {
		opts.ExtraHeaders[jose.HeaderKey(name)] = v
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, opts)
	require.NoError(f.t, err)
	jws, err := signer.Sign([]byte(payload))
	require.NoError(f.t, err)
	text, err := jws.CompactSerialize()
	require.NoError(f.t, err)
	f.used = append(f.used, text)
	return text
}

// payload is that of a good token, changed; a nil takes a claim out.
func payload(change claims) string {
	all := claims{"iss": issuer, "aud": resource, "sub": "ann", "client_id": "app", "scope": "notes:read", "exp": time.Now().Add(time.Hour).Unix()}
	for name, v := range change {
		if all[name] = v; v == nil {
			delete(all, name)
		}
	}
	text, _ := jsonx.Marshal(all)
	return string(text)
}

func (f *forge) token(change claims) string {
	return f.sign(jose.RS256, f.rsa, claims{"kid": "r", "typ": "at+jwt"}, payload(change))
}

func (f *forge) headed(alg jose.SignatureAlgorithm, key any, header claims) string {
	return f.sign(alg, key, header, payload(nil))
}

func (f *forge) publicPEM() []byte {
	der, err := x509.MarshalPKIXPublicKey(f.rsa.Public())
	require.NoError(f.t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func unsigned(text string) string {
	enc := base64.RawURLEncoding.EncodeToString
	return enc([]byte(`{"alg":"none","typ":"at+jwt"}`)) + "." + enc([]byte(text)) + "."
}

func ath(token string) string {
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func ask(fields ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/api/mcp", nil)
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	return r
}

func bearer(token string) *http.Request { return ask("Authorization", "Bearer "+token) }

func withQuery(r *http.Request, query string) *http.Request {
	r.URL.RawQuery = query
	return r
}

// verifierFunc is a verifier that is a function.
type verifierFunc func(string) (*oauth.Principal, error)

func (f verifierFunc) Verify(_ context.Context, token string) (*oauth.Principal, error) {
	return f(token)
}

func TestRefusals(t *testing.T) {
	f := newForge(t)
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.Level(-100), AddSource: true}))
	verifier, err := jwtverify.New(jwtverify.Options{Issuer: issuer, Audience: []string{resource}, JWKS: f.jwks, Logger: logger})
	require.NoError(t, err)
	nonces, err := dpop.NewNonces(nil, 0)
	require.NoError(t, err)
	plainProofs, err := dpop.NewVerifier(dpop.Options{})
	require.NoError(t, err)
	nonceProofs, err := dpop.NewVerifier(dpop.Options{Nonces: nonces})
	require.NoError(t, err)
	prover, err := dpop.NewProver(nil)
	require.NoError(t, err)
	stranger, err := dpop.NewProver(nil)
	require.NoError(t, err)

	guard := func(change func(*resourceserver.Options)) http.Handler {
		opts := resourceserver.Options{Resource: resource, AuthorizationServers: []string{issuer}, Verifier: verifier,
			Scopes: []string{"notes:read"}, Logger: logger}
		if change != nil {
			change(&opts)
		}
		g, err := resourceserver.New(opts)
		require.NoError(t, err)
		return g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			require.Empty(t, r.Header["Authorization"], "the token is not passed on")
			require.Empty(t, r.Header["Dpop"])
			if r.Header.Get("Demand") != "" {
				require.True(t, oauth.DemandScopes(r.Context(), "x:one", "x:two"))
				w.WriteHeader(http.StatusForbidden)
				return
			}
			if p := oauth.FromContext(r.Context()); p != nil {
				_, _ = w.Write([]byte(p.Subject))
			}
		}))
	}
	plain := guard(nil)
	policy := func(p resourceserver.Policy) http.Handler {
		return guard(func(o *resourceserver.Options) { o.Policies = []resourceserver.Policy{p} })
	}
	failing := func(p *oauth.Principal, err error) http.Handler {
		return guard(func(o *resourceserver.Options) {
			o.Verifier = verifierFunc(func(string) (*oauth.Principal, error) { return p, err })
		})
	}
	bound := guard(func(o *resourceserver.Options) { o.DPoP = plainProofs })
	strict := guard(func(o *resourceserver.Options) { o.DPoP, o.RequireDPoP = nonceProofs, true })
	boundToken := f.token(claims{"cnf": claims{"jkt": prover.Thumbprint()}})
	proof := func(p *dpop.Prover, verb, url, token, nonce string) string {
		text, err := p.Proof(verb, url, token, nonce)
		require.NoError(t, err)
		f.used = append(f.used, text)
		return text
	}
	dpopAsk := func(proofs ...string) *http.Request {
		r := ask("Authorization", "DPoP "+boundToken)
		for _, p := range proofs {
			r.Header.Add("DPoP", p)
		}
		return r
	}
	replayed := proof(prover, "POST", resource, boundToken, "")
	forgedProof := func(typ, alg string, change claims) string {
		ec := f.ec
		header := claims{"typ": typ, "jwk": jose.JSONWebKey{Key: ec.Public()}}
		all := claims{"jti": rand.Text(), "htm": "POST", "htu": resource, "iat": time.Now().Unix()}
		for name, v := range change {
			if all[name] = v; v == nil {
				delete(all, name)
			}
		}
		text, _ := jsonx.Marshal(all)
		if alg == "HS256" {
			return f.sign(jose.HS256, []byte("0123456789abcdef0123456789abcdef"), header, string(text))
		}
		return f.sign(jose.ES256, ec, header, string(text))
	}
	const (
		invalid   = "invalid_token"
		malformed = "invalid_request"
		badProof  = "invalid_dpop_proof"
		scope     = "insufficient_scope"
		denied    = "access_denied"
		away      = "temporarily_unavailable"
	)
	good := f.token(nil)
	parts := strings.Split(good, ".")
	for _, test := range []struct {
		name    string
		handler http.Handler
		request *http.Request
		status  int
		code    string // of the error
		reason  string
	}{
		// What is taken.
		{"good", plain, bearer(good), 200, "", ""},
		{"again, from the cache", plain, bearer(good), 200, "", ""},
		{"lower-case scheme", plain, ask("Authorization", "bearer "+good), 200, "", ""},
		{"upper-case scheme", plain, ask("Authorization", "BEARER  "+good), 200, "", ""},
		{"typ JWT", plain, bearer(f.headed(jose.RS256, f.rsa, claims{"kid": "r", "typ": "JWT"})), 200, "", ""},
		{"no kid", plain, bearer(f.headed(jose.ES256, f.ec, nil)), 200, "", ""},
		{"audiences in a list", plain, bearer(f.token(claims{"aud": []string{"x", resource}})), 200, "", ""},
		{"expired within the leeway", plain, bearer(f.token(claims{"exp": time.Now().Add(-10 * time.Second).Unix()})), 200, "", ""},
		{"scp", plain, bearer(f.token(claims{"scope": nil, "scp": []string{"notes:read"}})), 200, "", ""},
		{"a client for itself", plain, bearer(f.token(claims{"sub": nil})), 200, "", ""},
		{"anonymous", guard(func(o *resourceserver.Options) { o.Anonymous = true }), ask(), 200, "", ""},
		{"an including scope", guard(func(o *resourceserver.Options) {
			o.Includes = map[string][]string{"a": {"b"}, "b": {"a", "notes:read"}}
		}), bearer(f.token(claims{"scope": "a"})), 200, "", ""},
		{"bound", bound, dpopAsk(replayed), 200, "", ""},
		{"bound, a nonce", strict, dpopAsk(proof(prover, "POST", resource, boundToken, nonceProofs.Nonce())), 200, "", ""},
		{"bound, the URL written otherwise", bound, dpopAsk(proof(prover, "POST", "HTTPS://MCP.example.com:443/%61pi/mcp?q#f", boundToken, "")), 200, "", ""},

		// Where the token stands.
		{"nothing", plain, ask(), 401, "", ""},
		{"another scheme", plain, ask("Authorization", "Basic YTpi"), 401, "", ""},
		{"no token", plain, ask("Authorization", "Bearer"), 400, malformed, "the Authorization field is no scheme and one token"},
		{"a blank token", plain, ask("Authorization", "Bearer  "), 400, malformed, "the Authorization field is no scheme and one token"},
		{"two tokens", plain, ask("Authorization", "Bearer "+good+" "+good), 400, malformed, "the Authorization field is no scheme and one token"},
		{"two credentials in a field", plain, ask("Authorization", "Bearer "+good+", Bearer "+good), 400, malformed, "the Authorization field is no scheme and one token"},
		{"two fields", plain, ask("Authorization", "Bearer "+good, "Authorization", "Bearer "+good), 400, malformed, "there is more than one Authorization field"},
		{"two fields, one of another scheme", plain, ask("Authorization", "Basic x", "Authorization", "Bearer "+good), 400, malformed, "there is more than one Authorization field"},
		{"in the URL", plain, withQuery(ask(), "access_token="+good), 400, malformed, "the access token stands in the URL; it has to stand in the Authorization field"},
		{"in the URL, too", plain, withQuery(bearer(good), "a=b&access%5Ftoken=x"), 400, malformed, "the access token stands in the URL; it has to stand in the Authorization field"},
		{"in the URL, anonymous", guard(func(o *resourceserver.Options) { o.Anonymous = true }), withQuery(ask(), "access_token"), 400, malformed, "the access token stands in the URL; it has to stand in the Authorization field"},
		{"huge", plain, bearer(strings.Repeat("a", 17<<10)), 400, malformed, "the access token is too large"},
		{"anonymous, a bad token", guard(func(o *resourceserver.Options) { o.Anonymous = true }), bearer("x"), 401, invalid, "it is no signed JWT"},

		// What the token is.
		{"no JWT", plain, bearer("opaque"), 401, invalid, "it is no signed JWT"},
		{"two parts", plain, bearer(parts[0] + "." + parts[1]), 401, invalid, "it is no signed JWT"},
		{"alg none", plain, bearer(unsigned(payload(nil))), 401, invalid, "its algorithm is not allowed"},
		{"no signature", plain, bearer(parts[0] + "." + parts[1] + "."), 401, invalid, "its signature is wrong"},
		{"another payload", plain, bearer(parts[0] + "." + strings.Split(f.token(claims{"sub": "eve"}), ".")[1] + "." + parts[2]), 401, invalid, "its signature is wrong"},
		{"HS256 with the public key", plain, bearer(f.headed(jose.HS256, f.publicPEM(), claims{"kid": "r", "typ": "at+jwt"})), 401, invalid, "its algorithm is not allowed"},
		{"HS256 with a published key", plain, bearer(f.headed(jose.HS256, []byte("0123456789abcdef0123456789abcdef"), claims{"kid": "sym"})), 401, invalid, "its algorithm is not allowed"},
		{"another's key", plain, bearer(f.headed(jose.RS256, f.other, claims{"kid": "r"})), 401, invalid, "its signature is wrong"},
		{"another's key in jwk", plain, bearer(f.headed(jose.RS256, f.other, claims{"kid": "r", "jwk": jose.JSONWebKey{Key: f.other.Public()}})), 401, invalid, "its signature is wrong"},
		{"another's key in jku", plain, bearer(f.headed(jose.RS256, f.other, claims{"kid": "r", "jku": "https://evil.example/jwks"})), 401, invalid, "its signature is wrong"},
		{"unknown kid", plain, bearer(f.headed(jose.RS256, f.rsa, claims{"kid": "z"})), 401, invalid, "its key is not known"},
		{"kid of another kind", plain, bearer(f.headed(jose.RS256, f.rsa, claims{"kid": "e"})), 401, invalid, "its key is not known"},
		{"kid of a key for encryption", plain, bearer(f.headed(jose.RS256, f.other, claims{"kid": "enc"})), 401, invalid, "its key is not known"},
		{"kid of a symmetric key", plain, bearer(f.headed(jose.RS256, f.rsa, claims{"kid": "sym"})), 401, invalid, "its key is not known"},
		{"an algorithm that the key is not for", plain, bearer(f.headed(jose.PS256, f.rsa, claims{"kid": "r"})), 401, invalid, "its key is not known"},
		{"a long kid", plain, bearer(f.headed(jose.RS256, f.rsa, claims{"kid": strings.Repeat("k", 600)})), 401, invalid, "its kid is too long"},
		{"a proof as a token", plain, bearer(f.headed(jose.RS256, f.rsa, claims{"kid": "r", "typ": "dpop+jwt"})), 401, invalid, "its typ is not that of an access token"},
		{"an assertion as a token", plain, bearer(f.headed(jose.RS256, f.rsa, claims{"kid": "r", "typ": "oauth-id-jag+jwt"})), 401, invalid, "its typ is not that of an access token"},
		{"claims twice", plain, bearer(f.sign(jose.RS256, f.rsa, claims{"kid": "r"}, `{"sub":"a","sub":"b"}`)), 401, invalid, "its claims are no JSON object"},
		{"claims null", plain, bearer(f.sign(jose.RS256, f.rsa, claims{"kid": "r"}, `null`)), 401, invalid, "its claims are no JSON object"},

		// What the token says.
		{"another issuer", plain, bearer(f.token(claims{"iss": issuer + "/"})), 401, invalid, "it is of another issuer"},
		{"no issuer", plain, bearer(f.token(claims{"iss": nil})), 401, invalid, "it is of another issuer"},
		{"another audience", plain, bearer(f.token(claims{"aud": "https://mcp.example.com"})), 401, invalid, "it is for another audience"},
		{"no audience", plain, bearer(f.token(claims{"aud": nil})), 401, invalid, "it is for another audience"},
		{"audience no text", plain, bearer(f.token(claims{"aud": []any{1, claims{}}})), 401, invalid, "it is for another audience"},
		{"expired", plain, bearer(f.token(claims{"exp": time.Now().Add(-time.Minute).Unix()})), 401, invalid, "it has expired"},
		{"no expiry", plain, bearer(f.token(claims{"exp": nil})), 401, invalid, "it has no expiry"},
		{"expiry no number", plain, bearer(f.token(claims{"exp": "never"})), 401, invalid, "exp is no time"},
		{"expiry out of range", plain, bearer(f.token(claims{"exp": 1e300})), 401, invalid, "exp is no time"},
		{"not valid yet", plain, bearer(f.token(claims{"nbf": time.Now().Add(time.Minute).Unix()})), 401, invalid, "it is not valid yet"},
		{"issued in the future", plain, bearer(f.token(claims{"iat": time.Now().Add(time.Minute).Unix()})), 401, invalid, "it is not valid yet"},
		{"nobody", plain, bearer(f.token(claims{"sub": nil, "client_id": nil})), 401, invalid, "it says nobody is its subject"},
		{"a scope is missing", plain, bearer(f.token(claims{"scope": "notes:reader"})), 403, scope, "the token has not all scopes that this needs"},
		{"no scope", plain, bearer(f.token(claims{"scope": nil})), 403, scope, "the token has not all scopes that this needs"},

		// Who may enter.
		{"another issuer, by policy", policy(resourceserver.Issuers("https://x")), bearer(good), 401, invalid, "its issuer is not admitted"},
		{"another client", policy(resourceserver.Clients("x")), bearer(good), 403, denied, "access is denied by policy"},
		{"no tenant", policy(resourceserver.Tenants("t1")), bearer(good), 403, denied, "access is denied by policy"},
		{"another tenant", policy(resourceserver.Tenants("t1")), bearer(f.token(claims{"tid": "t2", "tenant": "t1"})), 403, denied, "access is denied by policy"},
		{"the tenant", policy(resourceserver.Tenants("t1")), bearer(f.token(claims{"tid": "t1"})), 200, "", ""},
		{"another group", policy(resourceserver.Groups("ops")), bearer(f.token(claims{"groups": []string{"dev"}})), 403, denied, "access is denied by policy"},
		{"the group", policy(resourceserver.Groups("ops")), bearer(f.token(claims{"groups": []string{"dev", "ops"}})), 200, "", ""},
		{"no claim", policy(resourceserver.RequireClaim("mfa")), bearer(good), 403, denied, "access is denied by policy"},
		{"another claim", policy(resourceserver.RequireClaim("mfa", true)), bearer(f.token(claims{"mfa": "true"})), 403, denied, "access is denied by policy"},
		{"the claim", policy(resourceserver.RequireClaim("mfa", true)), bearer(f.token(claims{"mfa": true})), 200, "", ""},
		{"scopes, by policy", policy(func(context.Context, *oauth.Principal) error {
			return &oauth.InsufficientScopeError{Scopes: []string{"x"}}
		}), bearer(good), 403, scope, "the token has not all scopes that this needs"},

		// What is not known.
		{"no answer about the token", failing(nil, errors.New("the issuer is away")), bearer(good), 503, away, "it could not be found out who asks"},
		{"a verifier that says nothing", failing(nil, nil), bearer(good), 503, away, "it could not be found out who asks"},
		{"a principal without a name", failing(&oauth.Principal{}, nil), bearer(good), 503, away, "it could not be found out who asks"},

		// Tokens that are bound to a key.
		{"bound, as Bearer", bound, bearer(boundToken), 401, invalid, "the token is bound to a key; use the scheme DPoP with a proof"},
		{"bound, where nobody knows proofs", plain, bearer(boundToken), 401, invalid, "the token is bound to a key; use the scheme DPoP with a proof"},
		{"DPoP, where nobody knows proofs", plain, dpopAsk(), 401, invalid, "tokens that are bound to a key are not taken here; use Bearer"},
		{"bound to a certificate", plain, bearer(f.token(claims{"cnf": claims{"x5t#S256": "x"}})), 401, invalid, "the token is bound to something that is not understood here"},
		{"free, as DPoP", bound, ask("Authorization", "DPoP "+good), 401, invalid, "the token is not bound to a key; use the scheme Bearer"},
		{"free, where bound ones are demanded", strict, bearer(good), 401, invalid, "the token is not bound to a key; one that is, is needed"},
		{"no proof", bound, dpopAsk(), 401, badProof, "there has to be one DPoP field with a proof"},
		{"two proofs", bound, dpopAsk(replayed, replayed), 401, badProof, "there has to be one DPoP field with a proof"},
		{"a proof again", bound, dpopAsk(replayed), 401, badProof, "the proof was used before"},
		{"another verb", bound, dpopAsk(proof(prover, "GET", resource, boundToken, "")), 401, badProof, "the proof is for the verb 'GET'"},
		{"another URL", bound, dpopAsk(proof(prover, "POST", resource+"/x", boundToken, "")), 401, badProof, "the proof is for another URL"},
		{"another host", bound, dpopAsk(proof(prover, "POST", "https://evil.example/api/mcp", boundToken, "")), 401, badProof, "the proof is for another URL"},
		{"another token", bound, dpopAsk(proof(prover, "POST", resource, good, "")), 401, badProof, "the proof is for another token"},
		{"no token hash", bound, dpopAsk(proof(prover, "POST", resource, "", "")), 401, badProof, "the proof is for another token"},
		{"another key", bound, dpopAsk(proof(stranger, "POST", resource, boundToken, "")), 401, invalid, "the token is bound to another key"},
		{"a proof of another type", bound, dpopAsk(forgedProof("JWT", "ES256", nil)), 401, badProof, "the typ of the proof is not 'dpop+jwt'"},
		{"a symmetric proof", bound, dpopAsk(forgedProof("dpop+jwt", "HS256", nil)), 401, badProof, "the algorithm of the proof is not allowed"},
		{"a proof without an id", bound, dpopAsk(forgedProof("dpop+jwt", "ES256", claims{"jti": nil})), 401, badProof, "the proof needs jti, htm, htu and iat"},
		{"an old proof", bound, dpopAsk(forgedProof("dpop+jwt", "ES256", claims{"iat": time.Now().Add(-time.Hour).Unix(), "ath": ath(boundToken)})), 401, badProof, "the proof is too old, or was made by a clock that is wrong"},
		{"a proof of the future", bound, dpopAsk(forgedProof("dpop+jwt", "ES256", claims{"iat": time.Now().Add(time.Hour).Unix(), "ath": ath(boundToken)})), 401, badProof, "the proof is too old, or was made by a clock that is wrong"},
		{"no proof at all", bound, dpopAsk("x"), 401, badProof, "the proof is no signed JWT"},
		{"a huge proof", bound, dpopAsk(strings.Repeat("a", 9<<10)), 401, badProof, "the proof is larger than 8192 bytes"},
		{"no nonce", strict, dpopAsk(proof(prover, "POST", resource, boundToken, "")), 401, "use_dpop_nonce", "the proof needs a fresh nonce of this server"},
		{"another nonce", strict, dpopAsk(proof(prover, "POST", resource, boundToken, "AAAA")), 401, "use_dpop_nonce", "the proof needs a fresh nonce of this server"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			test.handler.ServeHTTP(w, test.request)
			require.Equal(t, test.status, w.Code, w.Body.String())
			challenges, err := metadata.ParseChallenges(w.Header()["Www-Authenticate"])
			require.NoError(t, err)
			if test.status == 200 {
				require.Empty(t, challenges)
				return
			}
			var body struct {
				Error            string `json:"error"`
				ErrorDescription string `json:"error_description"`
			}
			require.NoError(t, jsonx.Unmarshal(w.Body.Bytes(), &body))
			require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
			switch test.code {
			case "":
				require.NotEmpty(t, challenges)
			case denied, away:
				require.Equal(t, test.code, body.Error)
				require.Equal(t, test.reason, body.ErrorDescription)
				require.Empty(t, challenges, "no token would help")
				return
			default:
				require.Equal(t, test.code, body.Error)
			}
			said := 0
			for _, c := range challenges {
				require.Equal(t, "https://mcp.example.com/.well-known/oauth-protected-resource/api/mcp", c.Param("resource_metadata"))
				if c.Param("error") == "" {
					continue
				}
				said++
				require.Equal(t, test.code, c.Param("error"))
				require.Equal(t, test.reason, c.Param("error_description"))
			}
			require.Equal(t, test.code != "", said == 1, "the mistake stands in one challenge")
		})
	}

	require.NotEmpty(t, log.String())
	for _, secret := range f.used {
		require.NotContains(t, log.String(), secret)
		for _, part := range strings.Split(secret, ".")[1:] {
			if part != "" {
				require.NotContains(t, log.String(), part)
			}
		}
	}
	require.NotContains(t, log.String(), "access_token=")

	t.Run("scopes demanded behind the guard", func(t *testing.T) {
		r := bearer(good)
		r.Header.Set("Demand", "1")
		w := httptest.NewRecorder()
		plain.ServeHTTP(w, r)
		require.Equal(t, 403, w.Code)
		require.Equal(t, []string{`Bearer error="insufficient_scope", error_description="the token has not all scopes that this needs", ` +
			`scope="x:one x:two", resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/api/mcp"`}, w.Header()["Www-Authenticate"])
	})
	t.Run("a nonce comes with every answer", func(t *testing.T) {
		w := httptest.NewRecorder()
		strict.ServeHTTP(w, ask())
		require.NotEmpty(t, w.Header().Get("DPoP-Nonce"))
		require.Equal(t, []string{`DPoP scope="notes:read", resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/api/mcp", ` +
			`algs="ES256 ES384 ES512 EdDSA PS256 PS384 PS512 RS256 RS384 RS512"`}, w.Header()["Www-Authenticate"])
	})
}
