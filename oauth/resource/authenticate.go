package resource

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/internal/dpop"
)

const bearer = "Bearer"

// maxTokenBytes is the size of the largest accepted token.
const maxTokenBytes = 16 << 10

// authenticate returns the principal of r, or nil for an accepted anonymous request.
func (g *Guard) authenticate(r *http.Request) (*oauth.Principal, *refusal) {
	// URLs end up in logs and histories (RFC 9700, section 4.3.2). So a token in the URL is
	// rejected, even beside a token in the header.
	if query, _ := url.ParseQuery(r.URL.RawQuery); query.Has("access_token") {
		return nil, malformed("the access token is in the URL; send it in the Authorization header")
	}
	scheme, token, refused := credentials(r.Header)
	if refused != nil {
		return nil, refused
	}
	if token == "" {
		if g.opts.Anonymous {
			return nil, nil
		}
		return nil, &refusal{status: http.StatusUnauthorized}
	}
	p, refused := g.verify(r, scheme, token)
	if refused != nil {
		refused.scheme = scheme
		return nil, refused
	}
	return p, nil
}

// credentials reads the Authorization header. The token is "" without a header, or if it has
// another scheme.
func credentials(header http.Header) (scheme, token string, refused *refusal) {
	fields := header["Authorization"]
	if len(fields) == 0 {
		return "", "", nil
	}
	if len(fields) > 1 {
		return "", "", malformed("there is more than one Authorization header")
	}
	name, token, _ := strings.Cut(fields[0], " ")
	token = strings.TrimLeft(token, " ")
	switch {
	case strings.EqualFold(name, bearer):
		scheme = bearer
	case strings.EqualFold(name, dpop.Scheme):
		scheme = dpop.Scheme
	default:
		return "", "", nil
	}
	if !isToken68(token) {
		return "", "", malformed("the Authorization header is not a scheme and one token")
	}
	if len(token) > maxTokenBytes {
		return "", "", malformed("the access token is too large")
	}
	return scheme, token, nil
}

// token68 are the characters of a token (RFC 9110, section 11.2), except the trailing "=".
const token68 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/"

func isToken68(s string) bool {
	s = strings.TrimRight(s, "=")
	return s != "" && strings.Trim(s, token68) == ""
}

// verify checks the token, its binding, and whether its principal may enter.
func (g *Guard) verify(r *http.Request, scheme, token string) (*oauth.Principal, *refusal) {
	ctx := r.Context()
	if scheme == dpop.Scheme && g.proofs == nil {
		return nil, badToken("tokens that are bound to a key are not supported here; use Bearer")
	}
	p, err := g.verifier.Verify(ctx, token)
	if err != nil {
		return nil, tokenRefusal(err)
	}
	if p == nil || p.Key() == "" || p.Subject == "" {
		return nil, unavailable(errors.New("the verifier returned no principal and no error"))
	}
	if refused := g.checkBinding(r, p, scheme, token); refused != nil {
		return nil, refused
	}
	p = g.withIncluded(p)
	if !p.Has(g.opts.Scopes...) {
		return nil, insufficient()
	}
	return p, g.admit(ctx, p)
}

// tokenRefusal maps an error of the verifier to a response: a bad token, or a failed check.
func tokenRefusal(err error) *refusal {
	if bad, ok := errors.AsType[*oauth.TokenError](err); ok {
		return badToken(bad.Reason)
	}
	return unavailable(err)
}

// checkBinding checks the proof of a token that is bound to a key (RFC 9449, section 7.1). The
// token decides whether it is bound, not the scheme: otherwise a stolen token would be usable with
// the scheme Bearer.
func (g *Guard) checkBinding(r *http.Request, p *oauth.Principal, scheme, token string) *refusal {
	confirmation, present := p.Claims["cnf"]
	bound, _ := confirmation.(map[string]any)
	thumbprint, _ := bound["jkt"].(string)
	if present && thumbprint == "" {
		return badToken("the token has an unknown kind of binding")
	}
	if scheme == bearer {
		switch {
		case thumbprint != "":
			return badToken("the token is bound to a key; use the scheme DPoP with a proof")
		case g.bound:
			return badToken("the token is not bound to a key; this server requires a bound token")
		}
		return nil
	}
	if thumbprint == "" {
		return badToken("the token is not bound to a key; use the scheme Bearer")
	}
	proofs := r.Header[http.CanonicalHeaderKey(dpop.Header)]
	if len(proofs) != 1 {
		return badProof("the request needs exactly one DPoP header with a proof")
	}
	_, err := g.proofs.Verify(r.Context(), proofs[0], dpop.Request{
		Verb: r.Method, URL: g.requestURL(r), Token: token, Thumbprint: thumbprint,
	})
	bad, isBad := errors.AsType[*dpop.ProofError](err)
	switch {
	case err == nil:
		return nil
	case !isBad:
		return unavailable(err)
	case bad.WrongKey:
		return badToken(bad.Reason)
	}
	return badProof(bad.Reason)
}

// withIncluded returns a copy of p with the scopes that its scopes contain. It copies p, because p
// may be shared.
func (g *Guard) withIncluded(p *oauth.Principal) *oauth.Principal {
	if len(g.opts.Includes) == 0 {
		return p
	}
	all := slices.Clone(p.Scopes)
	for i := 0; i < len(all); i++ { // all grows: an included scope may include others
		for _, scope := range g.opts.Includes[all[i]] {
			if !slices.Contains(all, scope) {
				all = append(all, scope)
			}
		}
	}
	if len(all) == len(p.Scopes) {
		return p
	}
	q := *p
	q.Scopes, q.Claims = all, maps.Clone(p.Claims)
	return &q
}

// admit applies the policies.
func (g *Guard) admit(ctx context.Context, p *oauth.Principal) *refusal {
	for _, policy := range g.opts.Policies {
		err := policy(ctx, p)
		if err == nil {
			continue
		}
		if bad, ok := errors.AsType[*oauth.TokenError](err); ok {
			return badToken(bad.Reason)
		}
		if need, ok := errors.AsType[*oauth.InsufficientScopeError](err); ok {
			refused := insufficient()
			refused.scopes = need.Scopes
			return refused
		}
		return refusing(http.StatusForbidden, codeAccessDenied, "access is denied by policy", err)
	}
	return nil
}
