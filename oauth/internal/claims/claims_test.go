package claims_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/internal/claims"
)

var now = time.Unix(1_790_000_000, 0)

// check has the requirements of these tests.
func check() *claims.Check {
	return &claims.Check{Issuer: "https://as", NeedIssuer: true, Audience: []string{"https://rs/mcp", "rs"}, NeedExpiry: true, Leeway: 30 * time.Second}
}

type object = map[string]any

// good returns valid claims with changes. A nil value removes a claim.
func good(change object) object {
	all := object{"iss": "https://as", "aud": "rs", "sub": "ann", "exp": 1_790_000_100.0}
	for name, v := range change {
		if all[name] = v; v == nil {
			delete(all, name)
		}
	}
	return all
}

func TestInvalidClaimsAreRejected(t *testing.T) {
	const (
		issuer   = "it is of another issuer"
		audience = "it is for another audience"
	)
	for _, test := range []struct {
		name   string
		change object
		reason string
	}{
		{"no issuer", object{"iss": nil}, issuer},
		{"another issuer", object{"iss": "https://AS"}, issuer},
		{"an issuer with a slash more", object{"iss": "https://as/"}, issuer},
		{"issuers in a list", object{"iss": []any{"https://as"}}, issuer},
		{"no audience", object{"aud": nil}, audience},
		{"an empty audience", object{"aud": ""}, audience},
		{"an empty list of audiences", object{"aud": []any{}}, audience},
		{"an audience that begins alike", object{"aud": "https://rs"}, audience},
		{"an audience that goes on", object{"aud": "https://rs/mcp/"}, audience},
		{"an audience in another case", object{"aud": "RS"}, audience},
		{"audiences in one text", object{"aud": "rs other"}, audience},
		{"an audience in an object", object{"aud": object{"rs": true}}, audience},
		{"an audience in a list in a list", object{"aud": []any{[]any{"rs"}}}, audience},
		{"no expiry", object{"exp": nil}, "it has no expiry"},
		{"expired", object{"exp": 1_789_999_970.0}, "it has expired"},
		{"expiry in text", object{"exp": "1790000100"}, "exp is not a time"},
		{"expiry not a number", object{"exp": math.NaN()}, "exp is not a time"},
		{"expiry without end", object{"exp": math.Inf(1)}, "exp is not a time"},
		{"expiry in milliseconds of a far year", object{"exp": 1e13}, "exp is not a time"},
		{"expiry before all times", object{"exp": -1e13}, "exp is not a time"},
		{"expiry null", object{"exp": any(nil), "x": 1}, "it has no expiry"},
		{"not valid yet", object{"nbf": 1_790_000_031.0}, "it is not valid yet"},
		{"not before in text", object{"nbf": "0"}, "nbf is not a time"},
		{"issued in the future", object{"iat": 1_790_000_031.0}, "it is not valid yet"},
		{"issued at no time", object{"iat": true}, "iat is not a time"},
		{"nobody", object{"sub": nil}, "it has no subject"},
		{"nobody, in text", object{"sub": "", "client_id": ""}, "it has no subject"},
		{"a subject that is no text is not its client", object{"sub": 5.0, "client_id": "app"}, "sub is not a valid name"},
		{"a subject in a list", object{"sub": []any{"ann"}, "client_id": "app"}, "sub is not a valid name"},
		{"a subject that holds what separates names", object{"sub": "ann\x00app"}, "sub is not a valid name"},
		{"a subject of two lines", object{"sub": "ann\nlevel=ERROR"}, "sub is not a valid name"},
		{"a client that is no text", object{"client_id": object{}}, "client_id is not a valid name"},
		{"an authorized party that is no text", object{"azp": 1.0}, "azp is not a valid name"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := check().Verify(good(test.change), now)
			require.Nil(t, p)
			require.Equal(t, &oauth.TokenError{Reason: test.reason}, err)
		})
	}
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
		{"one of the audiences", object{"aud": []any{"x", 1.0, "https://rs/mcp"}}, oauth.Principal{Subject: "ann", Expires: expires}},
		{"scopes", object{"scope": " a  b\tc "}, oauth.Principal{Subject: "ann", Scopes: []string{"a", "b", "c"}, Expires: expires}},
		{"scopes in a list", object{"scp": []any{"a", 1.0, "b c"}}, oauth.Principal{Subject: "ann", Scopes: []string{"a", "b c"}, Expires: expires}},
		{"scope before scp", object{"scope": "", "scp": "admin"}, oauth.Principal{Subject: "ann", Scopes: []string{}, Expires: expires}},
		{"scope of no kind", object{"scope": 1.0, "scp": "admin"}, oauth.Principal{Subject: "ann", Expires: expires}},
		{"expired within the leeway", object{"exp": 1_789_999_970.5}, oauth.Principal{Subject: "ann", Expires: time.Unix(1_790_000_000, 5e8)}},
		{"valid soon", object{"nbf": 1_790_000_030.0, "iat": 1_790_000_030.0}, oauth.Principal{Subject: "ann", Expires: expires}},
	} {
		t.Run(test.name, func(t *testing.T) {
			all := good(test.change)
			p, err := check().Verify(all, now)
			require.NoError(t, err)
			test.want.Issuer, test.want.Claims = "https://as", all
			require.Equal(t, &test.want, p)
		})
	}
}

func TestOptionalClaimsAreChecked(t *testing.T) {
	c := &claims.Check{Issuer: "https://as", Audience: []string{"rs"}}
	p, err := c.Verify(object{"aud": "rs", "sub": "ann"}, now)
	require.NoError(t, err)
	require.Equal(t, "https://as", p.Issuer)
	require.True(t, p.Expires.IsZero())
	_, err = c.Verify(object{"aud": "rs", "sub": "ann", "iss": "https://other"}, now)
	require.EqualError(t, err, "oauth: the token is rejected: it is of another issuer")
	_, err = c.Verify(object{"aud": "rs", "sub": "ann", "exp": float64(now.Unix())}, now)
	require.EqualError(t, err, "oauth: the token is rejected: it has expired")
}

// FuzzVerify checks that accepted claims fulfil the requirements.
func FuzzVerify(f *testing.F) {
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
		var all object
		if jsonx.Unmarshal(raw, &all) != nil {
			return
		}
		p, err := check().Verify(all, now)
		if err != nil {
			require.IsType(t, &oauth.TokenError{}, err)
			return
		}
		require.Equal(t, "https://as", all["iss"])
		require.NotEmpty(t, p.Subject)
		require.NotContains(t, p.Subject+p.ClientID, "\x00")
		require.True(t, now.Before(p.Expires))
		for _, scope := range p.Scopes {
			if _, ok := all["scope"].(string); ok {
				require.Len(t, strings.Fields(scope), 1)
			}
		}
	})
}
