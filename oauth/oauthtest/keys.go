package oauthtest

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth/internal/keys"
)

const (
	signingAlgorithm = jose.ES256

	jwtAccess = "at+jwt"           // RFC 9068
	jwtID     = "JWT"              // OpenID Connect
	jwtIDJAG  = "oauth-id-jag+jwt" // Identity Assertion JWT Authorization Grant

	assertionLifetime = 5 * time.Minute
)

// algorithms are the algorithms of client assertions.
var algorithms = []jose.SignatureAlgorithm{jose.ES256, jose.ES384, jose.ES512, jose.EdDSA, jose.PS256, jose.RS256}

// A signingKey is a key with its published ID.
type signingKey struct {
	private *ecdsa.PrivateKey
	id      string
}

func (k *signingKey) public() jose.JSONWebKey {
	return jose.JSONWebKey{Key: &k.private.PublicKey, KeyID: k.id, Algorithm: string(signingAlgorithm), Use: "sig"}
}

// Rotate generates a new key, which signs all further tokens. The previous key stays published
// until the next rotation.
func (s *Server) Rotate() error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("oauthtest: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := append([]*signingKey{{private, rand.Text()}}, s.keys...)
	s.keys = keys[:min(len(keys), 2)]
	return nil
}

// JWKS returns the published key set as JSON.
func (s *Server) JWKS() []byte {
	doc, err := jsonx.Marshal(jose.JSONWebKeySet{Keys: s.published()})
	if err != nil {
		return nil // cannot happen: the keys can always be encoded
	}
	return doc
}

func (s *Server) published() []jose.JSONWebKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []jose.JSONWebKey
	for _, k := range s.keys {
		keys = append(keys, k.public())
	}
	return keys
}

// A Token describes an access token. The zero value is a token of the user "user" for the client
// "client".
type Token struct {
	Subject  string // empty means "user"
	ClientID string // empty means "client"
	// Audience are the resources of the token. Nil means those of [Options.Resources].
	Audience []string
	Scopes   []string
	// Expires is the time at which the token expires. Zero means after [Options.Lifetime].
	Expires time.Time
	// Thumbprint binds the token to the key with this thumbprint (RFC 9449, section 6.1). Empty
	// means that the token is not bound.
	Thumbprint string
	// Claims are added to the other claims, and replace them. A nil value removes a claim.
	Claims map[string]any
}

// An accessToken is the record of an access token.
type accessToken struct {
	grant   *grant // nil for a token of Server.Token
	claims  map[string]any
	expires time.Time
	ended   bool // guarded by Server.mu
}

// Token issues an access token without a login. It can be introspected and revoked like any other.
// Token panics if the claims cannot be encoded.
func (s *Server) Token(t Token) string {
	t.Subject, t.ClientID = cmp.Or(t.Subject, "user"), cmp.Or(t.ClientID, "client")
	if t.Audience == nil {
		t.Audience = s.opts.Resources
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := s.mint(&t, nil)
	if err != nil {
		panic(fmt.Errorf("oauthtest: the claims of a token: %w", err))
	}
	return text
}

// Sign signs a JWT with any claims, for example an assertion of a platform, or a token that must be
// rejected. typ is the typ of its header. Sign panics if the claims cannot be encoded.
func (s *Server) Sign(typ string, claims map[string]any) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := s.sign(typ, claims)
	if err != nil {
		panic(fmt.Errorf("oauthtest: claims: %w", err))
	}
	return text
}

// IDToken returns an ID token of a user for a client (OpenID Connect Core 1.0, section 2).
func (s *Server) IDToken(subject, clientID string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := s.idToken(subject, clientID, "")
	if err != nil {
		panic(fmt.Errorf("oauthtest: %w", err))
	}
	return text
}

// mint issues an access token and stores it. The caller holds s.mu.
func (s *Server) mint(t *Token, g *grant) (string, error) {
	expires := t.Expires
	if expires.IsZero() {
		expires = s.opts.Now().Add(s.opts.Lifetime)
	}
	claims := s.claims(t.Subject, t.Audience, expires)
	claims["jti"] = rand.Text()
	if len(t.Audience) == 1 {
		claims["aud"] = t.Audience[0]
	}
	if t.ClientID != "" {
		claims["client_id"] = t.ClientID
	}
	if len(t.Scopes) > 0 {
		claims["scope"] = strings.Join(t.Scopes, " ")
	}
	if t.Thumbprint != "" {
		claims["cnf"] = map[string]string{"jkt": t.Thumbprint}
	}
	maps.Copy(claims, t.Claims)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	text, err := s.sign(jwtAccess, claims)
	if err != nil {
		return "", err
	}
	if s.opts.Opaque {
		text = rand.Text()
	}
	s.access[text] = &accessToken{grant: g, claims: claims, expires: expires}
	return text, nil
}

// sign signs with the first key. The caller holds s.mu.
func (s *Server) sign(typ string, claims map[string]any) (string, error) {
	key := s.keys[0]
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: signingAlgorithm, Key: jose.JSONWebKey{Key: key.private, KeyID: key.id}},
		(&jose.SignerOptions{}).WithType(jose.ContentType(typ)))
	if err != nil {
		return "", err
	}
	return keys.Sign(signer, claims)
}

// claims returns the claims that all tokens have.
func (s *Server) claims(subject string, audience any, expires time.Time) map[string]any {
	return map[string]any{"iss": s.Issuer, "sub": subject, "aud": audience, "iat": s.opts.Now().Unix(), "exp": expires.Unix()}
}

// idToken returns an ID token. The caller holds s.mu.
func (s *Server) idToken(subject, clientID, nonce string) (string, error) {
	claims := s.claims(subject, clientID, s.opts.Now().Add(s.opts.Lifetime))
	if nonce != "" {
		claims["nonce"] = nonce
	}
	return s.sign(jwtID, claims)
}

// idJAG returns an assertion for another authorization server, which knows the client by the same
// ID.
func (s *Server) idJAG(subject, clientID, audience string, scopes, resources []string) (string, error) {
	claims := s.claims(subject, audience, s.opts.Now().Add(assertionLifetime))
	claims["client_id"], claims["jti"] = clientID, rand.Text()
	if len(scopes) > 0 {
		claims["scope"] = strings.Join(scopes, " ")
	}
	if len(resources) > 0 {
		claims["resource"] = resources
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sign(jwtIDJAG, claims)
}

// stringList is a string or a list of strings.
type stringList []string

// UnmarshalJSON reads both forms.
func (l *stringList) UnmarshalJSON(b []byte) error {
	if jsonx.Kind(b) == '"' {
		*l = stringList{jsonx.String(b)}
		return nil
	}
	return jsonx.Unmarshal(b, (*[]string)(l))
}

// assertionClaims are the claims of assertions that the server checks.
type assertionClaims struct {
	Issuer   string     `json:"iss"`
	Subject  string     `json:"sub"`
	Audience stringList `json:"aud"`
	Expires  float64    `json:"exp"`
	Begins   float64    `json:"nbf"`
	ID       string     `json:"jti"`
	ClientID string     `json:"client_id"`
	Scope    string     `json:"scope"`
	Resource stringList `json:"resource"`
}

// open verifies a signature and returns the claims.
func open(jws *jose.JSONWebSignature, keys []jose.JSONWebKey) (*assertionClaims, error) {
	for _, k := range keys {
		if id := jws.Signatures[0].Protected.KeyID; id != "" && k.KeyID != "" && id != k.KeyID {
			continue
		}
		payload, err := jws.Verify(k)
		if err != nil {
			continue
		}
		claims := new(assertionClaims)
		if err := jsonx.Unmarshal(payload, claims); err != nil {
			return nil, errors.New("its claims are invalid")
		}
		return claims, nil
	}
	return nil, errors.New("its signature is invalid")
}

// checkAssertion checks that an assertion is for this server and currently valid (RFC 7523, section
// 3). If once is set, it accepts the assertion only once.
func (s *Server) checkAssertion(claims *assertionClaims, once bool) error {
	now := float64(s.opts.Now().Unix())
	switch {
	case claims.Subject == "":
		return errors.New("has no sub")
	case !slices.Contains(claims.Audience, s.Issuer) && !slices.Contains(claims.Audience, s.Endpoint("token")):
		return fmt.Errorf("is for the audience %q", []string(claims.Audience))
	case claims.Expires <= now:
		return errors.New("has expired")
	case claims.Begins > now:
		return errors.New("is not valid yet")
	case !once:
		return nil
	case claims.ID == "":
		return errors.New("has no jti")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := claims.Issuer + "\x00" + claims.ID
	if s.seen[key] {
		return errors.New("was used before")
	}
	s.seen[key] = true
	return nil
}

// trusted verifies an assertion of a trusted server.
func (s *Server) trusted(text string) (typ string, claims *assertionClaims, err error) {
	jws, err := jose.ParseSignedCompact(text, algorithms)
	if err != nil {
		return "", nil, errors.New("it is not a signed JWT")
	}
	typ, _ = jws.Signatures[0].Protected.ExtraHeaders[jose.HeaderType].(string)
	for _, other := range s.opts.Trusts {
		claims, err := open(jws, other.published())
		if err == nil && claims.Issuer == other.Issuer {
			return typ, claims, nil
		}
	}
	return "", nil, errors.New("no trusted server signed it")
}

// own verifies a token that this server issued to a client. It returns the subject.
func (s *Server) own(text string, c *client) (string, error) {
	s.mu.Lock()
	known := s.access[text]
	active := known != nil && s.active(known)
	s.mu.Unlock()
	if known != nil {
		if subject, ok := known.claims["sub"].(string); ok && active {
			return subject, nil
		}
		return "", errors.New("it is not active")
	}
	jws, err := jose.ParseSignedCompact(text, []jose.SignatureAlgorithm{signingAlgorithm})
	if err != nil {
		return "", errors.New("it is not a token of this server")
	}
	claims, err := open(jws, s.published())
	switch {
	case err != nil:
		return "", err
	case claims.Issuer != s.Issuer || !slices.Contains(claims.Audience, c.id):
		return "", errors.New("it was issued to another client")
	case claims.Expires <= float64(s.opts.Now().Unix()):
		return "", errors.New("it has expired")
	}
	return claims.Subject, nil
}
