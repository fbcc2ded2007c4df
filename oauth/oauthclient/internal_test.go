package oauthclient

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
)

type documents map[string]string

func (d documents) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if doc, ok := d[r.URL.String()]; ok {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.WriteString(doc)
	} else {
		w.WriteHeader(http.StatusNotFound)
	}
	return w.Result(), nil
}

func TestLoginTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := documents{
			"https://mcp.example/.well-known/oauth-protected-resource/mcp": `{"resource":"https://mcp.example/mcp","authorization_servers":["https://as.example"]}`,
			"https://as.example/.well-known/oauth-authorization-server": `{"issuer":"https://as.example","authorization_endpoint":"https://as.example/a",
				"token_endpoint":"https://as.example/t","code_challenge_methods_supported":["S256"]}`,
		}
		grant := &AuthorizationCode{Known: []Credentials{{Issuer: "https://as.example", ClientID: "me"}}, Browser: func(context.Context, LoginRequest) (*Login, error) {
			return &Login{RedirectURI: "http://127.0.0.1:1/callback", Visit: func(ctx context.Context, _ string) (url.Values, error) {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}}, nil
		}}
		tr, err := New("https://mcp.example/mcp", grant, &Options{Base: web, Fetch: web})
		require.NoError(t, err)
		for range 2 { // a timeout is not a rejection, so the next request tries again
			began := time.Now()
			_, err = tr.Token(t.Context())
			require.EqualError(t, err, `oauthclient: the login at "https://as.example": no login within 5m0s`)
			require.Equal(t, 5*time.Minute, time.Since(began))
		}
		require.NoError(t, tr.Close())
	})
}

// FuzzTakeCode checks that a code is accepted only with the state and issuer of the login, and that
// errors repeat no text of other senders.
func FuzzTakeCode(f *testing.F) {
	for _, seed := range []string{
		"state=s&code=c&iss=https://as.example", "state=s&code=c", "state=s&code=c&iss=https://as.example/", "state=t&code=c",
		"state=s&state=s&code=c", "state=s&error=access_denied&error_description=no&iss=https://as.example", "code=c", "", "%",
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, query string, promised bool) {
		back, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		as := &metadata.AuthorizationServer{Issuer: "https://as.example", ISSParameterSupported: promised}
		code, err := takeCode(back, as, "s")
		ours := len(back["state"]) == 1 && back.Get("state") == "s" && len(back["iss"]) < 2 &&
			(back.Get("iss") == as.Issuer || !back.Has("iss") && !promised)
		if err == nil {
			require.True(t, ours && code != "" && len(back["code"]) == 1 && back.Get("code") == code && !back.Has("error"), query)
			return
		}
		require.Empty(t, code)
		if refusal, ok := errors.AsType[*GrantError](err); ok {
			require.True(t, ours && back.Get("error") == refusal.Code, query)
		}
		for _, r := range err.Error() {
			require.True(t, unicode.IsPrint(r), "%q", err)
		}
	})
}

// FuzzTokenAnswer checks that each accepted token is valid in a header.
func FuzzTokenAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"access_token":"t","token_type":"Bearer","expires_in":3600,"scope":"a b","refresh_token":"r"}`,
		`{"access_token":"a\r\nb","token_type":"bearer"}`, `{"access_token":"t","token_type":"DPoP"}`, `{"expires_in":1e300,"access_token":"t","token_type":"bearer"}`, `[]`,
	} {
		f.Add([]byte(seed))
	}
	p := &discovery{resource: "https://mcp.example/mcp", as: &metadata.AuthorizationServer{Issuer: "https://as.example"}}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := new(tokenResponse)
		if jsonx.Unmarshal(body, r) != nil {
			return
		}
		got, err := (&tokenRequest{new(Transport), p, []string{"a"}}).tokenOf(r, nil)
		if err != nil {
			require.Nil(t, got)
			for _, r := range err.Error() {
				require.True(t, unicode.IsPrint(r), "%q", err)
			}
			return
		}
		tok := got.token
		require.Equal(t, "Bearer", tok.Type)
		require.Regexp(t, `^[!-~]+$`, tok.AccessToken)
		require.False(t, !tok.Expires.IsZero() && tok.Expires.Year() > 2100, tok.Expires)
	})
}

// A server that requires a token but supports no OAuth leads to an error that says what to do.
func TestServerThatNamesNoAuthorizationServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/mcp" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	transport, err := New(server.URL+"/mcp", &AuthorizationCode{Browser: Loopback(nil), Name: "test"}, &Options{InsecureLoopback: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, transport.Close()) })
	resp, err := (&http.Client{Transport: transport}).Post(server.URL+"/mcp", "application/json", http.NoBody)
	if err == nil {
		resp.Body.Close()
	}
	require.ErrorContains(t, err, "oauthclient: the server requires authentication but names no authorization server (neither WWW-Authenticate nor metadata), "+
		"and is not one itself; send a token in the header Authorization instead: ")
}
