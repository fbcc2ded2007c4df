package echomcp

import (
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth"
)

// userKey is the key under which echo's JWT middleware, and others like it, store the user.
const userKey = "user"

// users makes principals from c.Get("user"), without the option Principal.
type users struct {
	logger *slog.Logger
	once   sync.Once
}

func (u *users) principal(c echo.Context) *oauth.Principal {
	// An authenticator that uses this module has stored a principal already.
	if p := oauth.FromContext(c.Request().Context()); p != nil {
		return p
	}
	user := c.Get(userKey)
	if user == nil {
		return nil
	}
	if p, ok := user.(*oauth.Principal); ok {
		return p
	}
	p, hasClaims := fromToken(user)
	if p == nil {
		text := "echomcp: the user of the request has an unknown type, so the request counts as unauthenticated; use the option echomcp.Principal"
		if hasClaims {
			text = "echomcp: the token of the request has no text claim sub, client_id or azp, so the request counts as unauthenticated; " +
				"have it issued with sub, or use the option echomcp.Principal"
		}
		u.once.Do(func() { u.logger.Warn(text, "type", fmt.Sprintf("%T", user)) })
	}
	return p
}

// fromToken returns the principal of a token like the *jwt.Token of any version of golang-jwt,
// without linking it: a struct with the field Claims, and optionally Valid. It returns nil for
// other types, and for tokens that are invalid or have neither subject nor client. hasClaims is
// true if the token is valid and its claims were read.
func fromToken(token any) (p *oauth.Principal, hasClaims bool) {
	v := reflect.ValueOf(token)
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return nil, false
	}
	if valid := v.FieldByName("Valid"); valid.IsValid() && valid.Kind() == reflect.Bool && !valid.Bool() {
		return nil, false
	}
	field := v.FieldByName("Claims")
	if !field.IsValid() || !field.CanInterface() || isNil(field) {
		return nil, false
	}
	claims := claimsOf(field.Interface())
	if claims == nil {
		return nil, false
	}
	p = &oauth.Principal{
		Subject:  firstString(claims, "sub"),
		Issuer:   firstString(claims, "iss"),
		ClientID: firstString(claims, "client_id", "azp"),
		Scopes:   scopes(claims),
		Claims:   claims,
	}
	if p.Subject == "" {
		if sub := claims["sub"]; sub != nil && sub != "" {
			return nil, true // not a string; the client ID would stand for all users of that client
		}
		p.Subject = p.ClientID
	}
	if p.Subject == "" {
		return nil, true
	}
	if exp, ok := claims["exp"].(float64); ok && exp > 0 && exp < 1<<40 {
		p.Expires = time.Unix(int64(exp), 0)
	}
	return p, true
}

func isNil(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Interface:
		return v.IsNil() || isNil(v.Elem())
	case reflect.Pointer, reflect.Map:
		return v.IsNil()
	}
	return false
}

// claimsOf returns claims as a JSON object.
func claimsOf(claims any) map[string]any {
	raw, err := jsonx.Marshal(claims)
	if err != nil {
		return nil
	}
	var m map[string]any
	if jsonx.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

func firstString(claims map[string]any, names ...string) string {
	for _, name := range names {
		if s, ok := claims[name].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// scopes reads the claim scope (RFC 8693, section 4.2) or scp: a string with spaces, or a list.
func scopes(claims map[string]any) []string {
	for _, name := range []string{"scope", "scp"} {
		switch v := claims[name].(type) {
		case string:
			return strings.Fields(v)
		case []any:
			var list []string
			for _, item := range v {
				if s, ok := item.(string); ok {
					list = append(list, s)
				}
			}
			return list
		}
	}
	return nil
}
