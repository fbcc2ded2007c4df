package resource

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth"
)

const active = `{"active":true,"aud":"` + resource + `","sub":"ann","client_id":"app","scope":"a b"}`

// An endpoint introspects tokens without a network.
type endpoint struct {
	answer func(w http.ResponseWriter, token string)

	mu        sync.Mutex
	asked     map[string]int
	now, most int           // current requests, and their maximum
	hold      chan struct{} // requests wait until it is closed; may be nil
	last      *http.Request
	form      url.Values // of the last request
}

// say returns a response for every token.
func say(status int, contentType, body string) func(http.ResponseWriter, string) {
	return func(w http.ResponseWriter, _ string) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// judge says that tokens that begin with "good" are active.
func judge(w http.ResponseWriter, token string) {
	body := `{"active":false}`
	if strings.HasPrefix(token, "good") {
		body = active
	}
	say(http.StatusOK, "application/json", body)(w, token)
}

// RoundTrip implements http.RoundTripper.
func (e *endpoint) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	if e.asked == nil {
		e.asked = make(map[string]int)
	}
	e.asked[form.Get("token")]++
	e.last, e.form = r, form
	e.now++
	e.most = max(e.most, e.now)
	hold := e.hold
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.now--
	}()
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	w := httptest.NewRecorder()
	e.answer(w, form.Get("token"))
	return w.Result(), nil
}

func (e *endpoint) count() (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, times := range e.asked {
		n += times
	}
	return n
}

func (e *endpoint) verifier(t *testing.T) oauth.Verifier {
	v, err := newVerifier(&Options{Issuer: issuerURL, Resource: resource, Client: &http.Client{Transport: e},
		Introspection: &Introspection{Endpoint: issuerURL + "/introspect?api_key=hush", ClientID: "rs one", ClientSecret: "s:e&c%ret"}})
	require.NoError(t, err)
	return v
}

func TestIntrospectionRequestFormat(t *testing.T) {
	e := &endpoint{answer: say(http.StatusOK, "application/json", active)}
	p, err := e.verifier(t).Verify(t.Context(), "to+k/en==")
	require.NoError(t, err)
	require.Equal(t, []string{issuerURL, "ann", "app"}, []string{p.Issuer, p.Subject, p.ClientID})
	require.Equal(t, []string{"a", "b"}, p.Scopes)
	require.Equal(t, http.MethodPost, e.last.Method)
	require.Equal(t, "/introspect?api_key=hush", e.last.URL.RequestURI(), "the URL contains no token")
	require.Equal(t, "application/x-www-form-urlencoded", e.last.Header.Get("Content-Type"))
	require.Equal(t, "application/json", e.last.Header.Get("Accept"))
	require.Equal(t, url.Values{"token": {"to+k/en=="}, "token_type_hint": {"access_token"}}, e.form)
	id, secret, ok := e.last.BasicAuth()
	require.True(t, ok)
	require.Equal(t, "rs+one", id)
	require.Equal(t, "s%3Ae%26c%25ret", secret)
}

func TestIntrospectionResponses(t *testing.T) {
	const rejected = "oauth: the token is rejected: "
	const failed = "introspection: "
	with := func(members string) string { return strings.TrimSuffix(active, "}") + members + "}" }
	for _, test := range []struct {
		body string
		err  string
	}{
		{with(``), ""},
		{with(`,"token_type":"Bearer"`), ""},
		{with(`,"token_type":"bearer"`), ""},
		{with(`,"token_type":"access_token"`), ""}, // as in some servers
		{with(`,"token_type":"DPoP","cnf":{"jkt":"x"}`), ""},
		{with(`,"token_use":"access_token","token_type":"Bearer"`), ""},
		{with(`,"token_use":"access"`), ""}, // Cognito
		{with(`,"token_type":"refresh_token"`), rejected + "it is not an access token"},
		{with(`,"token_type":"Refresh"`), rejected + "it is not an access token"},
		{with(`,"token_type":"N_A"`), rejected + "it is not an access token"},
		{with(`,"token_type":1`), rejected + "it is not an access token"},
		{with(`,"token_type":null`), rejected + "it is not an access token"},
		{with(`,"token_use":"refresh_token","token_type":"Bearer"`), rejected + "it is not an access token"},
		{with(`,"token_use":"id"`), rejected + "it is not an access token"},
		{with(`,"token_type":"DPoP"`), rejected + "it is bound to a key that the authorization server does not name"},
		{with(`,"token_type":"DPoP","cnf":{}`), rejected + "it is bound to a key that the authorization server does not name"},
		{with(`,"iss":"https://other"`), rejected + "it is of another issuer"},
		{with(`,"exp":1`), rejected + "it has expired"},

		{`{"active":false,"aud":"` + resource + `","sub":"ann"}`, rejected + "it is not active"},
		{`{}`, rejected + "it is not active"},
		{`null`, rejected + "it is not active"},
		{strings.Replace(active, "true", `"true"`, 1), rejected + "it is not active"},
		{strings.Replace(active, "true", "1", 1), rejected + "it is not active"},
		{strings.Replace(active, "active", "Active", 1), rejected + "it is not active"},
		{`{"active":true,"sub":"ann"}`, rejected + "it is for another audience"},
		{`{"active":true,"aud":"` + resource + `"}`, rejected + "it has no subject"},

		{`{"active":false,"active":true}`, failed + "the response is not the expected JSON"},
		{`[]`, failed + "the response is not the expected JSON"},
		{`{"active":true,"x":"` + strings.Repeat("x", 2<<20) + `"}`, failed + "the response is larger than 1048576 bytes"},
	} {
		t.Run(fmt.Sprintf("%.100s", test.body), func(t *testing.T) {
			e := &endpoint{answer: say(http.StatusOK, "application/json", test.body)}
			p, err := e.verifier(t).Verify(t.Context(), "hush-hush")
			if test.err == "" {
				require.NoError(t, err)
				return
			}
			require.Nil(t, p)
			require.EqualError(t, err, test.err)
			require.Equal(t, strings.HasPrefix(test.err, rejected), errors.As(err, new(*oauth.TokenError)))
			require.NotContains(t, err.Error(), "hush")
		})
	}
	for _, test := range []struct {
		status      int
		contentType string
		err         string
	}{
		{http.StatusUnauthorized, "application/json", "answered by status 401"},
		{http.StatusInternalServerError, "application/json", "answered by status 500"},
		{http.StatusTemporaryRedirect, "application/json", "answered by status 307"},
		{http.StatusOK, "text/html", `answered by "text/html", not application/json`},
	} {
		answer := say(test.status, test.contentType, active)
		e := &endpoint{answer: func(w http.ResponseWriter, token string) {
			w.Header().Set("Location", issuerURL+"/elsewhere")
			answer(w, token)
		}}
		_, err := e.verifier(t).Verify(t.Context(), "hush-hush")
		require.EqualError(t, err, failed+test.err)
		require.Equal(t, 1, e.count(), "redirects are not followed")
	}
}

func TestIntrospectedTokensAreCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{answer: judge}
		v := e.verifier(t)
		for range 3 {
			require.NoError(t, verify(t, v, "good"))
			require.Equal(t, refused("it is not active"), verify(t, v, "bad"))
		}
		require.Equal(t, map[string]int{"good": 1, "bad": 1}, e.asked)
		time.Sleep(refusalTime)
		require.Equal(t, refused("it is not active"), verify(t, v, "bad"))
		require.Equal(t, 2, e.asked["bad"], "rejected tokens are checked again soon")
		for i := range cacheSize {
			require.Error(t, verify(t, v, fmt.Sprint("made-up-", i)))
		}
		require.NoError(t, verify(t, v, "good"))
		require.Equal(t, 1, e.asked["good"], "rejected tokens do not evict accepted ones")

		e.answer = say(http.StatusOK, "application/json", `{"active":false}`)
		time.Sleep(cacheTime - refusalTime - 1)
		require.NoError(t, verify(t, v, "good"))
		time.Sleep(time.Nanosecond)
		require.Equal(t, refused("it is not active"), verify(t, v, "good"), "revoked")
	})
}

func TestConcurrentIntrospectionsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{answer: judge, hold: make(chan struct{})}
		v := e.verifier(t)
		errs := make(chan error, 100)
		for i := range cap(errs) {
			// Ends with the response.
			go func() {
				_, err := v.Verify(t.Context(), fmt.Sprint("made-up-", i))
				errs <- err
			}()
		}
		synctest.Wait()
		require.LessOrEqual(t, e.count(), 16)
		close(e.hold)
		for range cap(errs) {
			require.Equal(t, refused("it is not active"), <-errs)
		}
		require.Equal(t, cap(errs), e.count())
		require.LessOrEqual(t, e.most, 16)

		e.hold = make(chan struct{})
		began := time.Now()
		require.EqualError(t, verify(t, v, "good"), "introspection: context deadline exceeded")
		require.Equal(t, fetchTimeout, time.Since(began), "waiting is limited")
	})
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
