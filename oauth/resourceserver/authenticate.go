package resourceserver

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/dpop"
)

const bearer = "Bearer"

// maxToken is how long a token may be; longer ones are not looked at.
const maxToken = 16 << 10

// authenticate says who r comes from: nobody, when it may.
func (g *Guard) authenticate(r *http.Request) (*oauth.Principal, *refusal) {
	// A token in a URL ends in logs and histories (RFC 9700, section 4.3.2). It is not taken, even if another one came
	// along as it should, so that clients that do this are found.
	if query, _ := url.ParseQuery(r.URL.RawQuery); query.Has("access_token") {
		return nil, malformed("the access token stands in the URL; it has to stand in the Authorization field")
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

// credentials reads the Authorization field. Without a field, or with one of another scheme, the token is "".
func credentials(header http.Header) (scheme, token string, refused *refusal) {
	fields := header["Authorization"]
	if len(fields) == 0 {
		return "", "", nil
	}
	if len(fields) > 1 {
		return "", "", malformed("there is more than one Authorization field")
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
		return "", "", malformed("the Authorization field is no scheme and one token")
	}
	if len(token) > maxToken {
		return "", "", malformed("the access token is too large")
	}
	return scheme, token, nil
}

// token68 has the bytes of a token (RFC 9110, section 11.2), less the "=" at its end.
var token68 = func() (set [256]bool) {
	for c := range set {
		set[c] = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~+/", byte(c)) >= 0
	}
	return set
}()

func isToken68(s string) bool {
	s = strings.TrimRight(s, "=")
	for i := range len(s) {
		if !token68[s[i]] {
			return false
		}
	}
	return s != ""
}

// verify checks the token, what it is bound to, and whether who it stands for may enter.
func (g *Guard) verify(r *http.Request, scheme, token string) (*oauth.Principal, *refusal) {
	ctx := r.Context()
	if scheme == dpop.Scheme && g.opts.DPoP == nil {
		return nil, badToken("tokens that are bound to a key are not taken here; use Bearer")
	}
	p, err := g.opts.Verifier.Verify(ctx, token)
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

// tokenRefusal tells a bad token from not knowing.
func tokenRefusal(err error) *refusal {
	if bad, ok := errors.AsType[*oauth.TokenError](err); ok {
		return badToken(bad.Reason)
	}
	return unavailable(err)
}

// checkBinding holds a token that is bound to a key to a proof by that key (RFC 9449, section 7.1). What it is bound to
// is for the token to say, not for the scheme: a stolen token must not become free by another word in front of it.
func (g *Guard) checkBinding(r *http.Request, p *oauth.Principal, scheme, token string) *refusal {
	confirmation, present := p.Claims["cnf"]
	bound, _ := confirmation.(map[string]any)
	thumbprint, _ := bound["jkt"].(string)
	if present && thumbprint == "" {
		return badToken("the token is bound to something that is not understood here")
	}
	if scheme == bearer {
		switch {
		case thumbprint != "":
			return badToken("the token is bound to a key; use the scheme DPoP with a proof")
		case g.opts.RequireDPoP:
			return badToken("the token is not bound to a key; one that is, is needed")
		}
		return nil
	}
	if thumbprint == "" {
		return badToken("the token is not bound to a key; use the scheme Bearer")
	}
	proofs := r.Header[http.CanonicalHeaderKey(dpop.Header)]
	if len(proofs) != 1 {
		return badProof("there has to be one DPoP field with a proof")
	}
	_, err := g.opts.DPoP.Verify(r.Context(), proofs[0], dpop.Request{
		Verb: r.Method, URL: g.opts.RequestURL(r), Token: token, Thumbprint: thumbprint,
	})
	bad, isBad := errors.AsType[*dpop.ProofError](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, dpop.ErrTooManyProofs):
		return tooMany(err)
	case !isBad:
		return unavailable(err)
	case bad.WrongKey:
		return badToken(bad.Reason)
	}
	refused := badProof(bad.Reason)
	if bad.NeedsNonce {
		refused.code = codeUseNonce
	}
	return refused
}

// withIncluded adds the scopes that those of p stand for, in a copy: p may be shared.
func (g *Guard) withIncluded(p *oauth.Principal) *oauth.Principal {
	if len(g.opts.Includes) == 0 {
		return p
	}
	all := slices.Clone(p.Scopes)
	for i := 0; i < len(all); i++ { // grows while it is read: what is included may include more
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

// admit asks the policies.
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
		return &refusal{status: http.StatusForbidden, code: codeAccessDenied, reason: "access is denied by policy", cause: err}
	}
	return nil
}
