package resource_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
)

func TestPolicies(t *testing.T) {
	for _, test := range []struct {
		name   string
		policy resource.Policy
		p      oauth.Principal
		err    string // the error text, or empty
	}{
		{"a claim", resource.RequireClaim("c"), oauth.Principal{Claims: claims{"c": nil}}, ""},
		{"no claim", resource.RequireClaim("c"), oauth.Principal{Claims: claims{"C": 1}}, `the claim "c" is missing`},
		{"one of its values", resource.RequireClaim("c", "a", 2.0, true), oauth.Principal{Claims: claims{"c": 2.0}}, ""},
		{"one of its values in a list", resource.RequireClaim("c", "a"), oauth.Principal{Claims: claims{"c": []any{"b", "a"}}}, ""},
		{"none of its values", resource.RequireClaim("c", "a", true), oauth.Principal{Claims: claims{"c": "true"}}, `the claim "c" has none of the values [a true]`},
		{"values that cannot be compared", resource.RequireClaim("c", "a"), oauth.Principal{Claims: claims{"c": []any{[]any{"a"}, claims{}}}}, `the claim "c" has none of the values [a]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.policy(t.Context(), &test.p)
			if test.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, test.err)
			}
		})
	}
}

func TestPoliciesStopAtTheFirstRejection(t *testing.T) {
	m := newMatrix(t)
	var asked []string
	say := func(name string, err error) resource.Policy {
		return func(_ context.Context, p *oauth.Principal) error {
			require.Equal(t, "ann", p.Subject)
			asked = append(asked, name)
			return err
		}
	}
	h := m.guard(func(o *resource.Options) {
		o.Policies = []resource.Policy{say("first", nil), say("second", errors.New("the reason is for the log")), say("third", nil)}
	})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, bearer(m.good))
	require.Equal(t, http.StatusForbidden, w.Code)
	require.NotContains(t, w.Body.String(), "for the log")
	require.Contains(t, m.log.String(), "the reason is for the log")
	require.Equal(t, []string{"first", "second"}, asked)
}

// FuzzAuthorization checks that only the valid token is accepted, and that every response is valid.
func FuzzAuthorization(f *testing.F) {
	g, err := resource.New(resource.Options{Issuer: issuer, Resource: endpoint, Verifier: verifierFunc(func(token string) (*oauth.Principal, error) {
		if token != "good" {
			return nil, &oauth.TokenError{Reason: "it is not good"}
		}
		return &oauth.Principal{Subject: "ann"}, nil
	})})
	require.NoError(f, err)
	entered := false
	h := g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { entered = true }))
	for _, seed := range []string{"Bearer good", "bearer good", "Bearer  good", "Bearer good ", "Bearer bad", "Bearer", "Bearer ", "good", "Basic good", "Bearer good,good", "DPoP good", "Bearer =", "Bearer \xff", "Bearer\tgood"} {
		f.Add(seed, "")
	}
	f.Add("Bearer good", "access_token=good")
	f.Add("Bearer good", "a=%zz&access%5ftoken")
	f.Add("Bearer good", "a;access_token=good")
	f.Fuzz(func(t *testing.T, field, query string) {
		entered = false
		w := httptest.NewRecorder()
		h.ServeHTTP(w, withQuery(ask("Authorization", field), query))
		if entered {
			require.Regexp(t, `^(?i:bearer) +good$`, field)
			return
		}
		require.Contains(t, []int{http.StatusBadRequest, http.StatusUnauthorized}, w.Code)
		list, err := metadata.ParseChallenges(w.Header()["Www-Authenticate"])
		require.NoError(t, err)
		require.Len(t, list, 1)
	})
}
