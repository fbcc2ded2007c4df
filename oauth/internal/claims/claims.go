// Package claims validates the claims of a JWT or of an introspection response.
package claims

import (
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/mcpkit/mcpkit-go/oauth"
)

// A Check lists the requirements for claims.
type Check struct {
	Issuer     string   // the required iss
	NeedIssuer bool     // whether iss is required
	Audience   []string // aud must contain one of these
	NeedExpiry bool     // whether exp is required
	Leeway     time.Duration
}

func refuse(reason string) error { return &oauth.TokenError{Reason: reason} }

// Verify checks the claims and returns their principal, which expires as late as Verify would accept
// the claims. The error is an [*oauth.TokenError].
func (c *Check) Verify(claims map[string]any, now time.Time) (*oauth.Principal, error) {
	if iss, ok := claims["iss"]; (ok || c.NeedIssuer) && iss != c.Issuer {
		return nil, refuse("it is of another issuer")
	}
	audience := Strings(claims["aud"], false)
	if !slices.ContainsFunc(audience, func(a string) bool { return slices.Contains(c.Audience, a) }) {
		return nil, refuse("it is for another audience")
	}
	expires, err := c.times(claims, now)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"sub", "client_id", "azp"} {
		// An invalid name must not be ignored: the principal would be mistaken for another.
		if v := claims[name]; v != nil && !isName(v) {
			return nil, refuse(name + " is not a valid name")
		}
	}
	p := &oauth.Principal{
		Issuer:   c.Issuer,
		Subject:  text(claims, "sub", "client_id", "azp"), // a client may act for itself
		ClientID: text(claims, "client_id", "azp"),
		Scopes:   Scopes(claims),
		Expires:  expires,
		Claims:   claims,
	}
	if p.Subject == "" {
		return nil, refuse("it has no subject")
	}
	return p, nil
}

// isName reports whether v is a valid name: text without control characters.
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
			return expires, refuse(name + " is not a time")
		case name == "exp":
			if expires = t.Add(c.Leeway); !now.Before(expires) {
				return expires, refuse("it has expired")
			}
		case now.Add(c.Leeway).Before(t):
			return expires, refuse("it is not valid yet")
		}
	}
	return expires, nil
}

// Date parses a NumericDate (RFC 7519, section 2), which may have a fraction. It returns false for
// anything else.
func Date(v any) (time.Time, bool) {
	f, ok := v.(float64)
	if !ok || !(math.Abs(f) < 1<<40) {
		return time.Time{}, false
	}
	whole, part := math.Modf(f)
	return time.Unix(int64(whole), int64(part*1e9)), true
}

// Scopes returns the scopes of the claim scope (RFC 9068, section 2.2.3), or of scp, which some
// servers use.
func Scopes(claims map[string]any) []string {
	for _, name := range []string{"scope", "scp"} {
		if v, ok := claims[name]; ok {
			return Strings(v, true)
		}
	}
	return nil
}

// Strings returns the strings of a list, or a single string: split at spaces if split is set,
// otherwise as it is.
func Strings(v any, split bool) []string {
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
