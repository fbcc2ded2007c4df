package oauthclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth/dpop"
	"github.com/mcpkit/mcpkit-go/oauth/internal/fetch"
	"github.com/mcpkit/mcpkit-go/oauth/metadata"
)

// maxLifetime bounds what a server says of a token's life, in seconds: more would overflow.
const maxLifetime = 10 * 365 * 24 * 3600

// A GrantError is the refusal of an authorization server (RFC 6749, sections 4.1.2.1 and 5.2), with the text that it came with:
// whoever shows it should know that the server wrote it.
type GrantError struct {
	Issuer      string
	Code        string // for example "invalid_grant"; empty when the server said none
	Description string
	Status      int // of the HTTP response; 0 when it came by way of the browser
}

// Error says who refused, and why.
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

// tokenResponse is what a token endpoint answers: success, or an error.
type tokenResponse struct {
	AccessToken  string  `json:"access_token"`
	TokenType    string  `json:"token_type"`
	ExpiresIn    float64 `json:"expires_in"`
	RefreshToken string  `json:"refresh_token"`
	Scope        string  `json:"scope"`

	IssuedTokenType string `json:"issued_token_type"` // RFC 8693

	Error            string `json:"error"`
	ErrorDescription string `json:"error_description"`
}

// tokenOf makes a token of the response to a request at p.
func (t *Transport) tokenOf(r *tokenResponse, p *place, scopes []string) (*Token, error) {
	want := "Bearer"
	if t.prover != nil {
		// A token that is not bound to the key is worth more to a thief than what was asked for.
		want = dpop.Scheme
	}
	if !strings.EqualFold(r.TokenType, want) {
		return nil, fmt.Errorf("the authorization server %q gave a token of type %.40q instead of %s", p.as.Issuer, r.TokenType, want)
	}
	if r.AccessToken == "" || strings.ContainsFunc(r.AccessToken, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return nil, fmt.Errorf("the authorization server %q gave no token that can stand in a header", p.as.Issuer)
	}
	tok := &Token{
		AccessToken: r.AccessToken, Type: want, RefreshToken: r.RefreshToken,
		Requested: scopes, Granted: scopes, Issuer: p.as.Issuer, Resource: p.resource,
	}
	if r.Scope != "" {
		tok.Granted = strings.Fields(r.Scope)
	}
	if r.ExpiresIn > 0 {
		tok.Expires = time.Now().Add(time.Duration(min(r.ExpiresIn, maxLifetime)) * time.Second)
	}
	return tok, nil
}

// tokenForm is a token request for a place.
func tokenForm(grant string, p *place, scopes []string) url.Values {
	form := url.Values{"grant_type": {grant}, "resource": {p.resource}}
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
	return form
}

// ask sends a token request. A server that wants a nonce in the proof gets it, once.
func (t *Transport) ask(ctx context.Context, as *metadata.AuthorizationServer, c *Credentials, form url.Values) (*tokenResponse, error) {
	return t.askWith(ctx, as, c, form, nil)
}

// askWith is ask with a parameter that is to be nowhere when the request is over.
func (t *Transport) askWith(ctx context.Context, as *metadata.AuthorizationServer, c *Credentials, form url.Values, verifier []byte) (*tokenResponse, error) {
	for again := false; ; again = true {
		header := make(http.Header)
		if err := c.authenticate(header, form, as); err != nil {
			return nil, err
		}
		header.Set("Content-Type", "application/x-www-form-urlencoded")
		if err := t.prove(header, http.MethodPost, as.TokenEndpoint, ""); err != nil {
			return nil, err
		}
		body := [][]byte{[]byte(form.Encode())}
		if verifier != nil {
			body = append(body, []byte("&code_verifier="), verifier) // of letters that stand for themselves
		}
		r := new(tokenResponse)
		status, got, err := t.post(ctx, as.TokenEndpoint, header, r, body...)
		if err != nil {
			return nil, fmt.Errorf("the token endpoint of %q: %w", as.Issuer, err)
		}
		nonce := got.Get(dpop.NonceHeader)
		t.keepNonce(as.TokenEndpoint, nonce)
		if r.Error == "use_dpop_nonce" && nonce != "" && t.prover != nil && !again {
			continue
		}
		if status != http.StatusOK || r.Error != "" {
			return nil, &GrantError{Issuer: as.Issuer, Code: r.Error, Description: r.ErrorDescription, Status: status}
		}
		return r, nil
	}
}

// revoke asks the authorization server to forget a token: by the refresh token, if there is one, since the access tokens that came
// from it end with it (RFC 7009, section 2.1).
func (t *Transport) revoke(ctx context.Context, tok *Token, c *Credentials, at *place) error {
	endpoint := at.as.RevocationEndpoint
	if endpoint == "" || at.as.Issuer != tok.Issuer || c.ClientID == "" { // a workload that has no name cannot ask
		return nil
	}
	form := url.Values{"token": {tok.RefreshToken}, "token_type_hint": {"refresh_token"}}
	if tok.RefreshToken == "" {
		form = url.Values{"token": {tok.AccessToken}, "token_type_hint": {"access_token"}}
	}
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	if err := c.authenticate(header, form, at.as); err != nil {
		return err
	}
	r := new(tokenResponse)
	status, _, err := t.post(ctx, endpoint, header, r, []byte(form.Encode()))
	switch {
	case err != nil:
		return fmt.Errorf("the revocation endpoint of %q: %w", at.as.Issuer, err)
	case status/100 != 2:
		return &GrantError{Issuer: at.as.Issuer, Code: r.Error, Description: r.ErrorDescription, Status: status}
	}
	return nil
}

// post sends a body, in parts, to an endpoint, and reads the JSON of the answer whatever its status; an answer without a body leaves
// v as it is. A redirect is an answer: credentials are not sent on.
func (t *Transport) post(ctx context.Context, endpoint string, header http.Header, v any, body ...[]byte) (status int, got http.Header, err error) {
	if _, err := t.policy.CheckURL(endpoint); err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	req.GetBody = func() (io.ReadCloser, error) { return newPassing(body), nil }
	passing := newPassing(body)
	req.Body, req.ContentLength = passing, int64(len(passing.all))
	req.Header = header
	req.Header.Set("Accept", "application/json")
	client := *t.http
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return 0, nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, fetch.MaxBytes+1))
	switch {
	case err != nil:
		return 0, nil, err
	case len(data) > fetch.MaxBytes:
		return 0, nil, fmt.Errorf("answered by more than %d bytes", fetch.MaxBytes)
	}
	if err := jsonx.Unmarshal(data, v); err != nil && resp.StatusCode/100 == 2 && len(data) > 0 {
		return 0, nil, errors.New("answered by JSON that does not fit")
	}
	return resp.StatusCode, resp.Header, nil
}

// A passing body is wiped when it was sent: it may hold secrets.
type passing struct {
	mu   sync.Mutex // requests may be closed while they are still being read
	all  []byte     // guarded by mu
	rest []byte     // guarded by mu
}

func newPassing(parts [][]byte) *passing {
	all := slices.Concat(parts...)
	return &passing{all: all, rest: all}
}

// Read reads.
func (p *passing) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// Close wipes.
func (p *passing) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.all)
	p.rest = nil
	return nil
}

// prove puts a proof on a request, where there is a key.
func (t *Transport) prove(header http.Header, verb, rawURL, token string) error {
	if t.prover == nil {
		return nil
	}
	proof, err := t.prover.Proof(verb, rawURL, token, t.nonce(rawURL))
	if err == nil {
		header.Set(dpop.Header, proof)
	}
	return err
}

const maxNonce = 1024

// keepNonce remembers what an origin wants in the next proof (RFC 9449, section 8.2).
func (t *Transport) keepNonce(rawURL, nonce string) {
	if nonce == "" || len(nonce) > maxNonce || t.prover == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.nonces) >= maxAuthorizationServers {
		clear(t.nonces)
	}
	t.nonces[origin(rawURL)] = nonce
}

func (t *Transport) nonce(rawURL string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.nonces[origin(rawURL)]
}

func origin(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
