// Package resourceserver is the door of an MCP server over HTTP: it asks who a request comes from, by the access token
// that it carries (RFC 6750, RFC 9449), tells clients where to get one (RFC 9728), and leaves everything else to the
// handler behind it.
//
// It is plain net/http, so it stands in front of any handler and in any router:
//
//	guard, err := resourceserver.New(resourceserver.Options{
//		Resource:             "https://mcp.example.com/mcp",
//		AuthorizationServers: []string{"https://login.example.com"},
//		Verifier:             verifier,
//	})
//	guard.Mount(mux) // the metadata
//	mux.Handle("/mcp", guard.Wrap(streamable.NewHandler(srv, nil)))
//
// What stands behind finds the principal by [oauth.FromContext]. It never sees the token: the fields that carry it are
// taken out of the request. Nothing here logs a token either.
package resourceserver

import (
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

// Options configures a [Guard]. Resource, AuthorizationServers and Verifier are needed.
type Options struct {
	// Resource is the identifier of the resource: the URL of the MCP endpoint, as clients know it. The verifier has to
	// demand it as the audience.
	Resource string
	// AuthorizationServers are the issuers at which clients get tokens.
	AuthorizationServers []string
	// Verifier tells who tokens stand for.
	Verifier oauth.Verifier

	// Scopes are needed for every request. Who lacks one is answered 403, with all of them in the challenge.
	Scopes []string
	// ScopesSupported are the scopes that clients may ask for; they are published. Nil means those of Scopes. Not
	// offline_access: it is no scope of a resource.
	ScopesSupported []string
	// Includes says which scopes a scope stands for besides itself: {"notes:admin": {"notes:read", "notes:write"}}.
	Includes map[string][]string

	// Policies decide who may enter, after the token was found good, in this order; see [Policy].
	Policies []Policy

	// DPoP, when set, takes tokens that are bound to a key of the client. Without it such tokens are refused.
	DPoP *dpop.Verifier
	// RequireDPoP refuses tokens that are not bound to a key.
	RequireDPoP bool
	// RequestURL is the URL by which a client knows what it asks: a proof of DPoP must be for it. Nil means the origin
	// of Resource with the path of the request, which is wrong behind a proxy that changes paths.
	RequestURL func(*http.Request) string

	// Anonymous lets requests without a token pass, without a principal. What demands scopes stays out of their reach.
	Anonymous bool

	// AllowedOrigins are the origins ("https://app.example.com") whose pages may read refusals, as those of the
	// binding's options may read answers: give both the same. Their preflights, which carry no token, are answered
	// here, unless a CORS middleware in front does.
	AllowedOrigins []string

	// Name, Documentation, Policy and Terms are published for people: a name and URLs. Empty ones are left out.
	Name, Documentation, Policy, Terms string

	// Logger receives which requests were refused and why, at level Debug. That it could not be found out who asks is
	// logged at level Error, at most once a second, and beyond that at level Debug. Nil means slog.Default.
	Logger *slog.Logger
}

// A Policy decides whether a principal may enter. A [*oauth.TokenError] refuses the token (401), an
// [*oauth.InsufficientScopeError] demands scopes (403 with a challenge), and any other error the principal (403). The
// text of an error that is neither goes to the log only. ctx is that of the request.
type Policy func(ctx context.Context, p *oauth.Principal) error

// A Guard stands in front of handlers. It is safe for concurrent use. Make one with [New].
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

// New makes a guard. The error says every mistake in opts.
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
			fault("%q is no scope: a scope is one word without quotes", scope)
		case scope == "offline_access":
			fault("%q is no scope of a resource: clients ask the authorization server for it themselves; leave it out", scope)
		}
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	// Whether hosts and other origins are served at all is for what stands behind to say.
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

// isScope holds a scope to RFC 6749, section 3.3.
func isScope(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' })
}

// requestURL is the URL that the client asked for. The path is the one of the request line: mounting below a prefix
// changes r.URL.
func (g *Guard) requestURL(r *http.Request) string {
	if u, err := url.ParseRequestURI(r.RequestURI); err == nil {
		return g.origin + u.EscapedPath()
	}
	return g.origin + r.URL.EscapedPath()
}

// Wrap puts the guard in front of a handler. As middleware of echo it is echo.WrapMiddleware(guard.Wrap).
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

// A writer adds the challenge to a 403 that was answered for want of scopes.
type writer struct {
	http.ResponseWriter
	guard  *Guard
	demand *oauth.ScopeDemand
	scheme string // that the client used; "" for none
}

// WriteHeader sends the status, with the challenge that belongs to it.
func (w *writer) WriteHeader(status int) {
	if status == http.StatusForbidden {
		if scopes := w.demand.Scopes(); scopes != nil {
			refused := insufficient()
			refused.scheme, refused.scopes = w.scheme, scopes
			w.guard.challenge(w.Header(), refused)
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach what is below.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
