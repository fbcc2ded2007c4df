package oauthclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth/internal/dpop"
	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
)

// maxLifetime is the longest token lifetime that is accepted from a server, in seconds. Longer ones
// would overflow.
const maxLifetime = 10 * 365 * 24 * 3600

// A GrantError is an error response of an authorization server (RFC 6749, sections 4.1.2.1 and
// 5.2). Code and Description are text of the server: do not present them as the program's own.
type GrantError struct {
	Issuer      string
	Code        string // for example "invalid_grant"; empty if the server sent none
	Description string
	Status      int // of the HTTP response; 0 if the error came with a redirect
}

// Error returns the issuer, the status, the code and the description.
func (e *GrantError) Error() string {
	text := fmt.Sprintf("the authorization server %q refused", e.Issuer)
	if e.Status != 0 {
		text += fmt.Sprintf(" with HTTP status %d", e.Status)
	}
	if e.Code != "" {
		text += fmt.Sprintf(": %.100q", e.Code)
	}
	if e.Description != "" {
		text += fmt.Sprintf(" (%.200q)", e.Description)
	}
	return text
}

// tokenResponse is the response of a token endpoint, successful or not.
type tokenResponse struct {
	AccessToken  string      `json:"access_token"`
	TokenType    string      `json:"token_type"`
	ExpiresIn    json.Number `json:"expires_in"` // a string from some servers
	RefreshToken string      `json:"refresh_token"`
	Scope        string      `json:"scope"`

	IssuedTokenType string `json:"issued_token_type"` // RFC 8693

	errorResponse
}

// errorResponse are the members of an error response (RFC 6749, section 5.2).
type errorResponse struct {
	Error            string `json:"error"`
	ErrorDescription string `json:"error_description"`
}

func (r *errorResponse) refusal(as *metadata.AuthorizationServer, status int) error {
	return &GrantError{Issuer: as.Issuer, Code: r.Error, Description: r.ErrorDescription, Status: status}
}

// send sends a form for a client, and returns the token of the response.
func (q *tokenRequest) send(ctx context.Context, c *Credentials, form url.Values) (*issuedToken, error) {
	r, err := q.t.ask(ctx, q.as, c, form)
	if err != nil {
		return nil, err
	}
	return q.tokenOf(r, c)
}

// form returns the form of a token request.
func (q *tokenRequest) form(grant string, scopes []string) url.Values {
	form := url.Values{"grant_type": {grant}, "resource": {q.resource}}
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
	return form
}

// tokenOf returns the token of a response to a client.
func (q *tokenRequest) tokenOf(r *tokenResponse, c *Credentials) (*issuedToken, error) {
	want := "Bearer"
	if q.t.opts.DPoP != nil {
		// A stolen token that is not bound to the key would be usable.
		want = dpop.Scheme
	}
	if !strings.EqualFold(r.TokenType, want) {
		return nil, fmt.Errorf("the authorization server %q returned a token of type %.40q instead of %s",
			q.as.Issuer, r.TokenType, want)
	}
	if r.AccessToken == "" || strings.ContainsFunc(r.AccessToken, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return nil, fmt.Errorf("the authorization server %q returned no token that is valid in a header", q.as.Issuer)
	}
	tok := &Token{
		AccessToken: r.AccessToken, Type: want, RefreshToken: r.RefreshToken, Requested: q.scopes, Granted: q.scopes,
		Issuer: q.as.Issuer, Resource: q.resource, Thumbprint: q.t.thumbprint(),
	}
	if r.Scope != "" {
		tok.Granted = strings.Fields(r.Scope)
	}
	if seconds, _ := r.ExpiresIn.Float64(); seconds > 0 { // 0 if there is none, infinite if it is too large
		tok.Expires = time.Now().Add(time.Duration(min(seconds, maxLifetime)) * time.Second)
	}
	return &issuedToken{token: tok, client: c, at: q.discovery}, nil
}

// ask sends a token request. If the server asks for a nonce in the proof, ask retries once.
func (t *Transport) ask(
	ctx context.Context, as *metadata.AuthorizationServer, c *Credentials, form url.Values,
) (*tokenResponse, error) {
	for again := false; ; again = true {
		header := make(http.Header)
		if err := c.authenticate(header, form, as); err != nil {
			return nil, err
		}
		header.Set("Content-Type", "application/x-www-form-urlencoded")
		r := new(tokenResponse)
		status, err := t.post(ctx, as.TokenEndpoint, header, []byte(form.Encode()), r)
		if err != nil {
			return nil, fmt.Errorf("the token endpoint of %q: %w", as.Issuer, err)
		}
		if r.Error == "use_dpop_nonce" && t.opts.DPoP != nil && !again {
			continue
		}
		if r.Error == "invalid_client" {
			t.forget(ctx, c)
		}
		if status != http.StatusOK || r.Error != "" {
			return nil, r.refusal(as, status)
		}
		return r, nil
	}
}

// revoke asks the authorization server to revoke a token. It revokes the refresh token if there is
// one, because this also revokes the access tokens issued from it (RFC 7009, section 2.1).
func (t *Transport) revoke(ctx context.Context, h *issuedToken) error {
	as, endpoint := h.at.as, h.at.as.RevocationEndpoint
	if endpoint == "" || as.Issuer != h.token.Issuer || h.client.ClientID == "" {
		return nil // a workload without a client ID cannot revoke
	}
	form := url.Values{"token": {h.token.RefreshToken}, "token_type_hint": {"refresh_token"}}
	if h.token.RefreshToken == "" {
		form = url.Values{"token": {h.token.AccessToken}, "token_type_hint": {"access_token"}}
	}
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	if err := h.client.authenticate(header, form, as); err != nil {
		return err
	}
	r := new(errorResponse)
	status, err := t.post(ctx, endpoint, header, []byte(form.Encode()), r)
	switch {
	case err != nil:
		return fmt.Errorf("the revocation endpoint of %q: %w", as.Issuer, err)
	case status/100 != 2:
		return r.refusal(as, status)
	}
	return nil
}

// post sends a body to an endpoint. It decodes the JSON of the response into v whatever the status. A
// response without a body leaves v unchanged. Redirects are not followed, because they would forward
// credentials.
func (t *Transport) post(
	ctx context.Context, endpoint string, header http.Header, body []byte, v any,
) (status int, err error) {
	if _, err := t.policy.CheckURL(endpoint); err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header = header
	req.Header.Set("Accept", "application/json")
	if err := t.prove(req, ""); err != nil {
		return 0, err
	}
	resp, err := metadata.Send(metadata.WithoutRedirects(t.http), req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	t.keepNonce(req.URL, resp.Header)
	data, err := metadata.ReadAll(resp)
	if err != nil {
		return 0, err
	}
	if err := jsonx.Unmarshal(data, v); err != nil && resp.StatusCode/100 == 2 && len(data) > 0 {
		return 0, errors.New("the response is not the expected JSON")
	}
	return resp.StatusCode, nil
}

// prove adds a DPoP proof to a request if the transport has a key.
func (t *Transport) prove(req *http.Request, token string) error {
	if t.opts.DPoP == nil {
		return nil
	}
	t.mu.Lock()
	nonce := t.nonces[req.URL.Host]
	t.mu.Unlock()
	proof, err := t.opts.DPoP.Proof(req.Method, req.URL.String(), token, nonce)
	if err == nil {
		req.Header.Set(dpop.Header, proof)
	}
	return err
}

const maxNonce = 1024

// keepNonce stores the nonce that a host requires in the next proof (RFC 9449, section 8.2).
func (t *Transport) keepNonce(u *url.URL, header http.Header) {
	nonce := header.Get(dpop.NonceHeader)
	if nonce == "" || len(nonce) > maxNonce {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.nonces) >= maxAuthorizationServers {
		clear(t.nonces)
	}
	t.nonces[u.Host] = nonce
}
