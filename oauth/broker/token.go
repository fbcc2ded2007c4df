package broker

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth/internal/dpop"
	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
)

const (
	grantCode    = "authorization_code"
	grantRefresh = "refresh_token"
	typeAccess   = "at+jwt" // RFC 9068
)

// Error codes (RFC 6749, sections 4.1.2.1 and 5.2; RFC 7591, section 3.2.2; RFC 9449, section 5).
const (
	codeInvalidRequest  = "invalid_request"
	codeInvalidGrant    = "invalid_grant"
	codeInvalidProof    = "invalid_dpop_proof"
	codeInvalidMetadata = "invalid_client_metadata"
	codeAccessDenied    = "access_denied"
)

// A refreshToken is what a refresh token says, which is sealed.
type refreshToken struct {
	Grant  string `json:"g"`
	Number int    `json:"n"`
}

// A tokenRequest is a request to the token endpoint.
type tokenRequest struct {
	form       url.Values
	client     string // ID
	thumbprint string // of the key to bind the tokens to; "" for none
}

// token is the token endpoint.
func (b *Broker) token(r *http.Request) (any, error) {
	form, err := readForm(r)
	if err != nil {
		return nil, err
	}
	if refused := b.checkTarget(form); refused != nil {
		return nil, refused
	}
	q := &tokenRequest{form: form, client: form.Get("client_id")}
	if q.client == "" {
		return nil, refuse(metadata.CodeInvalidClient, "the request needs the client_id of a public client")
	}
	if q.thumbprint, err = b.proofs.VerifyToken(r, b.url("token")); err != nil {
		return nil, err
	}
	switch form.Get("grant_type") {
	case grantCode:
		return b.redeem(r.Context(), q)
	case grantRefresh:
		return b.refresh(r.Context(), q)
	}
	return nil, refuse("unsupported_grant_type", "the grant_type must be authorization_code or refresh_token")
}

// readForm reads the form of a request. Only resource may be repeated (RFC 6749, section 3.2).
func readForm(r *http.Request) (url.Values, error) {
	if err := r.ParseForm(); err != nil {
		return nil, refuse(codeInvalidRequest, "the form cannot be read")
	}
	for name, values := range r.PostForm {
		if len(values) > 1 && name != "resource" {
			return nil, refuse(codeInvalidRequest, "a parameter is repeated")
		}
	}
	return r.PostForm, nil
}

var errReused = errors.New("the credential was used before")

// redeem issues the first tokens of a grant. A code that is used twice may be stolen, so it ends the
// grant (RFC 6749, section 4.1.2).
func (b *Broker) redeem(ctx context.Context, q *tokenRequest) (*metadata.Tokens, error) {
	var key string
	if !b.keys.read("code", q.form.Get("code"), &key) {
		return nil, refuse(codeInvalidGrant, "the code is unknown")
	}
	g, err := b.change(ctx, key, func(g *grant) error {
		challenge := oauth2.S256ChallengeFromVerifier(q.form.Get("code_verifier"))
		switch {
		case g.Client != fleet.Digest(q.client):
			return refuse(codeInvalidGrant, "the code was issued to another client")
		case g.Redeemed:
			return errReused
		case time.Since(g.Approved) > codeLifetime:
			return refuse(codeInvalidGrant, "the code has expired")
		case q.form.Has("redirect_uri") && q.form.Get("redirect_uri") != g.Redirect:
			return refuse(codeInvalidGrant, "the redirect_uri differs from that of the code")
		case subtle.ConstantTimeCompare([]byte(challenge), []byte(g.Challenge)) != 1:
			return refuse(codeInvalidGrant, "the code_verifier does not fit the code_challenge")
		case g.Thumbprint != "" && g.Thumbprint != q.thumbprint:
			return refuse(codeInvalidProof, "the code is bound to another key")
		}
		g.Redeemed, g.Thumbprint = true, q.thumbprint
		return nil
	})
	return b.issue(ctx, q, key, g, err)
}

// refresh issues new tokens. It asks the provider first, so that a user whose account was removed is
// logged out. A refresh token that is used twice may be stolen, so it ends the grant (RFC 9700, section
// 4.14.2).
func (b *Broker) refresh(ctx context.Context, q *tokenRequest) (*metadata.Tokens, error) {
	var old refreshToken
	if !b.keys.read("refresh", q.form.Get("refresh_token"), &old) {
		return nil, refuse(codeInvalidGrant, "the refresh token is unknown")
	}
	check := func(g *grant) error {
		switch {
		case g.Client != fleet.Digest(q.client):
			return refuse(codeInvalidGrant, "the refresh token was issued to another client")
		case g.Number != old.Number:
			return errReused
		case g.Thumbprint != "" && g.Thumbprint != q.thumbprint:
			return refuse(codeInvalidProof, "the refresh token is bound to another key")
		case time.Since(g.Begun) > grantLifetime:
			return refuse(codeInvalidGrant, "the login is too old")
		}
		return nil
	}
	g, err := b.read(ctx, old.Grant)
	if err == nil {
		err = check(g)
	}
	if err == nil {
		_, err = b.renew(ctx, old.Grant, nil)
	}
	if err == nil {
		g, err = b.change(ctx, old.Grant, func(g *grant) error {
			if err := check(g); err != nil {
				return err
			}
			g.Number++
			return nil
		})
	}
	return b.issue(ctx, q, old.Grant, g, err)
}

// issue returns the tokens of a grant, or the response to the error that prevents it.
func (b *Broker) issue(ctx context.Context, q *tokenRequest, key string, g *grant, err error) (*metadata.Tokens, error) {
	switch {
	case errors.Is(err, errReused):
		if err := b.end(context.WithoutCancel(ctx), key, "a code or refresh token was used twice"); err != nil {
			return nil, err
		}
		return nil, refuse(codeInvalidGrant, "it was used before, so the login has ended")
	case errors.Is(err, ErrEnded):
		return nil, refuse(codeInvalidGrant, "the login has ended")
	case err != nil:
		return nil, err
	}
	scopes := g.Scopes
	if asked := strings.Fields(q.form.Get("scope")); len(asked) > 0 {
		scopes = slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return !slices.Contains(asked, s) })
	}
	now := time.Now()
	claims := map[string]any{
		"iss": b.opts.Issuer, "sub": g.User.Subject, "aud": b.opts.Resource, "client_id": q.client, "sid": key,
		"jti": rand.Text(), "iat": now.Unix(), "exp": now.Add(accessLifetime).Unix(),
	}
	t := &metadata.Tokens{TokenType: "Bearer", ExpiresIn: int64(accessLifetime / time.Second), Scope: strings.Join(scopes, " ")}
	if len(scopes) > 0 {
		claims["scope"] = t.Scope
	}
	if q.thumbprint != "" {
		t.TokenType = dpop.Scheme
		claims["cnf"] = map[string]string{"jkt": q.thumbprint}
	}
	if t.AccessToken, err = b.keys.sign(claims); err != nil {
		return nil, err
	}
	if g.Refresh {
		t.RefreshToken, err = b.keys.write("refresh", refreshToken{key, g.Number})
	}
	return t, err
}

// revoke is the revocation endpoint (RFC 7009). It ends the grant of a refresh token or an access token.
// The response does not say whether the token was valid.
func (b *Broker) revoke(r *http.Request) (any, error) {
	form, err := readForm(r)
	if err != nil {
		return nil, err
	}
	text := form.Get("token")
	var refresh refreshToken
	var access struct {
		Grant string `json:"sid"`
	}
	if !b.keys.read("refresh", text, &refresh) {
		payload, err := b.keys.verify(text)
		if err != nil || jsonx.Unmarshal(payload, &access) != nil {
			return nil, nil
		}
	}
	key := refresh.Grant + access.Grant // one of them is ""
	g, err := b.read(r.Context(), key)
	switch {
	case errors.Is(err, ErrEnded):
		return nil, nil
	case err != nil:
		return nil, err
	case g.Client != fleet.Digest(form.Get("client_id")):
		return nil, refuse(codeInvalidGrant, "the token was issued to another client")
	}
	return nil, b.end(r.Context(), key, "the client has revoked it")
}
