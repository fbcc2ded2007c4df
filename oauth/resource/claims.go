package resource

import (
	"cmp"
	"strings"
	"time"
	"unicode"

	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth"
)

// leeway is the allowed difference of clocks.
const leeway = 30 * time.Second

// maxYear is the last year in which a token may expire. Later ones are mistakes, such as milliseconds.
const maxYear = 9999

func refuse(reason string) error { return &oauth.TokenError{Reason: reason} }

// claims are the claims of a JWT or of a response of an introspection endpoint.
type claims struct {
	jwt.Claims
	ClientID string `json:"client_id"`
	Party    string `json:"azp"`
	ID       any    `json:"jti"` // is not read

	all map[string]any
}

// parseClaims decodes claims. Its errors are [*oauth.TokenError].
func parseClaims(payload []byte) (*claims, error) {
	c := new(claims)
	if jsonx.Unmarshal(payload, &c.all) != nil || c.all == nil {
		return nil, refuse("its claims are not a JSON object")
	}
	err := jsonx.Unmarshal(payload, c)
	if err == nil {
		return c, nil
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(jsonx.ErrorPointer(err), "/"), "/")
	switch name {
	case "iss":
		return nil, refuse(reasonIssuer)
	case "aud":
		return nil, refuse(reasonAudience)
	case "exp", "nbf", "iat":
		return nil, refuse(name + " is not a time")
	}
	// An invalid name must not be ignored: the principal would be mistaken for another.
	return nil, refuse(name + " is not a valid name")
}

const (
	reasonIssuer   = "it is of another issuer"
	reasonAudience = "it is for another audience"
)

// reasons are the texts of errors of package jwt.
var reasons = map[error]string{
	jwt.ErrInvalidIssuer:     reasonIssuer,
	jwt.ErrInvalidAudience:   reasonAudience,
	jwt.ErrExpired:           "it has expired",
	jwt.ErrNotValidYet:       "it is not valid yet",
	jwt.ErrIssuedInTheFuture: "it is not valid yet",
}

// principal checks the claims and returns their principal, which expires as late as the claims are
// accepted. The error is an [*oauth.TokenError].
func (c *claims) principal(issuer string, audience []string, now time.Time) (*oauth.Principal, error) {
	expected := jwt.Expected{Issuer: issuer, AnyAudience: audience, Time: now}
	if err := c.ValidateWithLeeway(expected, leeway); err != nil {
		return nil, refuse(cmp.Or(reasons[err], "its claims are not valid"))
	}
	for name, text := range map[string]string{"sub": c.Subject, "client_id": c.ClientID, "azp": c.Party} {
		if strings.ContainsFunc(text, unicode.IsControl) {
			return nil, refuse(name + " is not a valid name")
		}
	}
	p := &oauth.Principal{
		Issuer:   issuer,
		Subject:  cmp.Or(c.Subject, c.ClientID, c.Party), // a client may act for itself
		ClientID: cmp.Or(c.ClientID, c.Party),
		Scopes:   scopesOf(c.all),
		Claims:   c.all,
	}
	if p.Subject == "" {
		return nil, refuse("it has no subject")
	}
	if c.Expiry != nil {
		if p.Expires = c.Expiry.Time().Add(leeway); p.Expires.Year() > maxYear {
			return nil, refuse("exp is not a time")
		}
	}
	return p, nil
}

// scopesOf returns the scopes of the claim scope (RFC 9068, section 2.2.3), or of scp, which some
// servers use. Each is a text of scopes or a list.
func scopesOf(all map[string]any) []string {
	scopes, ok := all["scope"]
	if !ok {
		scopes = all["scp"]
	}
	if text, ok := scopes.(string); ok {
		return strings.Fields(text)
	}
	var list []string
	for _, item := range values(scopes) {
		if scope, ok := item.(string); ok {
			list = append(list, scope)
		}
	}
	return list
}
