// Package claims reads what is said of a token: the claims of a JWT, or the answer of an introspection endpoint.
package claims

import (
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/mcpkit/mcpkit-go/oauth"
)

// A Check is what claims are held to.
type Check struct {
	Issuer     string   // that iss must say
	NeedIssuer bool     // whether iss must be there
	Audience   []string // of which aud must name one
	NeedExpiry bool
	Leeway     time.Duration
}

func refuse(reason string) error { return &oauth.TokenError{Reason: reason} }

// Verify holds claims to a check and makes a principal of them. The error is an [*oauth.TokenError].
func (c *Check) Verify(claims map[string]any, now time.Time) (*oauth.Principal, error) {
	if iss, ok := claims["iss"]; (ok || c.NeedIssuer) && iss != c.Issuer {
		return nil, refuse("it is of another issuer")
	}
	audience := Words(claims["aud"], false)
	if !slices.ContainsFunc(audience, func(a string) bool { return slices.Contains(c.Audience, a) }) {
		return nil, refuse("it is for another audience")
	}
	expires, err := c.times(claims, now)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"sub", "client_id", "azp"} {
		// Who is somebody else than it says must not become its client, nor two of them one.
		if v := claims[name]; v != nil && !isName(v) {
			return nil, refuse(name + " is no name")
		}
	}
	p := &oauth.Principal{
		Issuer:   c.Issuer,
		Subject:  text(claims, "sub"),
		ClientID: text(claims, "client_id", "azp"),
		Scopes:   Scopes(claims),
		Expires:  expires,
		Claims:   claims,
	}
	if p.Subject == "" {
		p.Subject = p.ClientID // a client that acts for itself
	}
	if p.Subject == "" {
		return nil, refuse("it says nobody is its subject")
	}
	return p, nil
}

// isName reports whether v can name somebody: text without control characters.
func isName(v any) bool {
	s, ok := v.(string)
	return ok && !strings.ContainsFunc(s, unicode.IsControl)
}

func (c *Check) times(claims map[string]any, now time.Time) (expires time.Time, err error) {
	for _, name := range []string{"exp", "nbf", "iat"} {
		v, ok := claims[name]
		if !ok {
			if name == "exp" && c.NeedExpiry {
				return expires, refuse("it has no expiry")
			}
			continue
		}
		t, ok := Date(v)
		switch {
		case !ok:
			return expires, refuse(name + " is no time")
		case name == "exp":
			if expires = t; !now.Before(t.Add(c.Leeway)) {
				return expires, refuse("it has expired")
			}
		case now.Add(c.Leeway).Before(t):
			return expires, refuse("it is not valid yet")
		}
	}
	return expires, nil
}

// Date reads a NumericDate (RFC 7519, section 2), which may have a fraction. It reports false for anything else.
func Date(v any) (time.Time, bool) {
	f, ok := v.(float64)
	if !ok || !(math.Abs(f) < 1<<40) {
		return time.Time{}, false
	}
	whole, part := math.Modf(f)
	return time.Unix(int64(whole), int64(part*1e9)), true
}

// Scopes are the words of scope (RFC 9068, section 2.2.3), or of scp, as some servers call it.
func Scopes(claims map[string]any) []string {
	for _, name := range []string{"scope", "scp"} {
		if v, ok := claims[name]; ok {
			return Words(v, true)
		}
	}
	return nil
}

// Words are the strings of a list, or of a single string: split at blanks if they are words, else as it is.
func Words(v any, split bool) []string {
	switch v := v.(type) {
	case string:
		if split {
			return strings.Fields(v)
		}
		return []string{v}
	case []any:
		var list []string
		for _, item := range v {
			if s, ok := item.(string); ok {
				list = append(list, s)
			}
		}
		return list
	}
	return nil
}

func text(claims map[string]any, names ...string) string {
	for _, name := range names {
		if s, ok := claims[name].(string); ok && s != "" {
			return s
		}
	}
	return ""
}
