package resource_test

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
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
		{"audiences in a list", m.plain, bearer(m.token(claims{"aud": []string{"x", endpoint}})), 200, "", ""},
		{"expired within the leeway", m.plain, bearer(m.token(claims{"exp": time.Now().Add(-time.Second).Unix()})), 200, "", ""},
		{"scp", m.plain, bearer(m.token(claims{"scope": nil, "scp": []string{"notes:read"}})), 200, "", ""},
		{"a client for itself", m.plain, bearer(m.token(claims{"sub": nil})), 200, "", ""},
		{"anonymous", m.guard(func(o *resource.Options) { o.Anonymous = true }), ask(), 200, "", ""},
		{"an including scope", m.guard(func(o *resource.Options) {
			o.Includes = map[string][]string{"a": {"b"}, "b": {"a", "notes:read"}}
		}), bearer(m.token(claims{"scope": "a"})), 200, "", ""},
		{"bound", m.bound, m.dpopAsk(m.replayed), 200, "", ""},
		{"bound, the URL written otherwise", m.bound, m.dpopAsk(m.proof(m.prover, "POST", "HTTPS://MCP.example.com:443/%61pi/mcp?q#f", m.boundToken, "")), 200, "", ""},
	}
}

// The place of the token.
func (m *matrix) places() []row {
	return []row{
		{"no Authorization header", m.plain, ask(), 401, "", ""},
		{"Authorization with another scheme", m.plain, ask("Authorization", "Basic YTpi"), 401, "", ""},
		{"a scheme without a token", m.plain, ask("Authorization", "Bearer"), 400, malformed, "the Authorization header is not a scheme and one token"},
		{"a blank token", m.plain, ask("Authorization", "Bearer  "), 400, malformed, "the Authorization header is not a scheme and one token"},
		{"a token of padding alone", m.plain, ask("Authorization", "Bearer =="), 400, malformed, "the Authorization header is not a scheme and one token"},
		{"two tokens", m.plain, ask("Authorization", "Bearer "+m.good+" "+m.good), 400, malformed, "the Authorization header is not a scheme and one token"},
		{"two credentials in one header", m.plain, ask("Authorization", "Bearer "+m.good+", Bearer "+m.good), 400, malformed, "the Authorization header is not a scheme and one token"},
		{"two Authorization headers", m.plain, ask("Authorization", "Bearer "+m.good, "Authorization", "Bearer "+m.good), 400, malformed, "there is more than one Authorization header"},
		{"two Authorization headers, one with another scheme", m.plain, ask("Authorization", "Basic x", "Authorization", "Bearer "+m.good), 400, malformed, "there is more than one Authorization header"},
		{"a token in the query", m.plain, withQuery(ask(), "access_token="+m.good), 400, malformed, "the access token is in the URL; send it in the Authorization header"},
		{"a token in the query and in the header", m.plain, withQuery(bearer(m.good), "a=b&access%5Ftoken=x"), 400, malformed, "the access token is in the URL; send it in the Authorization header"},
		{"a token in the query, where anonymous callers are allowed", m.guard(func(o *resource.Options) { o.Anonymous = true }), withQuery(ask(), "access_token"), 400, malformed, "the access token is in the URL; send it in the Authorization header"},
		{"a quoted token", m.plain, ask("Authorization", `Bearer "`+m.good+`"`), 400, malformed, "the Authorization header is not a scheme and one token"},
		{"a token with parameters", m.plain, ask("Authorization", "Bearer token="+m.good+",realm=x"), 400, malformed, "the Authorization header is not a scheme and one token"},
		{"a token in another alphabet", m.plain, ask("Authorization", "Bearer é"), 400, malformed, "the Authorization header is not a scheme and one token"},
		{"a token of JSON", m.plain, ask("Authorization", `Bearer {"payload":""}`), 400, malformed, "the Authorization header is not a scheme and one token"},
		{"a token behind a tab", m.plain, ask("Authorization", "Bearer\t"+m.good), 401, "", ""},
		{"a token without a scheme", m.plain, ask("Authorization", m.good), 401, "", ""},
		{"an empty Authorization header", m.plain, ask("Authorization", ""), 401, "", ""},
		{"a token in a cookie", m.plain, ask("Cookie", "access_token="+m.good), 401, "", ""},
		{"a token in another header", m.plain, ask("X-Access-Token", m.good, "Proxy-Authorization", "Bearer "+m.good), 401, "", ""},
		{"a token in a form", m.plain, form("access_token=" + m.good), 401, "", ""},
		{"a DPoP proof without a token", m.bound, ask("DPoP", m.proof(m.prover, "POST", endpoint, "", "")), 401, "", ""},
		{"the scheme dpop in lower case, without a proof", m.bound, ask("Authorization", "dpop "+m.boundToken), 401, badProof, "the request needs exactly one DPoP header with a proof"},
		{"a Bearer and a DPoP header", m.bound, ask("Authorization", "Bearer "+m.good, "Authorization", "DPoP "+m.boundToken), 400, malformed, "there is more than one Authorization header"},
		{"a token that is too large", m.plain, bearer(strings.Repeat("a", 17<<10)), 400, malformed, "the access token is too large"},
		{"an invalid token, where anonymous callers are allowed", m.guard(func(o *resource.Options) { o.Anonymous = true }), bearer("x"), 401, invalid, "it is not a signed JWT"},
	}
}

// The format and signature of the token.
func (m *matrix) tokens() []row {
	return []row{
		{"not a JWT", m.plain, bearer("opaque"), 401, invalid, "it is not a signed JWT"},
		{"a JWT with two parts", m.plain, bearer(m.parts[0] + "." + m.parts[1]), 401, invalid, "it is not a signed JWT"},
		{"alg none", m.plain, bearer(unsigned(payload(nil))), 401, invalid, "its algorithm is not allowed"},
		{"a JWT without a signature", m.plain, bearer(m.parts[0] + "." + m.parts[1] + "."), 401, invalid, "its signature is wrong"},
		{"a JWT with the payload of another", m.plain, bearer(m.parts[0] + "." + strings.Split(m.token(claims{"sub": "eve"}), ".")[1] + "." + m.parts[2]), 401, invalid, "its signature is wrong"},
		{"HS256 with the public key", m.plain, bearer(m.headed(jose.HS256, m.publicPEM(), claims{"kid": "r", "typ": "at+jwt"})), 401, invalid, "its algorithm is not allowed"},
		{"HS256 with a published key", m.plain, bearer(m.headed(jose.HS256, []byte("0123456789abcdef0123456789abcdef"), claims{"kid": "sym"})), 401, invalid, "its algorithm is not allowed"},
		{"a signature with another key", m.plain, bearer(m.headed(jose.RS256, m.other, claims{"kid": "r"})), 401, invalid, "its signature is wrong"},
		{"a signature with the key in the header jwk", m.plain, bearer(m.headed(jose.RS256, m.other, claims{"kid": "r", "jwk": jose.JSONWebKey{Key: m.other.Public()}})), 401, invalid, "its signature is wrong"},
		{"a signature with the key that the header jku names", m.plain, bearer(m.headed(jose.RS256, m.other, claims{"kid": "r", "jku": "https://evil.example/jwks"})), 401, invalid, "its signature is wrong"},
		{"an unknown kid", m.plain, bearer(m.headed(jose.RS256, m.rsa, claims{"kid": "z"})), 401, invalid, "its key is not known"},
		{"the kid of a key of another type", m.plain, bearer(m.headed(jose.RS256, m.rsa, claims{"kid": "e"})), 401, invalid, "its key is not known"},
		{"the kid of a key for encryption", m.plain, bearer(m.headed(jose.RS256, m.other, claims{"kid": "enc"})), 401, invalid, "its key is not known"},
		{"the kid of a symmetric key", m.plain, bearer(m.headed(jose.RS256, m.rsa, claims{"kid": "sym"})), 401, invalid, "its key is not known"},
		{"an algorithm that the key is not for", m.plain, bearer(m.headed(jose.PS256, m.rsa, claims{"kid": "r"})), 401, invalid, "its key is not known"},
		{"a long kid", m.plain, bearer(m.headed(jose.RS256, m.rsa, claims{"kid": strings.Repeat("k", 600)})), 401, invalid, "its kid is too long"},
		{"a proof as a token", m.plain, bearer(m.headed(jose.RS256, m.rsa, claims{"kid": "r", "typ": "dpop+jwt"})), 401, invalid, "its typ is not that of an access token"},
		{"an assertion as a token", m.plain, bearer(m.headed(jose.RS256, m.rsa, claims{"kid": "r", "typ": "oauth-id-jag+jwt"})), 401, invalid, "its typ is not that of an access token"},
		{"three dots", m.plain, bearer("..."), 401, invalid, "it is not a signed JWT"},
		{"an encrypted token", m.plain, bearer("a.b.c.d.e"), 401, invalid, "it is not a signed JWT"},
		{"alg None", m.plain, bearer(strings.Replace(unsigned(payload(nil)), "eyJhbGciOiJub25l", base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"None`)), 1)), 401, invalid, "its algorithm is not allowed"},
		{"an algorithm twice", m.plain, bearer(headOf(`{"alg":"RS256","alg":"none"}`) + "." + m.parts[1] + "." + m.parts[2]), 401, invalid, "it is not a signed JWT"},
		{"a header parameter in another case", m.plain, bearer(headOf(`{"ALG":"RS256","KID":"r"}`) + "." + m.parts[1] + "." + m.parts[2]), 401, invalid, "its algorithm is not allowed"},
		{"a changed header", m.plain, bearer(headOf(`{"alg":"RS256","kid":"r"}`) + "." + m.parts[1] + "." + m.parts[2]), 401, invalid, "its signature is wrong"},
		{"critical extensions that are unknown", m.plain, bearer(m.headed(jose.RS256, m.rsa, claims{"kid": "r", "crit": []string{"x"}, "x": 1})), 401, invalid, "its signature is wrong"},
		{"a signature with the key that the header x5u names", m.plain, bearer(m.headed(jose.RS256, m.other, claims{"x5u": "https://evil.example/x"})), 401, invalid, "its signature is wrong"},
		{"a signature with another key, without a kid", m.plain, bearer(m.headed(jose.RS256, m.other, nil)), 401, invalid, "its signature is wrong"},
		{"a kid that is a path", m.plain, bearer(m.headed(jose.RS256, m.rsa, claims{"kid": "../../dev/null"})), 401, invalid, "its key is not known"},
		{"an unknown issuer, with several issuers", m.several(), bearer(m.token(claims{"iss": "https://third.example.com"})), 401, invalid, "it is of another issuer"},
		{"not a JWT, with several issuers", m.several(), bearer("opaque"), 401, invalid, "it is not a signed JWT"},
		{"a claim twice", m.plain, bearer(m.sign(jose.RS256, m.rsa, claims{"kid": "r"}, `{"sub":"a","sub":"b"}`)), 401, invalid, "its claims are not a JSON object"},
		{"a part more", m.plain, bearer(m.good + ".x"), 401, invalid, "it is not a signed JWT"},
		{"a signature cut short", m.plain, bearer(m.good[:len(m.good)-4]), 401, invalid, "its signature is wrong"},
		{"a header that is not JSON", m.plain, bearer(headOf("x") + "." + m.parts[1] + "." + m.parts[2]), 401, invalid, "it is not a signed JWT"},
		{"a header that is not an object", m.plain, bearer(headOf("[]") + "." + m.parts[1] + "." + m.parts[2]), 401, invalid, "it is not a signed JWT"},
		{"an empty header", m.plain, bearer(headOf("{}") + "." + m.parts[1] + "." + m.parts[2]), 401, invalid, "its algorithm is not allowed"},
		{"an algorithm that is not a string", m.plain, bearer(headOf(`{"alg":1}`) + "." + m.parts[1] + "." + m.parts[2]), 401, invalid, "its algorithm is not allowed"},
		{"a kid that is not a string", m.plain, bearer(headOf(`{"alg":"RS256","kid":1}`) + "." + m.parts[1] + "." + m.parts[2]), 401, invalid, "it is not a signed JWT"},
		{"a typ that is not a string", m.plain, bearer(m.headed(jose.RS256, m.rsa, claims{"kid": "r", "typ": 1})), 401, invalid, "its typ is not that of an access token"},
		{"text instead of claims", m.plain, bearer(m.sign(jose.RS256, m.rsa, claims{"kid": "r"}, `"x"`)), 401, invalid, "its claims are not a JSON object"},
		{"claims and more", m.plain, bearer(m.sign(jose.RS256, m.rsa, claims{"kid": "r"}, payload(nil)+"{}")), 401, invalid, "its claims are not a JSON object"},
		{"claims that are not UTF-8", m.plain, bearer(m.sign(jose.RS256, m.rsa, claims{"kid": "r"}, "{\"sub\":\"\xff\"}")), 401, invalid, "its claims are not a JSON object"},
		{"null instead of claims", m.plain, bearer(m.sign(jose.RS256, m.rsa, claims{"kid": "r"}, `null`)), 401, invalid, "its claims are not a JSON object"},
	}
}

// The claims of the token.
func (m *matrix) said() []row {
	return []row{
		{"another issuer", m.plain, bearer(m.token(claims{"iss": issuer + "/"})), 401, invalid, "it is of another issuer"},
		{"no issuer", m.plain, bearer(m.token(claims{"iss": nil})), 401, invalid, "it is of another issuer"},
		{"another audience", m.plain, bearer(m.token(claims{"aud": "https://mcp.example.com"})), 401, invalid, "it is for another audience"},
		{"no audience", m.plain, bearer(m.token(claims{"aud": nil})), 401, invalid, "it is for another audience"},
		{"an audience that is not a string", m.plain, bearer(m.token(claims{"aud": []any{1, claims{}}})), 401, invalid, "it is for another audience"},
		{"expired", m.plain, bearer(m.token(claims{"exp": time.Now().Add(-time.Minute).Unix()})), 401, invalid, "it has expired"},
		{"no expiry", m.plain, bearer(m.token(claims{"exp": nil})), 401, invalid, "it has no expiry"},
		{"an expiry that is not a number", m.plain, bearer(m.token(claims{"exp": "never"})), 401, invalid, "exp is not a time"},
		{"an expiry that is out of range", m.plain, bearer(m.token(claims{"exp": 1e300})), 401, invalid, "exp is not a time"},
		{"not valid yet", m.plain, bearer(m.token(claims{"nbf": time.Now().Add(time.Hour).Unix()})), 401, invalid, "it is not valid yet"},
		{"issued in the future", m.plain, bearer(m.token(claims{"iat": time.Now().Add(time.Hour).Unix()})), 401, invalid, "it is not valid yet"},
		{"no subject", m.plain, bearer(m.token(claims{"sub": nil, "client_id": nil})), 401, invalid, "it has no subject"},
		{"a list of issuers", m.plain, bearer(m.token(claims{"iss": []string{issuer}})), 401, invalid, "it is of another issuer"},
		{"an audience with the same prefix", m.plain, bearer(m.token(claims{"aud": endpoint + "/x"})), 401, invalid, "it is for another audience"},
		{"an audience in another case", m.plain, bearer(m.token(claims{"aud": strings.ToUpper(endpoint)})), 401, invalid, "it is for another audience"},
		{"an empty audience", m.plain, bearer(m.token(claims{"aud": ""})), 401, invalid, "it is for another audience"},
		{"an empty list of audiences", m.plain, bearer(m.token(claims{"aud": []string{}})), 401, invalid, "it is for another audience"},
		{"audiences in one string", m.plain, bearer(m.token(claims{"aud": endpoint + " other"})), 401, invalid, "it is for another audience"},
		{"an audience in an object", m.plain, bearer(m.token(claims{"aud": claims{endpoint: true}})), 401, invalid, "it is for another audience"},
		{"an audience in a list in a list", m.plain, bearer(m.token(claims{"aud": []any{[]any{endpoint}}})), 401, invalid, "it is for another audience"},
		{"an expiry in milliseconds", m.plain, bearer(m.token(claims{"exp": time.Now().UnixMilli()})), 401, invalid, "exp is not a time"},
		{"an expiry before all times", m.plain, bearer(m.token(claims{"exp": -1e13})), 401, invalid, "it has expired"},
		{"issued at no time", m.plain, bearer(m.token(claims{"iat": true})), 401, invalid, "iat is not a time"},
		{"an empty subject", m.plain, bearer(m.token(claims{"sub": "", "client_id": ""})), 401, invalid, "it has no subject"},
		{"a subject in a list", m.plain, bearer(m.token(claims{"sub": []any{"ann"}})), 401, invalid, "sub is not a valid name"},
		{"a client that is not a string", m.plain, bearer(m.token(claims{"client_id": claims{}})), 401, invalid, "client_id is not a valid name"},
		{"an authorized party that is not a string", m.plain, bearer(m.token(claims{"azp": 1})), 401, invalid, "azp is not a valid name"},
		{"expired at the beginning of time", m.plain, bearer(m.token(claims{"exp": 0})), 401, invalid, "it has expired"},
		{"not before is not a number", m.plain, bearer(m.token(claims{"nbf": "now"})), 401, invalid, "nbf is not a time"},
		{"a subject that is a number", m.plain, bearer(m.token(claims{"sub": 7})), 401, invalid, "sub is not a valid name"},
		{"a subject of two lines", m.plain, bearer(m.token(claims{"sub": "ann\r\nX: y"})), 401, invalid, "sub is not a valid name"},
		{"a subject with a NUL", m.plain, bearer(m.token(claims{"sub": "ann\x00app"})), 401, invalid, "sub is not a valid name"},
		{"a scope in another case", m.plain, bearer(m.token(claims{"scope": "Notes:Read"})), 403, scope, "the token lacks scopes that this request needs"},
		{"a scope of everything", m.plain, bearer(m.token(claims{"scope": "* notes:*"})), 403, scope, "the token lacks scopes that this request needs"},
		{"a scope that includes others", m.guard(func(o *resource.Options) { o.Includes = map[string][]string{"a": {"b"}} }), bearer(m.token(claims{"scope": "a"})), 403, scope, "the token lacks scopes that this request needs"},
		{"introspection: not active", m.asking(`{"active":false}`), bearer("opaque"), 401, invalid, "it is not active"},
		{"introspection: another audience", m.asking(`{"active":true,"aud":"x","sub":"ann"}`), bearer("opaque"), 401, invalid, "it is for another audience"},
		{"introspection: a scope is missing", m.asking(`{"active":true,"aud":"` + endpoint + `","sub":"ann"}`), bearer("opaque"), 403, scope, "the token lacks scopes that this request needs"},
		{"introspection: active", m.asking(`{"active":true,"aud":"` + endpoint + `","sub":"ann","scope":"notes:read"}`), bearer("opaque"), 200, "", ""},
		{"a scope is missing", m.plain, bearer(m.token(claims{"scope": "notes:reader"})), 403, scope, "the token lacks scopes that this request needs"},
		{"no scopes", m.plain, bearer(m.token(claims{"scope": nil})), 403, scope, "the token lacks scopes that this request needs"},
	}
}

// Scopes and policies.
func (m *matrix) policies() []row {
	return []row{
		{"policy: a claim is missing", m.policy(resource.RequireClaim("mfa")), bearer(m.good), 403, denied, "access is denied by policy"},
		{"policy: another value of a claim", m.policy(resource.RequireClaim("mfa", true)), bearer(m.token(claims{"mfa": "true"})), 403, denied, "access is denied by policy"},
		{"the claim", m.policy(resource.RequireClaim("mfa", true)), bearer(m.token(claims{"mfa": true})), 200, "", ""},
		{"policy: a scope is missing", m.policy(func(context.Context, *oauth.Principal) error {
			return &oauth.InsufficientScopeError{Scopes: []string{"x"}}
		}), bearer(m.good), 403, scope, "the token lacks scopes that this request needs"},
	}
}

// Failed checks.
func (m *matrix) unknowns() []row {
	return []row{
		{"the keys cannot be fetched", m.keysAway(), bearer(m.good), 503, unknown, "the token could not be checked"},
		{"introspection: a response that is not JSON", m.asking(`active`), bearer("opaque"), 503, unknown, "the token could not be checked"},
		{"a principal with claims alone", m.failing(&oauth.Principal{ClientID: "app", Claims: claims{"a": 1}}, nil), bearer(m.good), 503, unknown, "the token could not be checked"},
		{"no room for a proof", m.full(), m.dpopAsk(m.proof(m.prover, "POST", endpoint, m.boundToken, "")), 503, unknown, "the token could not be checked"},
		{"the verifier fails", m.failing(nil, errors.New("the issuer is away")), bearer(m.good), 503, unknown, "the token could not be checked"},
		{"the verifier returns neither a principal nor an error", m.failing(nil, nil), bearer(m.good), 503, unknown, "the token could not be checked"},
		{"a principal without a name", m.failing(&oauth.Principal{}, nil), bearer(m.good), 503, unknown, "the token could not be checked"},
	}
}

// Tokens bound to a key.
func (m *matrix) bindings() []row {
	return []row{
		{"a bound token with the scheme Bearer", m.bound, bearer(m.boundToken), 401, invalid, "the token is bound to a key; use the scheme DPoP with a proof"},
		{"a bound token, where DPoP is not configured", m.plain, bearer(m.boundToken), 401, invalid, "the token is bound to a key; use the scheme DPoP with a proof"},
		{"the scheme DPoP, where DPoP is not configured", m.plain, m.dpopAsk(), 401, invalid, "tokens that are bound to a key are not supported here; use Bearer"},
		{"a token that is bound to a certificate", m.plain, bearer(m.token(claims{"cnf": claims{"x5t#S256": "x"}})), 401, invalid, "the token has an unknown kind of binding"},
		{"an unbound token with the scheme DPoP", m.bound, ask("Authorization", "DPoP "+m.good), 401, invalid, "the token is not bound to a key; use the scheme Bearer"},
		{"an unbound token, where bound ones are required", m.strict, bearer(m.good), 401, invalid, "the token is not bound to a key; this server requires a bound token"},
		{"no proof", m.bound, m.dpopAsk(), 401, badProof, "the request needs exactly one DPoP header with a proof"},
		{"two proofs", m.bound, m.dpopAsk(m.replayed, m.replayed), 401, badProof, "the request needs exactly one DPoP header with a proof"},
		{"a proof that was used before", m.bound, m.dpopAsk(m.replayed), 401, badProof, "the proof was used before"},
		{"a proof for another HTTP method", m.bound, m.dpopAsk(m.proof(m.prover, "GET", endpoint, m.boundToken, "")), 401, badProof, "the proof is for the verb 'GET'"},
		{"a proof for another URL", m.bound, m.dpopAsk(m.proof(m.prover, "POST", endpoint+"/x", m.boundToken, "")), 401, badProof, "the proof is for another URL"},
		{"a proof for another token", m.bound, m.dpopAsk(m.proof(m.prover, "POST", endpoint, m.good, "")), 401, badProof, "the proof is for another token"},
		{"a proof without the hash of the token", m.bound, m.dpopAsk(m.proof(m.prover, "POST", endpoint, "", "")), 401, badProof, "the proof is for another token"},
		{"a proof with another key", m.bound, m.dpopAsk(m.proof(m.stranger, "POST", endpoint, m.boundToken, "")), 401, invalid, "the token is bound to another key"},
		{"a symmetric proof", m.bound, m.dpopAsk(m.symmetricProof()), 401, badProof, "the algorithm of the proof is not allowed"},
		{"an old proof", m.bound, m.dpopAsk(m.forgedProof(nil, claims{"iat": time.Now().Add(-time.Hour).Unix()})), 401, badProof, "the proof is too old, or was made by a clock that is wrong"},
		{"a proof of the future", m.bound, m.dpopAsk(m.forgedProof(nil, claims{"iat": time.Now().Add(time.Hour).Unix()})), 401, badProof, "the proof is too old, or was made by a clock that is wrong"},
		{"a proof that is not a JWT", m.bound, m.dpopAsk("x"), 401, badProof, "the proof is not a signed JWT"},
		{"a huge proof", m.bound, m.dpopAsk(strings.Repeat("a", 9<<10)), 401, badProof, "the proof is larger than 8192 bytes"},
		{"a token that is bound to nothing", m.bound, bearer(m.token(claims{"cnf": claims{}})), 401, invalid, "the token has an unknown kind of binding"},
		{"a token with a confirmation that is not an object", m.bound, bearer(m.token(claims{"cnf": "x"})), 401, invalid, "the token has an unknown kind of binding"},
		{"a token with a thumbprint that is not a string", m.bound, bearer(m.token(claims{"cnf": claims{"jkt": 1}})), 401, invalid, "the token has an unknown kind of binding"},
		{"a bound token with the scheme Bearer, where bound ones are required", m.strict, bearer(m.boundToken), 401, invalid, "the token is bound to a key; use the scheme DPoP with a proof"},
		{"a token that is bound to another key", m.bound, ask("Authorization", "DPoP "+m.token(claims{"cnf": claims{"jkt": m.stranger.Thumbprint()}}), "DPoP", m.proof(m.prover, "POST", endpoint, m.boundToken, "")), 401, badProof, "the proof is for another token"},
		{"a bound token that has expired", m.bound, ask("Authorization", "DPoP "+m.token(claims{"exp": 1, "cnf": claims{"jkt": m.prover.Thumbprint()}})), 401, invalid, "it has expired"},
		{"a bound token that lacks a scope", m.bound, m.lacking(claims{"scope": "x"}), 403, scope, "the token lacks scopes that this request needs"},
		{"an empty proof", m.bound, m.dpopAsk(""), 401, badProof, "the proof is not a signed JWT"},
		{"two proofs in one header", m.bound, m.dpopAsk(m.replayed + ", " + m.replayed), 401, badProof, "the proof is not a signed JWT"},
		{"a proof with the HTTP method in another case", m.bound, m.dpopAsk(m.proof(m.prover, "post", endpoint, m.boundToken, "")), 401, badProof, "the proof is for the verb 'post'"},
		{"a proof with its private key", m.bound, m.dpopAsk(m.forgedProof(claims{"jwk": jose.JSONWebKey{Key: m.ec}}, nil)), 401, badProof, "the proof is not a signed JWT"},
		{"an access token as a proof", m.bound, m.dpopAsk(m.good), 401, badProof, "the typ of the proof is not 'dpop+jwt'"},
		{"a proof with a long id", m.bound, m.dpopAsk(m.forgedProof(nil, claims{"jti": strings.Repeat("i", 300)})), 401, badProof, "the proof needs jti, htm, htu and iat"},
		{"no Authorization header, where bound tokens are required", m.strict, ask(), 401, "", ""},
		{"a malformed header, where bound tokens are required", m.strict, ask("Authorization", "DPoP a b"), 400, malformed, "the Authorization header is not a scheme and one token"},
		{"no Authorization header, where both kinds of tokens are accepted", m.bound, ask(), 401, "", ""},
	}
}

// Sessions.
func (m *matrix) sessions() []row {
	return []row{
		{"a session of the principal", m.session.handler, m.session.ping(claims{"sub": "ann", "client_id": "app"}, m.session.id), 200, "", ""},
		{"a session of another principal", m.session.handler, m.session.ping(claims{"sub": "eve", "client_id": "app"}, m.session.id), 404, unowned, "session is unknown or has ended; send initialize without a session id"},
		{"a session of the principal by another client", m.session.handler, m.session.ping(claims{"sub": "ann", "client_id": "other-app"}, m.session.id), 404, unowned, "session is unknown or has ended; send initialize without a session id"},
		{"a session of an anonymous caller", m.session.handler, m.session.ping(claims{"sub": "eve", "client_id": "app"}, "made-up"), 404, unowned, "session is unknown or has ended; send initialize without a session id"},
		{"a session without a token", m.session.handler, m.session.ping(nil, m.session.id), 401, "", ""},
	}
}
