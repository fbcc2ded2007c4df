package resourceserver_test

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/resourceserver"
)

// A row is a request and the expected response.
type row struct {
	name    string
	handler http.Handler
	request *http.Request
	status  int
	code    string // the error code
	reason  string
}

// Error codes.
const (
	invalid   = "invalid_token"
	malformed = "invalid_request"
	badProof  = "invalid_dpop_proof"
	useNonce  = "use_dpop_nonce"
	scope     = "insufficient_scope"
	denied    = "access_denied"
	unknown   = "temporarily_unavailable"
	unowned   = "-32600" // a code of JSON-RPC
)

// Accepted requests.
func (m *matrix) taken() []row {
	return []row{
		{"good", m.plain, bearer(m.good), 200, "", ""},
		{"again, from the cache", m.plain, bearer(m.good), 200, "", ""},
		{"lower-case scheme", m.plain, ask("Authorization", "bearer "+m.good), 200, "", ""},
		{"upper-case scheme", m.plain, ask("Authorization", "BEARER  "+m.good), 200, "", ""},
		{"no kid", m.plain, bearer(m.headed(jose.ES256, m.ec, nil)), 200, "", ""},
		{"audiences in a list", m.plain, bearer(m.token(claims{"aud": []string{"x", resource}})), 200, "", ""},
		{"expired within the leeway", m.plain, bearer(m.token(claims{"exp": time.Now().Add(-time.Second).Unix()})), 200, "", ""},
		{"scp", m.plain, bearer(m.token(claims{"scope": nil, "scp": []string{"notes:read"}})), 200, "", ""},
		{"a client for itself", m.plain, bearer(m.token(claims{"sub": nil})), 200, "", ""},
		{"anonymous", m.guard(func(o *resourceserver.Options) { o.Anonymous = true }), ask(), 200, "", ""},
		{"an including scope", m.guard(func(o *resourceserver.Options) {
			o.Includes = map[string][]string{"a": {"b"}, "b": {"a", "notes:read"}}
		}), bearer(m.token(claims{"scope": "a"})), 200, "", ""},
		{"bound", m.bound, m.dpopAsk(m.replayed), 200, "", ""},
		{"bound, a nonce", m.strict, m.dpopAsk(m.proof(m.prover, "POST", resource, m.boundToken, m.nonceProofs.Nonce())), 200, "", ""},
		{"bound, the URL written otherwise", m.bound, m.dpopAsk(m.proof(m.prover, "POST", "HTTPS://MCP.example.com:443/%61pi/mcp?q#f", m.boundToken, "")), 200, "", ""},
	}
}

// The place of the token.
func (m *matrix) places() []row {
	return []row{
		{"nothing", m.plain, ask(), 401, "", ""},
		{"another scheme", m.plain, ask("Authorization", "Basic YTpi"), 401, "", ""},
		{"no token", m.plain, ask("Authorization", "Bearer"), 400, malformed, "the Authorization header is not a scheme and one token"},
		{"a blank token", m.plain, ask("Authorization", "Bearer  "), 400, malformed, "the Authorization header is not a scheme and one token"},
		{"a token of padding alone", m.plain, ask("Authorization", "Bearer =="), 400, malformed, "the Authorization header is not a scheme and one token"},
		{"two tokens", m.plain, ask("Authorization", "Bearer "+m.good+" "+m.good), 400, malformed, "the Authorization header is not a scheme and one token"},
		{"two credentials in a field", m.plain, ask("Authorization", "Bearer "+m.good+", Bearer "+m.good), 400, malformed, "the Authorization header is not a scheme and one token"},
		{"two fields", m.plain, ask("Authorization", "Bearer "+m.good, "Authorization", "Bearer "+m.good), 400, malformed, "there is more than one Authorization header"},
		{"two fields, one of another scheme", m.plain, ask("Authorization", "Basic x", "Authorization", "Bearer "+m.good), 400, malformed, "there is more than one Authorization header"},
		{"in the URL", m.plain, withQuery(ask(), "access_token="+m.good), 400, malformed, "the access token is in the URL; send it in the Authorization header"},
		{"in the URL, too", m.plain, withQuery(bearer(m.good), "a=b&access%5Ftoken=x"), 400, malformed, "the access token is in the URL; send it in the Authorization header"},
		{"in the URL, anonymous", m.guard(func(o *resourceserver.Options) { o.Anonymous = true }), withQuery(ask(), "access_token"), 400, malformed, "the access token is in the URL; send it in the Authorization header"},
		{"a quoted token", m.plain, ask("Authorization", `Bearer "`+m.good+`"`), 400, malformed, "the Authorization header is not a scheme and one token"},
		{"a token with parameters", m.plain, ask("Authorization", "Bearer token="+m.good+",realm=x"), 400, malformed, "the Authorization header is not a scheme and one token"},
		{"a token in another alphabet", m.plain, ask("Authorization", "Bearer é"), 400, malformed, "the Authorization header is not a scheme and one token"},
		{"a token of JSON", m.plain, ask("Authorization", `Bearer {"payload":""}`), 400, malformed, "the Authorization header is not a scheme and one token"},
		{"a token behind a tab", m.plain, ask("Authorization", "Bearer\t"+m.good), 401, "", ""},
		{"no scheme", m.plain, ask("Authorization", m.good), 401, "", ""},
		{"an empty field", m.plain, ask("Authorization", ""), 401, "", ""},
		{"in a cookie", m.plain, ask("Cookie", "access_token="+m.good), 401, "", ""},
		{"in another field", m.plain, ask("X-Access-Token", m.good, "Proxy-Authorization", "Bearer "+m.good), 401, "", ""},
		{"in a form", m.plain, form("access_token=" + m.good), 401, "", ""},
		{"a proof alone", m.bound, ask("DPoP", m.proof(m.prover, "POST", resource, "", "")), 401, "", ""},
		{"lower-case dpop, no proof", m.bound, ask("Authorization", "dpop "+m.boundToken), 401, badProof, "the request needs exactly one DPoP header with a proof"},
		{"one field of each scheme", m.bound, ask("Authorization", "Bearer "+m.good, "Authorization", "DPoP "+m.boundToken), 400, malformed, "there is more than one Authorization header"},
		{"huge", m.plain, bearer(strings.Repeat("a", 17<<10)), 400, malformed, "the access token is too large"},
		{"anonymous, a bad token", m.guard(func(o *resourceserver.Options) { o.Anonymous = true }), bearer("x"), 401, invalid, "it is not a signed JWT"},
	}
}

// The format and signature of the token.
func (m *matrix) tokens() []row {
	return []row{
		{"no JWT", m.plain, bearer("opaque"), 401, invalid, "it is not a signed JWT"},
		{"two parts", m.plain, bearer(m.parts[0] + "." + m.parts[1]), 401, invalid, "it is not a signed JWT"},
		{"alg none", m.plain, bearer(unsigned(payload(nil))), 401, invalid, "its algorithm is not allowed"},
		{"no signature", m.plain, bearer(m.parts[0] + "." + m.parts[1] + "."), 401, invalid, "its signature is wrong"},
		{"another payload", m.plain, bearer(m.parts[0] + "." + strings.Split(m.token(claims{"sub": "eve"}), ".")[1] + "." + m.parts[2]), 401, invalid, "its signature is wrong"},
		{"HS256 with the public key", m.plain, bearer(m.headed(jose.HS256, m.publicPEM(), claims{"kid": "r", "typ": "at+jwt"})), 401, invalid, "its algorithm is not allowed"},
		{"HS256 with a published key", m.plain, bearer(m.headed(jose.HS256, []byte("0123456789abcdef0123456789abcdef"), claims{"kid": "sym"})), 401, invalid, "its algorithm is not allowed"},
		{"another's key", m.plain, bearer(m.headed(jose.RS256, m.other, claims{"kid": "r"})), 401, invalid, "its signature is wrong"},
		{"another's key in jwk", m.plain, bearer(m.headed(jose.RS256, m.other, claims{"kid": "r", "jwk": jose.JSONWebKey{Key: m.other.Public()}})), 401, invalid, "its signature is wrong"},
		{"another's key in jku", m.plain, bearer(m.headed(jose.RS256, m.other, claims{"kid": "r", "jku": "https://evil.example/jwks"})), 401, invalid, "its signature is wrong"},
		{"unknown kid", m.plain, bearer(m.headed(jose.RS256, m.rsa, claims{"kid": "z"})), 401, invalid, "its key is not known"},
		{"kid of another kind", m.plain, bearer(m.headed(jose.RS256, m.rsa, claims{"kid": "e"})), 401, invalid, "its key is not known"},
		{"kid of a key for encryption", m.plain, bearer(m.headed(jose.RS256, m.other, claims{"kid": "enc"})), 401, invalid, "its key is not known"},
		{"kid of a symmetric key", m.plain, bearer(m.headed(jose.RS256, m.rsa, claims{"kid": "sym"})), 401, invalid, "its key is not known"},
		{"an algorithm that the key is not for", m.plain, bearer(m.headed(jose.PS256, m.rsa, claims{"kid": "r"})), 401, invalid, "its key is not known"},
		{"a long kid", m.plain, bearer(m.headed(jose.RS256, m.rsa, claims{"kid": strings.Repeat("k", 600)})), 401, invalid, "its kid is too long"},
		{"a proof as a token", m.plain, bearer(m.headed(jose.RS256, m.rsa, claims{"kid": "r", "typ": "dpop+jwt"})), 401, invalid, "its typ is not that of an access token"},
		{"an assertion as a token", m.plain, bearer(m.headed(jose.RS256, m.rsa, claims{"kid": "r", "typ": "oauth-id-jag+jwt"})), 401, invalid, "its typ is not that of an access token"},
		{"three dots", m.plain, bearer("..."), 401, invalid, "it is not a signed JWT"},
		{"an encrypted token", m.plain, bearer("a.b.c.d.e"), 401, invalid, "it is not a signed JWT"},
		{"alg None", m.plain, bearer(strings.Replace(unsigned(payload(nil)), "eyJhbGciOiJub25l", base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"None`)), 1)), 401, invalid, "its algorithm is not allowed"},
		{"an algorithm twice", m.plain, bearer(headOf(`{"alg":"RS256","alg":"none"}`) + "." + m.parts[1] + "." + m.parts[2]), 401, invalid, "it is not a signed JWT"},
		{"a header in another case", m.plain, bearer(headOf(`{"ALG":"RS256","KID":"r"}`) + "." + m.parts[1] + "." + m.parts[2]), 401, invalid, "its algorithm is not allowed"},
		{"another header", m.plain, bearer(headOf(`{"alg":"RS256","kid":"r"}`) + "." + m.parts[1] + "." + m.parts[2]), 401, invalid, "its signature is wrong"},
		{"extensions that are not understood", m.plain, bearer(m.headed(jose.RS256, m.rsa, claims{"kid": "r", "crit": []string{"x"}, "x": 1})), 401, invalid, "its signature is wrong"},
		{"another's key in x5u", m.plain, bearer(m.headed(jose.RS256, m.other, claims{"x5u": "https://evil.example/x"})), 401, invalid, "its signature is wrong"},
		{"another's key under no name", m.plain, bearer(m.headed(jose.RS256, m.other, nil)), 401, invalid, "its signature is wrong"},
		{"a kid that is a path", m.plain, bearer(m.headed(jose.RS256, m.rsa, claims{"kid": "../../dev/null"})), 401, invalid, "its key is not known"},
		{"typ JWT", m.plain, bearer(m.headed(jose.RS256, m.rsa, claims{"kid": "r", "typ": "JWT"})), 401, invalid, "its typ is not that of an access token"},
		{"an ID token's kind", m.plain, bearer(m.headed(jose.RS256, m.rsa, claims{"kid": "r", "typ": "logout+jwt"})), 401, invalid, "its typ is not that of an access token"},
		{"a token of another of several issuers", m.verifiedBy(m.several), bearer(m.token(claims{"iss": "https://third.example.com"})), 401, invalid, "it is of another issuer"},
		{"a token of no JWT at several issuers", m.verifiedBy(m.several), bearer("opaque"), 401, invalid, "it is not a signed JWT"},
		{"claims twice", m.plain, bearer(m.sign(jose.RS256, m.rsa, claims{"kid": "r"}, `{"sub":"a","sub":"b"}`)), 401, invalid, "its claims are not a JSON object"},
		{"claims null", m.plain, bearer(m.sign(jose.RS256, m.rsa, claims{"kid": "r"}, `null`)), 401, invalid, "its claims are not a JSON object"},
	}
}

// The claims of the token.
func (m *matrix) said() []row {
	return []row{
		{"another issuer", m.plain, bearer(m.token(claims{"iss": issuer + "/"})), 401, invalid, "it is of another issuer"},
		{"no issuer", m.plain, bearer(m.token(claims{"iss": nil})), 401, invalid, "it is of another issuer"},
		{"another audience", m.plain, bearer(m.token(claims{"aud": "https://mcp.example.com"})), 401, invalid, "it is for another audience"},
		{"no audience", m.plain, bearer(m.token(claims{"aud": nil})), 401, invalid, "it is for another audience"},
		{"audience no text", m.plain, bearer(m.token(claims{"aud": []any{1, claims{}}})), 401, invalid, "it is for another audience"},
		{"expired", m.plain, bearer(m.token(claims{"exp": time.Now().Add(-time.Minute).Unix()})), 401, invalid, "it has expired"},
		{"no expiry", m.plain, bearer(m.token(claims{"exp": nil})), 401, invalid, "it has no expiry"},
		{"expiry no number", m.plain, bearer(m.token(claims{"exp": "never"})), 401, invalid, "exp is not a time"},
		{"expiry out of range", m.plain, bearer(m.token(claims{"exp": 1e300})), 401, invalid, "exp is not a time"},
		{"not valid yet", m.plain, bearer(m.token(claims{"nbf": time.Now().Add(time.Hour).Unix()})), 401, invalid, "it is not valid yet"},
		{"issued in the future", m.plain, bearer(m.token(claims{"iat": time.Now().Add(time.Hour).Unix()})), 401, invalid, "it is not valid yet"},
		{"nobody", m.plain, bearer(m.token(claims{"sub": nil, "client_id": nil})), 401, invalid, "it has no subject"},
		{"issuers in a list", m.plain, bearer(m.token(claims{"iss": []string{issuer}})), 401, invalid, "it is of another issuer"},
		{"an audience that begins alike", m.plain, bearer(m.token(claims{"aud": resource + "/x"})), 401, invalid, "it is for another audience"},
		{"an audience in another case", m.plain, bearer(m.token(claims{"aud": strings.ToUpper(resource)})), 401, invalid, "it is for another audience"},
		{"an empty audience", m.plain, bearer(m.token(claims{"aud": ""})), 401, invalid, "it is for another audience"},
		{"no audience in the list", m.plain, bearer(m.token(claims{"aud": []string{}})), 401, invalid, "it is for another audience"},
		{"expired at the beginning of time", m.plain, bearer(m.token(claims{"exp": 0})), 401, invalid, "it has expired"},
		{"not before is not a number", m.plain, bearer(m.token(claims{"nbf": "now"})), 401, invalid, "nbf is not a time"},
		{"a subject that is a number", m.plain, bearer(m.token(claims{"sub": 7})), 401, invalid, "sub is not a valid name"},
		{"a subject of two lines", m.plain, bearer(m.token(claims{"sub": "ann\r\nX: y"})), 401, invalid, "sub is not a valid name"},
		{"a subject with a NUL", m.plain, bearer(m.token(claims{"sub": "ann\x00app"})), 401, invalid, "sub is not a valid name"},
		{"a scope in another case", m.plain, bearer(m.token(claims{"scope": "Notes:Read"})), 403, scope, "the token lacks scopes that this request needs"},
		{"a scope of everything", m.plain, bearer(m.token(claims{"scope": "* notes:*"})), 403, scope, "the token lacks scopes that this request needs"},
		{"a scope that includes others", m.guard(func(o *resourceserver.Options) { o.Includes = map[string][]string{"a": {"b"}} }), bearer(m.token(claims{"scope": "a"})), 403, scope, "the token lacks scopes that this request needs"},
		{"not active", m.asking(`{"active":false}`), bearer("opaque"), 401, invalid, "it is not active"},
		{"active for another audience", m.asking(`{"active":true,"aud":"x","sub":"ann"}`), bearer("opaque"), 401, invalid, "it is for another audience"},
		{"active without the scope", m.asking(`{"active":true,"aud":"` + resource + `","sub":"ann"}`), bearer("opaque"), 403, scope, "the token lacks scopes that this request needs"},
		{"active", m.asking(`{"active":true,"aud":"` + resource + `","sub":"ann","scope":"notes:read"}`), bearer("opaque"), 200, "", ""},
		{"a scope is missing", m.plain, bearer(m.token(claims{"scope": "notes:reader"})), 403, scope, "the token lacks scopes that this request needs"},
		{"no scope", m.plain, bearer(m.token(claims{"scope": nil})), 403, scope, "the token lacks scopes that this request needs"},
	}
}

// Scopes and policies.
func (m *matrix) policies() []row {
	return []row{
		{"another issuer, by policy", m.policy(resourceserver.Issuers("https://x")), bearer(m.good), 401, invalid, "its issuer is not admitted"},
		{"another client", m.policy(resourceserver.Clients("x")), bearer(m.good), 403, denied, "access is denied by policy"},
		{"no tenant", m.policy(resourceserver.Tenants("t1")), bearer(m.good), 403, denied, "access is denied by policy"},
		{"another tenant", m.policy(resourceserver.Tenants("t1")), bearer(m.token(claims{"tid": "t2", "tenant": "t1"})), 403, denied, "access is denied by policy"},
		{"the tenant", m.policy(resourceserver.Tenants("t1")), bearer(m.token(claims{"tid": "t1"})), 200, "", ""},
		{"another group", m.policy(resourceserver.Groups("ops")), bearer(m.token(claims{"groups": []string{"dev"}})), 403, denied, "access is denied by policy"},
		{"the group", m.policy(resourceserver.Groups("ops")), bearer(m.token(claims{"groups": []string{"dev", "ops"}})), 200, "", ""},
		{"no claim", m.policy(resourceserver.RequireClaim("mfa")), bearer(m.good), 403, denied, "access is denied by policy"},
		{"another claim", m.policy(resourceserver.RequireClaim("mfa", true)), bearer(m.token(claims{"mfa": "true"})), 403, denied, "access is denied by policy"},
		{"the claim", m.policy(resourceserver.RequireClaim("mfa", true)), bearer(m.token(claims{"mfa": true})), 200, "", ""},
		{"scopes, by policy", m.policy(func(context.Context, *oauth.Principal) error {
			return &oauth.InsufficientScopeError{Scopes: []string{"x"}}
		}), bearer(m.good), 403, scope, "the token lacks scopes that this request needs"},
	}
}

// Failed checks.
func (m *matrix) unknowns() []row {
	return []row{
		{"the keys are not there", m.verifiedBy(m.keysAway), bearer(m.good), 503, unknown, "the token could not be checked"},
		{"no answer that is understood", m.asking(`active`), bearer("opaque"), 503, unknown, "the token could not be checked"},
		{"a principal with claims alone", m.failing(&oauth.Principal{ClientID: "app", Claims: claims{"a": 1}}, nil), bearer(m.good), 503, unknown, "the token could not be checked"},
		{"no room for a proof", m.full(), m.dpopAsk(m.proof(m.prover, "POST", resource, m.boundToken, "")), 503, unknown, "the token could not be checked"},
		{"no answer about the token", m.failing(nil, errors.New("the issuer is away")), bearer(m.good), 503, unknown, "the token could not be checked"},
		{"a verifier that says nothing", m.failing(nil, nil), bearer(m.good), 503, unknown, "the token could not be checked"},
		{"a principal without a name", m.failing(&oauth.Principal{}, nil), bearer(m.good), 503, unknown, "the token could not be checked"},
	}
}

// Tokens bound to a key.
func (m *matrix) bindings() []row {
	return []row{
		{"bound, as Bearer", m.bound, bearer(m.boundToken), 401, invalid, "the token is bound to a key; use the scheme DPoP with a proof"},
		{"bound, where nobody knows proofs", m.plain, bearer(m.boundToken), 401, invalid, "the token is bound to a key; use the scheme DPoP with a proof"},
		{"DPoP, where nobody knows proofs", m.plain, m.dpopAsk(), 401, invalid, "tokens that are bound to a key are not supported here; use Bearer"},
		{"bound to a certificate", m.plain, bearer(m.token(claims{"cnf": claims{"x5t#S256": "x"}})), 401, invalid, "the token has an unknown kind of binding"},
		{"free, as DPoP", m.bound, ask("Authorization", "DPoP "+m.good), 401, invalid, "the token is not bound to a key; use the scheme Bearer"},
		{"free, where bound ones are demanded", m.strict, bearer(m.good), 401, invalid, "the token is not bound to a key; this server requires a bound token"},
		{"no proof", m.bound, m.dpopAsk(), 401, badProof, "the request needs exactly one DPoP header with a proof"},
		{"two proofs", m.bound, m.dpopAsk(m.replayed, m.replayed), 401, badProof, "the request needs exactly one DPoP header with a proof"},
		{"a proof again", m.bound, m.dpopAsk(m.replayed), 401, badProof, "the proof was used before"},
		{"another verb", m.bound, m.dpopAsk(m.proof(m.prover, "GET", resource, m.boundToken, "")), 401, badProof, "the proof is for the verb 'GET'"},
		{"another URL", m.bound, m.dpopAsk(m.proof(m.prover, "POST", resource+"/x", m.boundToken, "")), 401, badProof, "the proof is for another URL"},
		{"another host", m.bound, m.dpopAsk(m.proof(m.prover, "POST", "https://evil.example/api/mcp", m.boundToken, "")), 401, badProof, "the proof is for another URL"},
		{"another token", m.bound, m.dpopAsk(m.proof(m.prover, "POST", resource, m.good, "")), 401, badProof, "the proof is for another token"},
		{"no token hash", m.bound, m.dpopAsk(m.proof(m.prover, "POST", resource, "", "")), 401, badProof, "the proof is for another token"},
		{"another key", m.bound, m.dpopAsk(m.proof(m.stranger, "POST", resource, m.boundToken, "")), 401, invalid, "the token is bound to another key"},
		{"a proof of another type", m.bound, m.dpopAsk(m.forgedProof(claims{"typ": "JWT"}, nil)), 401, badProof, "the typ of the proof is not 'dpop+jwt'"},
		{"a symmetric proof", m.bound, m.dpopAsk(m.symmetricProof()), 401, badProof, "the algorithm of the proof is not allowed"},
		{"a proof without an id", m.bound, m.dpopAsk(m.forgedProof(nil, claims{"jti": nil})), 401, badProof, "the proof needs jti, htm, htu and iat"},
		{"an old proof", m.bound, m.dpopAsk(m.forgedProof(nil, claims{"iat": time.Now().Add(-time.Hour).Unix()})), 401, badProof, "the proof is too old, or was made by a clock that is wrong"},
		{"a proof of the future", m.bound, m.dpopAsk(m.forgedProof(nil, claims{"iat": time.Now().Add(time.Hour).Unix()})), 401, badProof, "the proof is too old, or was made by a clock that is wrong"},
		{"no proof at all", m.bound, m.dpopAsk("x"), 401, badProof, "the proof is not a signed JWT"},
		{"a huge proof", m.bound, m.dpopAsk(strings.Repeat("a", 9<<10)), 401, badProof, "the proof is larger than 8192 bytes"},
		{"no nonce", m.strict, m.dpopAsk(m.proof(m.prover, "POST", resource, m.boundToken, "")), 401, useNonce, "the proof needs a fresh nonce of this server"},
		{"another nonce", m.strict, m.dpopAsk(m.proof(m.prover, "POST", resource, m.boundToken, "AAAA")), 401, useNonce, "the proof needs a fresh nonce of this server"},
		{"bound to nothing", m.bound, bearer(m.token(claims{"cnf": claims{}})), 401, invalid, "the token has an unknown kind of binding"},
		{"bound to something that is not an object", m.bound, bearer(m.token(claims{"cnf": "x"})), 401, invalid, "the token has an unknown kind of binding"},
		{"bound to a thumbprint that is no text", m.bound, bearer(m.token(claims{"cnf": claims{"jkt": 1}})), 401, invalid, "the token has an unknown kind of binding"},
		{"bound, as Bearer, where bound ones are demanded", m.either, bearer(m.boundToken), 401, invalid, "the token is bound to a key; use the scheme DPoP with a proof"},
		{"bound, another's token", m.bound, ask("Authorization", "DPoP "+m.token(claims{"cnf": claims{"jkt": m.stranger.Thumbprint()}}), "DPoP", m.proof(m.prover, "POST", resource, m.boundToken, "")), 401, badProof, "the proof is for another token"},
		{"bound, expired", m.bound, ask("Authorization", "DPoP "+m.token(claims{"exp": 1, "cnf": claims{"jkt": m.prover.Thumbprint()}})), 401, invalid, "it has expired"},
		{"bound, a scope is missing", m.bound, m.lacking(claims{"scope": "x"}), 403, scope, "the token lacks scopes that this request needs"},
		{"an empty proof", m.bound, m.dpopAsk(""), 401, badProof, "the proof is not a signed JWT"},
		{"two proofs in one field", m.bound, m.dpopAsk(m.replayed + ", " + m.replayed), 401, badProof, "the proof is not a signed JWT"},
		{"the verb in another case", m.bound, m.dpopAsk(m.proof(m.prover, "post", resource, m.boundToken, "")), 401, badProof, "the proof is for the verb 'post'"},
		{"another scheme of the URL", m.bound, m.dpopAsk(m.proof(m.prover, "POST", "http://mcp.example.com/api/mcp", m.boundToken, "")), 401, badProof, "the proof is for another URL"},
		{"another port", m.bound, m.dpopAsk(m.proof(m.prover, "POST", "https://mcp.example.com:8443/api/mcp", m.boundToken, "")), 401, badProof, "the proof is for another URL"},
		{"the path in another case", m.bound, m.dpopAsk(m.proof(m.prover, "POST", "https://mcp.example.com/API/mcp", m.boundToken, "")), 401, badProof, "the proof is for another URL"},
		{"a proof with its private key", m.bound, m.dpopAsk(m.forgedProof(claims{"jwk": jose.JSONWebKey{Key: m.ec}}, nil)), 401, badProof, "the proof is not a signed JWT"},
		{"a proof with no key", m.bound, m.dpopAsk(m.forgedProof(claims{"jwk": nil}, nil)), 401, badProof, "the proof has no public key in jwk"},
		{"a proof with another's key", m.bound, m.dpopAsk(m.forgedProof(claims{"jwk": jose.JSONWebKey{Key: m.rsa.Public()}}, nil)), 401, badProof, "the signature of the proof is wrong"},
		{"a proof by a kid", m.bound, m.dpopAsk(m.forgedProof(claims{"jwk": nil, "kid": "e"}, nil)), 401, badProof, "the proof has no public key in jwk"},
		{"an access token as a proof", m.bound, m.dpopAsk(m.good), 401, badProof, "the typ of the proof is not 'dpop+jwt'"},
		{"a proof with a long id", m.bound, m.dpopAsk(m.forgedProof(nil, claims{"jti": strings.Repeat("i", 300)})), 401, badProof, "the proof needs jti, htm, htu and iat"},
		{"a proof of milliseconds", m.bound, m.dpopAsk(m.forgedProof(nil, claims{"iat": time.Now().UnixMilli()})), 401, badProof, "the proof does not say when it was made"},
		{"another server's nonce", m.strict, m.dpopAsk(m.proof(m.prover, "POST", resource, m.boundToken, m.otherServer.Nonce())), 401, useNonce, "the proof needs a fresh nonce of this server"},
		{"nothing, where bound ones are demanded", m.strict, ask(), 401, "", ""},
		{"malformed, where bound ones are demanded", m.strict, ask("Authorization", "DPoP a b"), 400, malformed, "the Authorization header is not a scheme and one token"},
		{"nothing, where both are taken", m.bound, ask(), 401, "", ""},
	}
}

// Sessions.
func (m *matrix) sessions() []row {
	return []row{
		{"a session of the principal", m.session.handler, m.session.ping("ann", "app", m.session.id), 200, "", ""},
		{"a session of another principal", m.session.handler, m.session.ping("eve", "app", m.session.id), 404, unowned, "session is unknown or has ended; send initialize without a session id"},
		{"a session of the principal by another client", m.session.handler, m.session.ping("ann", "other-app", m.session.id), 404, unowned, "session is unknown or has ended; send initialize without a session id"},
		{"a session of nobody", m.session.handler, m.session.ping("eve", "app", "made-up"), 404, unowned, "session is unknown or has ended; send initialize without a session id"},
		{"a session without a token", m.session.handler, m.session.ping("", "", m.session.id), 401, "", ""},
	}
}
