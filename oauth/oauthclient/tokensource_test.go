package oauthclient_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
)

// A program may use the token of the login with package oauth2.
func TestTokenSourceOfALogin(t *testing.T) {
	as := oauthtest.New(t, nil)
	s, u, tr := visited(t, as, nil)
	src := tr.TokenSource(t.Context())
	tok, err := src.Token()
	require.NoError(t, err)
	require.True(t, tok.Valid())
	require.Empty(t, tok.RefreshToken, "only the transport refreshes tokens")
	require.Equal(t, "user may read", says(t, &oauth2.Transport{Source: src}, s.url))
	require.Len(t, u.logins(), 1)

	as = oauthtest.New(t, &oauthtest.Options{Consent: func(*oauthtest.Authorization) error { return errors.New("not today") }})
	s = protect(t, as, nil)
	_, err = connect(t, s.url, u.grant(), oauthclient.Options{}).TokenSource(t.Context()).Token()
	require.ErrorContains(t, err, "not today")
}

type source func() (*oauth2.Token, error)

func (s source) Token() (*oauth2.Token, error) { return s() }

// A program may get its tokens with package oauth2.
func TestTokensOfATokenSourceStayAtTheServer(t *testing.T) {
	as := oauthtest.New(t, nil)
	s := protect(t, as, nil)
	src := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: as.Token(oauthtest.Token{Audience: []string{s.url}, Scopes: []string{"read"}})})
	tr, err := oauthclient.FromTokenSource(s.url, src, as.Client().Transport)
	require.NoError(t, err)
	require.Equal(t, "user may read", says(t, tr, s.url))

	var other book
	elsewhere := httptest.NewServer(other.wrap(http.NotFoundHandler()))
	defer elsewhere.Close()
	s.Config.Handler = http.RedirectHandler(elsewhere.URL+"/mcp", http.StatusTemporaryRedirect)
	resp, err := (&http.Client{Transport: tr}).Get(s.url)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Len(t, other.at("/mcp"), 1)
	require.Empty(t, other.at("/mcp")[0].header.Get("Authorization"))

	_, err = oauthclient.FromTokenSource("http://mcp.example/mcp", src, nil)
	require.EqualError(t, err, `oauthclient: tokens to "http://mcp.example/mcp" would be sent unencrypted; use https`)
	tr, err = oauthclient.FromTokenSource(s.url, source(func() (*oauth2.Token, error) { return nil, errors.New("no login") }), nil)
	require.NoError(t, err)
	_, _, err = post(t, tr, s.url)
	require.EqualError(t, err, "no login")
}
