package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mcpkit/mcpkit-go/oauth"
)

// bearer is a simple replacement for your own authentication. It accepts JSON Web Tokens signed
// with one key (HS256) and stores the principal where echomcp finds it.
func bearer(key []byte) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			token, ok := strings.CutPrefix(c.Request().Header.Get("Authorization"), "Bearer ")
			p := verify(key, token, time.Now())
			if !ok || p == nil {
				c.Response().Header().Set("WWW-Authenticate", "Bearer")
				return echo.NewHTTPError(http.StatusUnauthorized, "a valid bearer token is required")
			}
			c.Set("user", p)
			return next(c)
		}
	}
}

// checkKey returns an error if the key is too short to sign tokens.
func checkKey(key []byte) error {
	if len(key) < 32 {
		return errors.New("ops: the key must have at least 32 random bytes; set OPS_KEY")
	}
	return nil
}

// newToken returns a token for the subject that is valid for one hour. The scope has zero or more
// scopes, separated by spaces.
func newToken(key []byte, subject, scope string) (string, error) {
	if err := checkKey(key); err != nil {
		return "", err
	}
	return sign(key, claims{Subject: subject, Scope: scope, Expires: time.Now().Add(time.Hour).Unix()}), nil
}

type claims struct {
	Subject string `json:"sub"`
	Scope   string `json:"scope"`
	Expires int64  `json:"exp"`
}

// jwtHeader is the only header that tokens may have, so no other algorithm is accepted.
var jwtHeader = base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`))

// verify returns the principal of the token, or nil if it is not valid.
func verify(key []byte, token string, now time.Time) *oauth.Principal {
	signed, signature, ok := cutLast(token, ".")
	got, err := base64.RawURLEncoding.DecodeString(signature)
	if !ok || err != nil || !hmac.Equal(got, mac(key, signed)) {
		return nil
	}
	encoded, ok := strings.CutPrefix(signed, jwtHeader+".")
	payload, err := base64.RawURLEncoding.DecodeString(encoded)
	var c claims
	if !ok || err != nil || json.Unmarshal(payload, &c) != nil || c.Subject == "" || now.Unix() >= c.Expires {
		return nil
	}
	return &oauth.Principal{Subject: c.Subject, Scopes: strings.Fields(c.Scope), Expires: time.Unix(c.Expires, 0)}
}

// sign returns a signed token.
func sign(key []byte, c claims) string {
	payload, _ := json.Marshal(c) // cannot fail: it has only strings and a number
	signed := jwtHeader + "." + base64.RawURLEncoding.EncodeToString(payload)
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac(key, signed))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
