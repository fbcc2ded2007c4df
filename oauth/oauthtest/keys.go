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
	"github.com/go-jose/go-jose/v4/jwt"

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

// Rotate generates a new key, which signs all further tokens. The previous key stays published
// until the next rotation.
func (s *Server) Rotate() error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("oauthtest: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := jose.JSONWebKey{Key: private, KeyID: rand.Text(), Algorithm: string(signingAlgorithm), Use: "sig"}
	s.keys = append([]jose.JSONWebKey{key}, s.keys[:min(len(s.keys), 1)]...)
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
		keys = append(keys, k.Public())
	}
	return keys
}

// A Token describes an access token. The zero value is a token of the user "user" for the client
// "client".
type Token struct {
	Subject  string // empty means "user"
	ClientID string // empty means "client"
	// Audience are the resources of the token.
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
	return s.Sign(jwtID, s.claims(subject, clientID, time.Now().Add(s.opts.Lifetime)))
}

// mint issues an access token and stores it. The caller holds s.mu.
func (s *Server) mint(t *Token, g *grant) (string, error) {
	expires := t.Expires
	if expires.IsZero() {
		expires = time.Now().Add(s.opts.Lifetime)
	}
	claims := s.claims(t.Subject, jwt.Audience(t.Audience), expires)
	claims["jti"] = rand.Text()
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
	key := jose.SigningKey{Algorithm: signingAlgorithm, Key: s.keys[0]}
	signer, err := jose.NewSigner(key, (&jose.SignerOptions{}).WithType(jose.ContentType(typ)))
	if err != nil {
		return "", err
	}
	return keys.Sign(signer, claims)
}

// claims returns the claims that all tokens have.
func (s *Server) claims(subject string, audience any, expires time.Time) map[string]any {
	return map[string]any{"iss": s.Issuer, "sub": subject, "aud": audience, "iat": time.Now().Unix(), "exp": expires.Unix()}
}

// idJAG returns an assertion for another authorization server, which knows the client by the same
// ID.
func (s *Server) idJAG(subject, clientID, audience, scope string, resources []string) string {
	claims := s.claims(subject, audience, time.Now().Add(assertionLifetime))
	claims["client_id"], claims["jti"] = clientID, rand.Text()
	if scope != "" {
		claims["scope"] = scope
	}
	if len(resources) > 0 {
		claims["resource"] = resources
	}
	return s.Sign(jwtIDJAG, claims)
}

// An assertion has the claims of a JWT that a client sends.
type assertion struct {
	jwt.Claims
	ClientID string       `json:"client_id"`
	Scope    string       `json:"scope"`
	Resource jwt.Audience `json:"resource"`

	typ string
}

// open returns the claims of a JWT that one of the keys has signed.
func open(text string, published []jose.JSONWebKey) (*assertion, error) {
	token, err := jwt.ParseSigned(text, keys.All)
	if err != nil {
		return nil, errors.New("it is not a signed JWT")
	}
	typ, _ := token.Headers[0].ExtraHeaders[jose.HeaderType].(string)
	for _, key := range published {
		a := &assertion{typ: typ}
		if token.Claims(key, a) == nil {
			return a, nil
		}
	}
	return nil, errors.New("its signature is invalid")
}

// subjectOf returns the unverified subject of a JWT.
func subjectOf(text string) (string, error) {
	token, err := jwt.ParseSigned(text, keys.All)
	if err != nil {
		return "", errors.New("it is not a signed JWT")
	}
	var unverified jwt.Claims
	err = token.UnsafeClaimsWithoutVerification(&unverified)
	return unverified.Subject, err
}

// checkAssertion checks that an assertion is for this server and currently valid (RFC 7523, section
// 3). If once is set, it accepts the assertion only once.
func (s *Server) checkAssertion(a *assertion, once bool) error {
	if err := a.ValidateWithLeeway(jwt.Expected{AnyAudience: jwt.Audience{s.Issuer, s.Endpoint("token")}}, 0); err != nil {
		return err
	}
	if a.Subject == "" || a.Expiry == nil || once && a.ID == "" {
		return errors.New("it needs sub, exp and jti")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := a.Issuer + "\x00" + a.ID
	if once && s.seen[key] {
		return errors.New("it was used before")
	}
	s.seen[key] = once
	return nil
}

// trusted verifies an assertion of a trusted server.
func (s *Server) trusted(text string) (*assertion, error) {
	for _, other := range s.opts.Trusts {
		if a, err := open(text, other.published()); err == nil && a.Issuer == other.Issuer {
			return a, nil
		}
	}
	return nil, errors.New("no trusted server signed it")
}

// loggedIn verifies an ID token that this server issued to a client. It returns the subject.
func (s *Server) loggedIn(text string, c *client) (string, error) {
	a, err := open(text, s.published())
	if err != nil {
		return "", err
	}
	if !slices.Contains(a.Audience, c.id) {
		return "", errors.New("it was issued to another client")
	}
	return a.Subject, a.Validate(jwt.Expected{Issuer: s.Issuer})
}
