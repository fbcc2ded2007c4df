package oauthtest

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth/internal/keys"
)

const (
	signingAlgorithm = jose.ES256
	jwtAccess        = "at+jwt" // RFC 9068
)

// JWKS returns the published key set as JSON.
func (s *Server) JWKS() []byte {
	doc, err := jsonx.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{s.key.Public()}})
	if err != nil {
		return nil // cannot happen: the key can always be encoded
	}
	return doc
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

// Sign signs a JWT with any claims, for example a token that must be rejected. typ is the typ of its
// header. Sign panics if the claims cannot be encoded.
func (s *Server) Sign(typ string, claims map[string]any) string {
	text, err := s.sign(typ, claims)
	if err != nil {
		panic(fmt.Errorf("oauthtest: claims: %w", err))
	}
	return text
}

// mint issues an access token and stores it. The caller holds s.mu.
func (s *Server) mint(t *Token, g *grant) (string, error) {
	expires := t.Expires
	if expires.IsZero() {
		expires = time.Now().Add(s.opts.Lifetime)
	}
	claims := map[string]any{
		"iss": s.Issuer, "sub": t.Subject, "aud": jwt.Audience(t.Audience), "jti": rand.Text(),
		"iat": time.Now().Unix(), "exp": expires.Unix(),
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

func (s *Server) sign(typ string, claims map[string]any) (string, error) {
	return keys.Sign(s.key, signingAlgorithm, (&jose.SignerOptions{}).WithType(jose.ContentType(typ)), claims)
}
