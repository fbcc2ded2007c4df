package oauthtest

import (
	"maps"
	"net/http"
	"time"

	"github.com/mcpkit/mcpkit-go/oauth/internal/dpop"
)

// active reports whether an access token is valid. The caller holds s.mu.
func (s *Server) active(t *accessToken) bool {
	return !t.ended && (t.grant == nil || !t.grant.ended) && time.Now().Before(t.expires)
}

// introspect returns the claims of a token to an authenticated client (RFC 7662).
func (s *Server) introspect(r *http.Request) (any, error) {
	c, err := s.authenticate(r)
	switch {
	case err != nil:
		return nil, err
	case c == nil || c.public():
		return nil, refuse(codeInvalidClient, "the client must authenticate")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.access[r.PostForm.Get("token")]
	if t == nil || !s.active(t) {
		return map[string]any{"active": false}, nil
	}
	all := maps.Clone(t.claims)
	all["active"], all["token_type"] = true, "Bearer"
	if all["cnf"] != nil {
		all["token_type"] = dpop.Scheme
	}
	return all, nil
}

// revoke ends a token of the client that sends the request (RFC 7009): an access token alone, or a
// refresh token and all tokens of its grant. Unknown tokens are not an error.
func (s *Server) revoke(r *http.Request) (any, error) {
	c, err := s.authenticate(r)
	switch {
	case err != nil:
		return nil, err
	case c == nil:
		return nil, refuse(codeInvalidClient, "the request does not name its client")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text := r.PostForm.Get("token")
	if t := s.refresh[text]; t != nil && t.grant.client.id == c.id {
		t.grant.ended = true
	}
	if t := s.access[text]; t != nil && t.claims["client_id"] == c.id {
		t.ended = true
	}
	return nil, nil
}

// Revoke revokes an access token, or a refresh token with all tokens of the same grant, as if its
// client had sent the request. It reports whether the token was valid.
func (s *Server) Revoke(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.refresh[token]; t != nil {
		valid := !t.used && !t.grant.ended
		t.grant.ended = true
		return valid
	}
	if t := s.access[token]; t != nil {
		valid := s.active(t)
		t.ended = true
		return valid
	}
	return false
}
