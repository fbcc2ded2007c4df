package oauthtest

import (
	"maps"
	"net/http"

	"github.com/mcpkit/mcpkit-go/oauth/dpop"
)

// active reports whether an access token is good; s.mu is held.
func (s *Server) active(t *accessToken) bool {
	return !t.ended && (t.grant == nil || !t.grant.ended) && s.opts.Now().Before(t.expires)
}

// introspect returns the claims of a token to an authenticated client (RFC 7662).
func (s *Server) introspect(r *http.Request, _ http.Header) (int, any, error) {
	if err := parseForm(r); err != nil {
		return 0, nil, err
	}
	c, err := s.authenticate(r)
	switch {
	case err != nil:
		return 0, nil, err
	case c == nil || c.public():
		return 0, nil, refuse(codeInvalidClient, "who asks has to authenticate")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.access[r.PostForm.Get("token")]
	if t == nil || !s.active(t) {
		return http.StatusOK, map[string]any{"active": false}, nil
	}
	all := maps.Clone(t.claims)
	all["active"], all["token_type"] = true, "Bearer"
	if all["cnf"] != nil {
		all["token_type"] = dpop.Scheme
	}
	return http.StatusOK, all, nil
}

// revoke ends a token of the client that sends the request (RFC 7009): an access token alone, or a
// refresh token and all tokens of its grant. Unknown tokens are not an error.
func (s *Server) revoke(r *http.Request, _ http.Header) (int, any, error) {
	if err := parseForm(r); err != nil {
		return 0, nil, err
	}
	c, err := s.authenticate(r)
	switch {
	case err != nil:
		return 0, nil, err
	case c == nil:
		return 0, nil, refuse(codeInvalidClient, "the client does not say who it is")
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
	return http.StatusOK, nil, nil
}

// Revoke ends a token, an access token or a refresh token with all that came from the same consent,
// as if its client had asked. It reports whether the token was good.
func (s *Server) Revoke(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.refresh[token]; t != nil {
		good := !t.used && !t.grant.ended
		t.grant.ended = true
		return good
	}
	if t := s.access[token]; t != nil {
		good := s.active(t)
		t.ended = true
		return good
	}
	return false
}
