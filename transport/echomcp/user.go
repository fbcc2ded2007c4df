package echomcp

import (
	"cmp"
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

// users makes principals from c.Get("user"), where echo's JWT middleware, and others like it, store
// the user.
type users struct {
	logger *slog.Logger
	once   sync.Once
}

func (u *users) principal(c echo.Context) *oauth.Principal {
	// An authenticator that uses this module has stored a principal already.
	if p := oauth.FromContext(c.Request().Context()); p != nil {
		return p
	}
	user := c.Get("user")
	if p, ok := user.(*oauth.Principal); ok || user == nil {
		return p
	}
	p := fromToken(user)
	if p == nil {
		u.once.Do(func() {
			u.logger.Warn("echomcp: the request counts as unauthenticated, since its user is not a valid token with a text "+
				"claim sub, client_id or azp; use the option echomcp.Principal", "type", fmt.Sprintf("%T", user))
		})
	}
	return p
}

// tokenClaims are the claims of a token that make a principal.
type tokenClaims struct {
	Subject  string  `json:"sub"`
	Issuer   string  `json:"iss"`
	ClientID string  `json:"client_id"`
	Party    string  `json:"azp"`
	Expires  float64 `json:"exp"`
}

// fromToken returns the principal of a token like the *jwt.Token of any version of golang-jwt,
// without linking it: a struct with the field Claims, and optionally Valid. It returns nil for
// other types, and for tokens that are invalid or have neither subject nor client.
func fromToken(token any) *oauth.Principal {
	v := reflect.Indirect(reflect.ValueOf(token))
	if v.Kind() != reflect.Struct {
		return nil
	}
	if valid := v.FieldByName("Valid"); valid.Kind() == reflect.Bool && !valid.Bool() {
		return nil
	}
	field := v.FieldByName("Claims")
	if !field.IsValid() || !field.CanInterface() {
		return nil
	}
	var c tokenClaims
	var all map[string]any
	raw, err := jsonx.Marshal(field.Interface())
	// A name that is not a text must not be ignored: the client would stand for all its users.
	if err != nil || jsonx.Unmarshal(raw, &c) != nil || jsonx.Unmarshal(raw, &all) != nil {
		return nil
	}
	p := &oauth.Principal{
		Subject:  cmp.Or(c.Subject, c.ClientID, c.Party),
		Issuer:   c.Issuer,
		ClientID: cmp.Or(c.ClientID, c.Party),
		Scopes:   scopes(all),
		Claims:   all,
	}
	if p.Subject == "" {
		return nil
	}
	if c.Expires > 0 && c.Expires < 1<<40 {
		p.Expires = time.Unix(int64(c.Expires), 0)
	}
	return p
}

// scopes reads the claim scope (RFC 8693, section 4.2) or scp: a string with spaces, or a list.
func scopes(claims map[string]any) (scopes []string) {
	switch v := cmp.Or(claims["scope"], claims["scp"]).(type) {
	case string:
		return strings.Fields(v)
	case []any:
		for _, item := range v {
			if s, ok := item.(string); ok {
				scopes = append(scopes, s)
			}
		}
	}
	return scopes
}
