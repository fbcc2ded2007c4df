package resource

import (
	"crypto/elliptic"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth"
)

// asker returns a verifier that asks a server with this handler, and a clock that the test
// moves.
func asker(t *testing.T, handler http.HandlerFunc, change func(*Options)) (oauth.Verifier, *time.Time) {
	t.Helper()
	server := httptest.NewServer(handler)
	now := start
	opts := &Options{Issuer: "https://as", Resource: resource, Introspection: &Introspection{Endpoint: server.URL + "/introspect"}, InsecureLoopback: true,
		now: func() time.Time { return now }}
	if change != nil {
		change(opts)
	}
	v, err := newVerifier(opts)
	require.NoError(t, err)
	t.Cleanup(func() { v.(*cache).next.(*introspector).client.CloseIdleConnections(); server.Close() })
	return v, &now
}

func say(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

const active = `{"active":true,"aud":"` + resource + `","sub":"ann","client_id":"app","scope":"a b","exp":1790003600}`

func TestIntrospectionRequestFormat(t *testing.T) {
	var got *http.Request
	var form url.Values
	v, _ := asker(t, func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		got, form = r, r.PostForm
		say(200, active)(w, r)
	}, func(o *Options) { o.Introspection.ClientID, o.Introspection.ClientSecret = "rs one", "s:e&c%ret" })
	p, err := v.Verify(t.Context(), "to+k/en==")
	require.NoError(t, err)
	require.Equal(t, "https://as", p.Issuer)
	require.Equal(t, "ann", p.Subject)
	require.Equal(t, "app", p.ClientID)
	require.Equal(t, []string{"a", "b"}, p.Scopes)
	require.Equal(t, time.Unix(1790003600, 0).Add(leeway), p.Expires)
	require.Equal(t, http.MethodPost, got.Method)
	require.Equal(t, "/introspect", got.RequestURI, "the URL contains no secret")
	require.Equal(t, "application/x-www-form-urlencoded", got.Header.Get("Content-Type"))
	require.Equal(t, "application/json", got.Header.Get("Accept"))
	require.Equal(t, url.Values{"token": {"to+k/en=="}, "token_type_hint": {"access_token"}}, form)
	id, secret, ok := got.BasicAuth()
	require.True(t, ok)
	require.Equal(t, "rs+one", id)
	require.Equal(t, "s%3Ae%26c%25ret", secret)
}

func TestIntrospectionResponses(t *testing.T) {
	const unknown = "introspection: "
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
		err     string // the error text
		bad     bool   // the token is rejected; otherwise the check failed
	}{
		{"not active", say(200, `{"active":false}`), "oauth: the token is rejected: it is not active", true},
		{"not active, whatever else", say(200, `{"active":false,"aud":"`+resource+`","sub":"ann"}`), "oauth: the token is rejected: it is not active", true},
		{"nothing", say(200, `{}`), "oauth: the token is rejected: it is not active", true},
		{"null", say(200, `null`), "oauth: the token is rejected: it is not active", true},
		{"active in text", say(200, strings.Replace(active, "true", `"true"`, 1)), "oauth: the token is rejected: it is not active", true},
		{"active as a number", say(200, strings.Replace(active, "true", "1", 1)), "oauth: the token is rejected: it is not active", true},
		{"active in another case", say(200, strings.Replace(active, "active", "Active", 1)), "oauth: the token is rejected: it is not active", true},
		{"another audience", say(200, strings.Replace(active, resource, "https://other", 1)), "oauth: the token is rejected: it is for another audience", true},
		{"no audience", say(200, `{"active":true,"sub":"ann"}`), "oauth: the token is rejected: it is for another audience", true},
		{"another issuer", say(200, `{"active":true,"aud":"`+resource+`","sub":"ann","iss":"https://other"}`), "oauth: the token is rejected: it is of another issuer", true},
		{"expired", say(200, strings.Replace(active, "1790003600", "1789999000", 1)), "oauth: the token is rejected: it has expired", true},
		{"nobody", say(200, `{"active":true,"aud":"`+resource+`"}`), "oauth: the token is rejected: it has no subject", true},

		{"active twice", say(200, `{"active":false,"active":true}`), unknown + "the response is not the expected JSON", false},
		{"a list", say(200, `[]`), unknown + "the response is not the expected JSON", false},
		{"no right to ask", say(401, `{"error":"invalid_client"}`), unknown + "answered by status 401", false},
		{"a fault", say(500, active), unknown + "answered by status 500", false},
		{"a page", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, active)
		}, unknown + `answered by "text/html", not application/json`, false},
		{"too much", say(200, `{"active":true,"x":"`+strings.Repeat("x", 2<<20)+`"}`), unknown + "the response is larger than 1048576 bytes", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			v, _ := asker(t, test.handler, nil)
			p, err := v.Verify(t.Context(), "hush-hush")
			require.Nil(t, p)
			require.EqualError(t, err, test.err)
			var bad *oauth.TokenError
			require.Equal(t, test.bad, errors.As(err, &bad))
		})
	}
}

func TestIntrospectionDoesNotFollowRedirects(t *testing.T) {
	var asked atomic.Int32
	v, _ := asker(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}, nil)
	_, err := v.Verify(t.Context(), "hush-hush")
	require.EqualError(t, err, "introspection: answered by status 307")
	require.EqualValues(t, 1, asked.Load())
}

func TestCustomClientDoesNotFollowRedirects(t *testing.T) {
	var asked atomic.Int32
	own := &http.Client{Transport: &http.Transport{}}
	v, _ := asker(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}, func(o *Options) { o.Client = own })
	_, err := v.Verify(t.Context(), "hush-hush")
	require.EqualError(t, err, "introspection: answered by status 307")
	require.EqualValues(t, 1, asked.Load())
	require.Nil(t, own.CheckRedirect, "the client of the program is unchanged")
}

func TestActiveTokensAreCached(t *testing.T) {
	var mu sync.Mutex
	var asked int
	answer := active
	v, now := asker(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		say(200, answer)(w, r)
	}, nil)
	for range 3 {
		_, err := v.Verify(t.Context(), "x")
		require.NoError(t, err)
	}
	require.Equal(t, 1, asked)
	mu.Lock()
	answer = `{"active":false}`
	mu.Unlock()
	*now = now.Add(cacheTime - 1)
	_, err := v.Verify(t.Context(), "x")
	require.NoError(t, err)
	*now = now.Add(1)
	for range 2 {
		_, err = v.Verify(t.Context(), "x")
		require.EqualError(t, err, "oauth: the token is rejected: it is not active", "revoked")
		*now = now.Add(refusalTime)
	}
	require.Equal(t, 3, asked, "inactive tokens are checked again")
}

func TestMistakesInIntrospection(t *testing.T) {
	for endpoint, want := range map[string]string{
		"http://as/introspect":        `Introspection.Endpoint: "http://as/introspect" is not encrypted; use https`,
		"https://10.0.0.1/introspect": "Introspection.Endpoint: the address 10.0.0.1 is not public",
		"https://rs:hush@as/":         `Introspection.Endpoint: "https://as/" has a user name; it must have none`,
	} {
		_, err := newVerifier(&Options{Issuer: "https://as", Introspection: &Introspection{Endpoint: endpoint}})
		require.EqualError(t, err, want)
	}
	_, err := newVerifier(&Options{Issuer: "https://as", OtherIssuers: []string{"https://b"}, Introspection: &Introspection{Endpoint: "https://as/"}})
	require.EqualError(t, err, "OtherIssuers does not go with Introspection, which asks only Issuer")
}

// TestErrorsContainNoSecrets makes verifiers fail in every way and searches the errors for secrets.
func TestErrorsContainNoSecrets(t *testing.T) {
	key := newEC(t, elliptic.P256())
	s := newIssuer(t, jwk(key, "1"))
	var log lines
	const secret, token = "client-secret-hush", "opaque-token-hush"
	for _, endpoint := range []string{"/nowhere", "/keys", "/.well-known/oauth-authorization-server"} {
		v, err := newIntrospector(&Options{Issuer: s.url, Resource: resource, InsecureLoopback: true,
			Introspection: &Introspection{Endpoint: s.url + endpoint + "?api_key=" + secret, ClientID: "rs", ClientSecret: secret}})
		require.NoError(t, err)
		_, err = v.Verify(t.Context(), token)
		require.Error(t, err)
		_, _ = log.Write([]byte(err.Error()))
		v.client.CloseIdleConnections()
	}
	for _, path := range []string{"/nowhere", "/.well-known/oauth-authorization-server"} {
		v := s.verifier(func(o *Options) { o.JWKSURI, o.Logger = s.url+path+"?api_key="+secret, logTo(&log) })
		_, err := v.Verify(t.Context(), s.token("ES256", key, "1"))
		require.Error(t, err)
		v.wait()
		_, _ = log.Write([]byte(err.Error()))
	}
	require.Contains(t, log.String(), "/nowhere")
	require.NotContains(t, log.String(), "hush")
}
