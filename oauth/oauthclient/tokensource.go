package oauthclient

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"

	"golang.org/x/oauth2"

	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
)

// TokenSource returns the tokens of t to programs that use package oauth2. They come without a refresh
// token, because t refreshes them. ctx is the context of each call.
func (t *Transport) TokenSource(ctx context.Context) oauth2.TokenSource { return &tokenSource{t, ctx} }

type tokenSource struct {
	t   *Transport
	ctx context.Context
}

// Token implements [oauth2.TokenSource].
func (s *tokenSource) Token() (*oauth2.Token, error) {
	tok, err := s.t.Token(s.ctx)
	if err != nil {
		return nil, err
	}
	return &oauth2.Token{AccessToken: tok.AccessToken, TokenType: tok.Type, Expiry: tok.Expires}, nil
}

// FromTokenSource returns a transport that puts the tokens of src on the requests to one MCP server,
// for programs that get tokens elsewhere. It forwards requests to other origins, and requests with an
// Authorization header, unchanged; the transport of package oauth2 would send its tokens wherever a
// server redirects the client. A nil base means [http.DefaultTransport]. FromTokenSource returns an
// error if the URL of the server is neither https nor at a loopback address.
func FromTokenSource(server string, src oauth2.TokenSource, base http.RoundTripper) (http.RoundTripper, error) {
	u, err := parseServer(server, true)
	if err != nil {
		return nil, err
	}
	source := oauth2.ReuseTokenSource(nil, src)
	return &sourceTransport{u, oauth2.Transport{Source: source, Base: cmp.Or(base, http.DefaultTransport)}}, nil
}

type sourceTransport struct {
	server *url.URL
	oauth2.Transport
}

// RoundTrip implements [http.RoundTripper].
func (s *sourceTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !isFor(req, s.server) {
		return s.Base.RoundTrip(req)
	}
	return s.Transport.RoundTrip(req)
}

// isFor reports whether a request needs a token of a server: it is for its origin, and has no other
// credentials.
func isFor(req *http.Request, server *url.URL) bool {
	return metadata.Origin(req.URL) == metadata.Origin(server) && req.Header.Get("Authorization") == ""
}

// parseServer parses the URL of an MCP server to which tokens are sent.
func parseServer(server string, insecureLoopback bool) (*url.URL, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return nil, fmt.Errorf("oauthclient: the server must be an absolute URL without user and fragment, not %q", server)
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !insecureLoopback || !metadata.IsLoopback(u.Hostname())) {
		return nil, fmt.Errorf("oauthclient: tokens to %q would be sent unencrypted; use https", server)
	}
	return u, nil
}
