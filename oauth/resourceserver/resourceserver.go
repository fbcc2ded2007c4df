// Package resourceserver authenticates the requests to an MCP server over HTTP. It checks the
// access token of each request (RFC 6750, RFC 9449) and tells clients where to get one (RFC 9728).
//
// A [Guard] is plain net/http middleware, for any handler and any router:
//
//	guard, err := resourceserver.New(resourceserver.Options{
//		Resource:             "https://mcp.example.com/mcp",
//		AuthorizationServers: []string{"https://login.example.com"},
//		Verifier:             verifier,
//	})
//	guard.Mount(mux) // the metadata
//	mux.Handle("/mcp", guard.Wrap(streamable.NewHandler(srv, nil)))
//
// The handler behind the guard reads the principal with [oauth.FromContext]. It never sees the
// token, because the guard removes it from the request. The guard does not log tokens.
//
// Rejected requests get status 400, 401 or 403, with a challenge where a token would help. They get
// 429 if a client sends too many proofs, and 503 if the token could not be checked. [New] is the
// only function that returns an error. A Guard is safe for concurrent use.
package resourceserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/mcpkit/mcpkit-go/internal/httpguard"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/dpop"
	"github.com/mcpkit/mcpkit-go/oauth/metadata"
)

// Options configures a [Guard]. Resource, AuthorizationServers and Verifier are required.
type Options struct {
	// Resource is the identifier of the resource: the URL of the MCP endpoint as clients know it.
	// The verifier must require it as the audience.
	Resource string
	// AuthorizationServers are the issuers at which clients get tokens.
	AuthorizationServers []string
	// Verifier returns the principal of a token.
	Verifier oauth.Verifier

	// Scopes are required for every request. A caller that lacks one gets status 403 with a
	// challenge that lists all of them.
	Scopes []string
	// ScopesSupported are the scopes that clients may request, published in the metadata. Nil means
	// those of Scopes. Do not list offline_access, which is not a scope of a resource.
	ScopesSupported []string
	// Includes lists the scopes that a scope contains: {"notes:admin": {"notes:read",
	// "notes:write"}}.
	Includes map[string][]string

	// Policies decide in this order whether an authenticated principal may enter. See [Policy].
	Policies []Policy

	// DPoP checks tokens that are bound to a key of the client. Nil rejects such tokens.
	DPoP *dpop.Verifier
	// RequireDPoP rejects tokens that are not bound to a key.
	RequireDPoP bool
	// RequestURL returns the URL as the client sees it, which DPoP proofs must name. Nil means the
	// origin of Resource with the path of the request. Set it behind a proxy that changes paths.
	RequestURL func(*http.Request) string

	// Anonymous accepts requests without a token, without a principal. They fail where scopes are
	// required: with 401 and a challenge if the handler demands them.
	Anonymous bool

	// AllowedOrigins are the origins ("https://app.example.com") whose pages may read error
	// responses. Use the same list as in the options of the transport. The guard answers their
	// preflight requests, which carry no token, unless CORS middleware in front does.
	AllowedOrigins []string

	// Name, Documentation, Policy and Terms are published for people: a name, and URLs. Empty ones
	// are left out.
	Name, Documentation, Policy, Terms string

	// Logger receives rejected requests and the reason, at level Debug. Failures to check a token
	// are logged at level Error, at most once a second, and at level Debug beyond that. Nil means
	// slog.Default.
	Logger *slog.Logger
}

// A Policy decides whether a principal may enter. Return a [*oauth.TokenError] to reject the token
// (401), an [*oauth.InsufficientScopeError] to require scopes (403 with a challenge), and any other
// error to reject the principal (403). The text of any other error is only logged. ctx is the
// context of the request. A Policy must be safe for concurrent use.
type Policy func(ctx context.Context, p *oauth.Principal) error

// A Guard authenticates requests before they reach a handler. It is safe for concurrent use. Create
// one with [New].
type Guard struct {
	opts        Options
	origin      string
	local       bool // origin is this machine
	metadataURL string
	paths       []string
	document    []byte
	rules       httpguard.Rules
	complained  atomic.Int64 // when the last error was logged, in Unix nanoseconds; 0 for never
}

// New returns a guard. The error lists every mistake in opts.
func New(opts Options) (*Guard, error) {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("resourceserver: "+format, args...))
	}
	if opts.Verifier == nil {
		fault("Verifier is nil; see package jwtverify")
	}
	if len(opts.AuthorizationServers) == 0 {
		fault("AuthorizationServers is empty; name the issuer at which clients get tokens")
	}
	for _, issuer := range opts.AuthorizationServers {
		if _, err := metadata.AuthorizationServerURLs(issuer); err != nil {
			fault("AuthorizationServers: %w", err)
		}
	}
	if opts.RequireDPoP && opts.DPoP == nil {
		fault("RequireDPoP without DPoP")
	}
	for _, scope := range slices.Concat(opts.Scopes, opts.ScopesSupported) {
		switch {
		case !isScope(scope):
			fault("%q is not a scope: a scope is one word without quotes", scope)
		case scope == "offline_access":
			fault("%q is not a scope of a resource: clients request it from the authorization server themselves; leave it out", scope)
		}
	}
	opts.Logger = cmp.Or(opts.Logger, slog.Default())
	// The handler behind the guard decides which hosts and origins it serves.
	g := &Guard{opts: opts, rules: httpguard.New(opts.AllowedOrigins, []string{"*"})}
	if err := g.locate(); err != nil {
		fault("%w", err)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	if err := g.describe(); err != nil {
		return nil, fmt.Errorf("resourceserver: %w", err)
	}
	if strings.HasPrefix(g.origin, "http:") && !g.local {
		opts.Logger.Warn("resourceserver: tokens for this resource travel without protection; serve it by https", "resource", opts.Resource)
	}
	if g.opts.RequestURL == nil {
		g.opts.RequestURL = g.requestURL
	}
	return g, nil
}

// isScope reports whether s has the syntax of a scope (RFC 6749, section 3.3).
func isScope(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' })
}

// requestURL returns the URL that the client requested. It uses the request line, because mounting
// below a prefix changes r.URL.
func (g *Guard) requestURL(r *http.Request) string {
	if u, err := url.ParseRequestURI(r.RequestURI); err == nil {
		return g.origin + u.EscapedPath()
	}
	return g.origin + r.URL.EscapedPath()
}

// Wrap returns a handler that authenticates each request before it calls next. For echo, use
// echo.WrapMiddleware(guard.Wrap).
func (g *Guard) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.rules.Refuse(r) == "" && httpguard.Share(w, r, http.MethodPost, http.MethodGet, http.MethodDelete) {
			return
		}
		p, refusal := g.authenticate(r)
		if nonce := g.nonce(); nonce != "" {
			w.Header().Set(dpop.NonceHeader, nonce)
		}
		if refusal != nil {
			g.refuse(w, r, refusal)
			return
		}
		ctx, demand := oauth.WithScopeDemand(r.Context())
		if p != nil {
			ctx = oauth.NewContext(ctx, p)
		}
		inner := r.WithContext(ctx)
		inner.Header = maps.Clone(r.Header)
		inner.Header.Del("Authorization")
		inner.Header.Del(dpop.Header)
		scheme, _, _ := credentials(r.Header)
		next.ServeHTTP(&writer{ResponseWriter: w, guard: g, demand: demand, scheme: scheme}, inner)
	})
}

func (g *Guard) nonce() string {
	if g.opts.DPoP == nil {
		return ""
	}
	return g.opts.DPoP.Nonce()
}

// A writer adds the challenge to a 403 response that was caused by missing scopes, and makes it 401
// for a request without a token.
type writer struct {
	http.ResponseWriter
	guard  *Guard
	demand *oauth.ScopeDemand
	scheme string // the scheme of the request; "" for none
}

// WriteHeader sends the status, and adds the challenge if scopes were missing.
func (w *writer) WriteHeader(status int) {
	if status == http.StatusForbidden {
		if scopes := w.demand.Scopes(); scopes != nil {
			refused := insufficient()
			if w.scheme == "" { // no token lacks them: the client has to log in
				refused = &refusal{status: http.StatusUnauthorized}
			}
			status, refused.scheme, refused.scopes = refused.status, w.scheme, scopes
			w.guard.challenge(w.Header(), refused)
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the underlying writer, for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
