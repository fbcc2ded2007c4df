package resource

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth/internal/dpop"
	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
)

// Error codes (RFC 6750, section 3.1; RFC 9449, section 7.1; RFC 6749, section 4.1.2.1).
const (
	codeInvalidRequest    = "invalid_request"
	codeInvalidToken      = "invalid_token"
	codeInsufficientScope = "insufficient_scope"
	codeInvalidProof      = "invalid_dpop_proof"
	codeAccessDenied      = "access_denied"
	codeUnavailable       = "temporarily_unavailable"
)

// A refusal is an error response of the guard.
type refusal struct {
	status int
	scheme string // the scheme of the request; "" if it has no known scheme
	code   string // "" if the request has no credentials, which is not an error
	reason string
	scopes []string // scopes that a new token needs, besides those of every request
	cause  error    // logged
}

func refusing(status int, code, reason string, cause error) *refusal {
	return &refusal{status: status, code: code, reason: reason, cause: cause}
}

func malformed(reason string) *refusal {
	return refusing(http.StatusBadRequest, codeInvalidRequest, reason, nil)
}

func badToken(reason string) *refusal {
	return refusing(http.StatusUnauthorized, codeInvalidToken, reason, nil)
}

func badProof(reason string) *refusal {
	return refusing(http.StatusUnauthorized, codeInvalidProof, reason, nil)
}

func insufficient() *refusal {
	return refusing(http.StatusForbidden, codeInsufficientScope, "the token lacks scopes that this request needs", nil)
}

// unavailable is the response if the token could not be checked. The client must not discard the
// token.
func unavailable(cause error) *refusal {
	return refusing(http.StatusServiceUnavailable, codeUnavailable, "the token could not be checked", cause)
}

// refuse sends the response to a rejected request.
func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, f *refusal) {
	g.log(r, f)
	header := w.Header()
	switch {
	case f.status == http.StatusServiceUnavailable:
		header.Set("Retry-After", "5")
	case f.code != codeAccessDenied: // no token would help
		g.challenge(header, f)
	}
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Type", "application/json")
	body := map[string]string{"error": f.code, "error_description": f.reason}
	if f.code == "" {
		body = map[string]string{"error": codeInvalidToken, "error_description": "an access token is required"}
	}
	text, _ := jsonx.Marshal(body) // cannot fail: it has only strings
	httpserve.Discard(w, r)
	w.WriteHeader(f.status)
	_, _ = w.Write(text)
}

func (g *Guard) log(r *http.Request, f *refusal) {
	// Without the query, where careless clients put secrets.
	attrs := []any{"status", f.status, "error", f.code, "reason", f.reason, "method", r.Method, "path", r.URL.Path}
	if f.cause != nil {
		attrs = append(attrs, "cause", f.cause.Error())
	}
	if f.status == http.StatusServiceUnavailable && g.mayComplain(time.Now()) {
		g.opts.Logger.ErrorContext(r.Context(), "resource: the token could not be checked", attrs...)
		return
	}
	g.opts.Logger.DebugContext(r.Context(), "resource: request rejected", attrs...)
}

// mayComplain reports whether an error may be logged at level Error: one each second, because
// anyone can cause such errors with made-up tokens.
func (g *Guard) mayComplain(now time.Time) bool {
	before := g.complained.Load()
	recent := before != 0 && now.UnixNano()-before < int64(time.Second)
	return !recent && g.complained.CompareAndSwap(before, now.UnixNano())
}

// challenge adds a WWW-Authenticate header for each supported scheme. The one for the scheme that
// the client used contains the error.
func (g *Guard) challenge(header http.Header, f *refusal) {
	header.Del("WWW-Authenticate")
	bound := f.scheme == dpop.Scheme && g.proofs != nil || g.bound
	if !g.bound {
		c := g.challengeOf(bearer, f, !bound)
		header.Add("WWW-Authenticate", c.String())
	}
	if g.proofs != nil {
		c := g.challengeOf(dpop.Scheme, f, bound)
		c.Set("algs", strings.Join(g.proofs.Algorithms(), " "))
		header.Add("WWW-Authenticate", c.String())
	}
}

func (g *Guard) challengeOf(scheme string, f *refusal, used bool) *metadata.Challenge {
	c := &metadata.Challenge{Scheme: scheme}
	if used {
		c.Set("error", f.code).Set("error_description", plain(f.reason))
	}
	if f.status != http.StatusBadRequest { // a bad request has nothing to do with the token
		c.Set("scope", strings.Join(g.allScopes(f.scopes), " "))
	}
	return c.Set("resource_metadata", g.metadataURL)
}

// allScopes returns the scopes that every request needs, and more. A token for the scopes of one
// challenge is then sufficient.
func (g *Guard) allScopes(more []string) []string {
	all := slices.Clone(g.opts.Scopes)
	for _, scope := range more {
		if !slices.Contains(all, scope) {
			all = append(all, scope)
		}
	}
	return all
}

// plain replaces the characters that RFC 6750, section 3, does not allow in a description.
func plain(s string) string { return strings.NewReplacer(`"`, "'", `\`, "/").Replace(s) }
