package main

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/labstack/echo/v4"

	"github.com/mcpkit/mcpkit-go/oauth"
)

// Tokens are of one issuer, and for this server alone.
const (
	issuer   = "https://login.example.com"
	audience = "https://ops.example.com/mcp"
)

// claims are those of the tokens of this program.
type claims struct {
	jwt.Claims
	Scope string `json:"scope"`
}

// bearer is a simple replacement for your own authentication. It accepts JSON Web Tokens signed
// with one key (HS256) and stores the principal where echomcp finds it.
func bearer(key []byte) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			token, _ := strings.CutPrefix(c.Request().Header.Get("Authorization"), "Bearer ")
			p, err := verify(key, token)
			if err != nil {
				c.Response().Header().Set("WWW-Authenticate", "Bearer")
				return echo.NewHTTPError(http.StatusUnauthorized, "a valid bearer token is required")
			}
			c.Set("user", p)
			return next(c)
		}
	}
}

// verify returns the principal of a token.
func verify(key []byte, token string) (*oauth.Principal, error) {
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.HS256})
	if err != nil {
		return nil, err
	}
	var c claims
	if err := parsed.Claims(key, &c); err != nil {
		return nil, err
	}
	if err := c.ValidateWithLeeway(jwt.Expected{Issuer: issuer, AnyAudience: jwt.Audience{audience}, Time: time.Now()}, 0); err != nil {
		return nil, err
	}
	if c.Subject == "" || c.Expiry == nil {
		return nil, errors.New("the token has no subject or does not expire")
	}
	return &oauth.Principal{Subject: c.Subject, Scopes: strings.Fields(c.Scope), Expires: c.Expiry.Time()}, nil
}

// newToken returns a token for the subject that is valid for one hour. The scope has zero or more
// scopes, separated by spaces.
func newToken(key []byte, subject, scope string) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: key}, nil)
	if err != nil {
		return "", err
	}
	expires := jwt.NewNumericDate(time.Now().Add(time.Hour))
	own := jwt.Claims{Issuer: issuer, Audience: jwt.Audience{audience}, Subject: subject, Expiry: expires}
	return jwt.Signed(signer).Claims(claims{own, scope}).Serialize()
}
