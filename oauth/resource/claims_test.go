package resource

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth"
)

// check checks claims for an issuer with two names of the resource.
func check(payload []byte) (*oauth.Principal, error) {
	c, err := parseClaims(payload)
	if err != nil {
		return nil, err
	}
	return c.principal("https://as", []string{"https://rs/mcp", "rs"}, time.Unix(1_790_000_000, 0))
}

func TestValidClaimsAreAccepted(t *testing.T) {
	expires := time.Unix(1_790_000_130, 0) // with the leeway
	for _, test := range []struct {
		name   string
		change object
		want   oauth.Principal // without its claims
	}{
		{"a user", nil, oauth.Principal{Subject: "ann", Expires: expires}},
		{"a user by a client", object{"client_id": "app", "azp": "other"}, oauth.Principal{Subject: "ann", ClientID: "app", Expires: expires}},
		{"a user by an authorized party", object{"azp": "app"}, oauth.Principal{Subject: "ann", ClientID: "app", Expires: expires}},
		{"a client for itself", object{"sub": nil, "client_id": "app"}, oauth.Principal{Subject: "app", ClientID: "app", Expires: expires}},
		{"one of the audiences", object{"aud": []any{"x", "https://rs/mcp"}}, oauth.Principal{Subject: "ann", Expires: expires}},
		{"scopes", object{"scope": " a  b\tc "}, oauth.Principal{Subject: "ann", Scopes: []string{"a", "b", "c"}, Expires: expires}},
		{"scopes in a list", object{"scp": []any{"a", 1.0, "b c"}}, oauth.Principal{Subject: "ann", Scopes: []string{"a", "b c"}, Expires: expires}},
		{"scope before scp", object{"scope": "", "scp": "admin"}, oauth.Principal{Subject: "ann", Scopes: []string{}, Expires: expires}},
		{"scope of no kind", object{"scope": 1.0, "scp": "admin"}, oauth.Principal{Subject: "ann", Expires: expires}},
		{"expired within the leeway", object{"exp": 1_789_999_970.5}, oauth.Principal{Subject: "ann", Expires: time.Unix(1_790_000_000, 0)}},
		{"valid soon", object{"nbf": 1_790_000_030.0, "iat": 1_790_000_030.0}, oauth.Principal{Subject: "ann", Expires: expires}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := check([]byte(changed(t, object{"iss": "https://as", "aud": "rs", "sub": "ann", "exp": 1_790_000_100.0}, test.change)))
			require.NoError(t, err)
			require.Equal(t, "https://as", p.Claims["iss"])
			test.want.Issuer, test.want.Claims = "https://as", p.Claims
			require.Equal(t, &test.want, p)
		})
	}
}

// FuzzClaims checks that accepted claims fulfil the requirements.
func FuzzClaims(f *testing.F) {
	for _, seed := range []string{
		`{"iss":"https://as","aud":"rs","sub":"ann","exp":1790000100}`,
		`{"iss":"https://as","aud":["rs"],"client_id":"app","exp":1.7900001e9,"scope":"a b","nbf":0}`,
		`{"iss":"https://as","aud":"rs","sub":5,"azp":"x","exp":1e400}`,
		`{"iss":"https://as","aud":"rs","sub":"a\u0000b","exp":-0}`,
		`{"iss":null,"aud":{},"exp":"x"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := check(raw)
		if err != nil {
			require.IsType(t, &oauth.TokenError{}, err)
			return
		}
		require.Equal(t, "https://as", p.Claims["iss"])
		require.NotEmpty(t, p.Subject)
		require.NotContains(t, p.Subject+p.ClientID, "\x00")
		require.True(t, p.Expires.IsZero() || p.Expires.Unix() >= 1_790_000_000)
		for _, scope := range p.Scopes {
			if _, ok := p.Claims["scope"].(string); ok {
				require.Len(t, strings.Fields(scope), 1)
			}
		}
	})
}
