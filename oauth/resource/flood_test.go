package resource

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth"
)

// An endpoint introspects tokens without a network. Tokens that begin with "good" are active.
type endpoint struct {
	mu        sync.Mutex
	asked     map[string]int
	now, most int           // current requests, and their maximum
	hold      chan struct{} // requests wait until it is closed; may be nil
	extra     string        // further members of the response
}

func (e *endpoint) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	token := form.Get("token")
	e.mu.Lock()
	if e.asked == nil {
		e.asked = make(map[string]int)
	}
	e.asked[token]++
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
	answer := `{"active":false}`
	if strings.HasPrefix(token, "good") {
		answer = `{"active":true,"aud":"` + resource + `","sub":"ann"` + e.extra + `}`
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answer))}, nil
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
	v, err := newVerifier(&Options{Issuer: issuerURL, Resource: resource, Introspection: &Introspection{Endpoint: issuerURL + "/introspect"},
		Client: &http.Client{Transport: e}, now: time.Now})
	require.NoError(t, err)
	return v
}

func TestConcurrentIntrospectionsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{hold: make(chan struct{})}
		v := e.verifier(t)
		errs := make(chan error, maxQuestions+76)
		for i := range cap(errs) {
			// Ends with the response.
			go func() {
				_, err := v.Verify(t.Context(), fmt.Sprint("made-up-", i))
				errs <- err
			}()
		}
		synctest.Wait()
		require.LessOrEqual(t, e.count(), 16)
		for range 76 {
			require.EqualError(t, <-errs, "introspection: too many tokens at once; try again later")
		}
		close(e.hold)
		for range maxQuestions {
			require.EqualError(t, <-errs, "oauth: the token is rejected: it is not active")
		}
		require.Equal(t, maxQuestions, e.count())
		require.LessOrEqual(t, e.most, 16)
	})
}

func TestRejectedTokensAreCachedBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{}
		v := e.verifier(t)
		ask := func(token string) error {
			_, err := v.Verify(t.Context(), token)
			return err
		}
		for range 10 {
			require.EqualError(t, ask("bad"), "oauth: the token is rejected: it is not active")
		}
		require.Equal(t, 1, e.count())
		time.Sleep(10 * time.Second)
		require.EqualError(t, ask("bad"), "oauth: the token is rejected: it is not active")
		require.Equal(t, 2, e.count(), "inactive tokens are checked again")
	})
}

func TestRejectedTokensDoNotEvictAcceptedOnes(t *testing.T) {
	e := &endpoint{}
	v := e.verifier(t)
	for i := range 2 {
		_, err := v.Verify(t.Context(), "good")
		require.NoError(t, err)
		for j := range cacheSize {
			_, err = v.Verify(t.Context(), fmt.Sprint("made-up-", i, "-", j))
			require.Error(t, err)
		}
	}
	_, err := v.Verify(t.Context(), "good")
	require.NoError(t, err)
	require.Equal(t, 1, e.asked["good"])
}

func TestIntrospectionAcceptsAccessTokensOnly(t *testing.T) {
	for _, test := range []struct{ extra, err string }{
		{``, ""},
		{`,"token_type":"Bearer"`, ""},
		{`,"token_type":"bearer"`, ""},
		{`,"token_type":"access_token"`, ""}, // as in some servers
		{`,"token_type":"DPoP","cnf":{"jkt":"x"}`, ""},
		{`,"token_use":"access_token","token_type":"Bearer"`, ""},
		{`,"token_use":"access"`, ""}, // Cognito
		{`,"token_type":"refresh_token"`, "it is not an access token"},
		{`,"token_type":"Refresh"`, "it is not an access token"},
		{`,"token_type":"N_A"`, "it is not an access token"},
		{`,"token_type":1`, "it is not an access token"},
		{`,"token_type":null`, "it is not an access token"},
		{`,"token_use":"refresh_token","token_type":"Bearer"`, "it is not an access token"},
		{`,"token_use":"id"`, "it is not an access token"},
		{`,"token_type":"DPoP"`, "it is bound to a key that the authorization server does not name"},
		{`,"token_type":"DPoP","cnf":{}`, "it is bound to a key that the authorization server does not name"},
	} {
		t.Run(test.extra, func(t *testing.T) {
			_, err := (&endpoint{extra: test.extra}).verifier(t).Verify(t.Context(), "good")
			if test.err == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, "oauth: the token is rejected: "+test.err)
		})
	}
}
