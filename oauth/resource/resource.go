// Package resource protects an MCP server over HTTP, which OAuth calls a resource. It checks the access
// token of each request (RFC 6750, RFC 9068, RFC 9449) and tells clients where to get one (RFC 9728).
//
// A [Guard] is plain net/http middleware, for any handler and any router:
//
//	guard, err := resource.New(resource.Options{
//		Issuer:   "https://login.example.com",
//		Resource: "https://mcp.example.com/mcp",
//		Scopes:   []string{"notes:read"},
//	})
//	guard.Mount(mux) // the metadata
//	mux.Handle("/mcp", guard.Wrap(streamable.NewHandler(srv, nil)))
//
// The guard finds the issuer's keys by its metadata, and caches them. The handler behind the guard
// reads the principal with [oauth.FromContext]. It never sees the token, because the guard removes it
// from the request. The guard neither keeps nor logs tokens: its cache is indexed by SHA-256.
//
// Rejected requests get status 400, 401 or 403, with a challenge where a token would help, and 503 if
// the token could not be checked. [New] is the only function that returns an error. A Guard is safe
// for concurrent use.
package resource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/internal/dpop"
	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
)

// Options configures a [Guard]. Issuer and Resource are required.
type Options struct {
	// Issuer is the authorization server at which clients get tokens. The iss of a token must be
	// identical to it.
	Issuer string
	// OtherIssuers are further authorization servers whose JWTs are accepted.
	OtherIssuers []string
	// Resource is the identifier of the resource: the URL of the MCP endpoint as clients know it.
	// The aud of a token must contain it, or one of the names in Audience, which are further ones
	// that the authorization server uses.
	Resource string
	Audience []string

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
	// Anonymous accepts requests without a token, without a principal. They fail where scopes are
	// required: with 401 and a challenge if the handler demands them.
	Anonymous bool

	// JWKS is a fixed key set, as JSON. JWKSURI is the URL of a key set. If both are empty, the
	// metadata of the issuer names the URL (RFC 8414, then OpenID Connect Discovery). They belong to
	// Issuer; the keys of OtherIssuers are always found by their metadata.
	JWKS    []byte
	JWKSURI string
	// Algorithms are the accepted JWS algorithms of tokens. Nil means RS256, RS384, RS512, PS256,
	// PS384, PS512, ES256, ES384, ES512 and EdDSA. Symmetric algorithms and "none" are an error.
	Algorithms []string
	// AllowUntyped also accepts tokens whose typ is missing or "JWT". Many authorization servers
	// issue such tokens, among them Entra ID, Auth0 and Keycloak with default settings. An ID token
	// of the same issuer and audience is then accepted as an access token, so give ID tokens
	// another audience. By default the typ must be "at+jwt" (RFC 9068).
	AllowUntyped bool
	// Introspection asks the authorization server about tokens instead of checking JWTs. Nil means
	// that tokens are JWTs.
	Introspection *Introspection
	// CacheTime is how long an accepted token is cached, and never beyond its expiry. A revoked
	// token is accepted for that long. Zero means a minute. Negative disables the cache.
	CacheTime time.Duration
	// Verifier returns the principals of tokens in another way. It must require Resource as the
	// audience. Nil means that tokens are JWTs or introspected.
	Verifier oauth.Verifier

	// DPoP accepts tokens that are bound to a key of the client. Nil rejects such tokens.
	DPoP *DPoP

	// AllowedOrigins are the origins ("https://app.example.com") whose pages may read error
	// responses. Use the same list as in the options of the transport. The guard answers their
	// preflight requests, which carry no token, unless CORS middleware in front does.
	AllowedOrigins []string
	// Name is published for people. Empty means none.
	Name string

	// The authorization server must have public addresses, whatever its name resolves to, and use
	// https. InsecureLoopback also allows loopback addresses, with http or https, for development
	// and tests. PrivateNetworks are non-public networks that are allowed with https, for example
	// that of an enterprise's identity provider.
	InsecureLoopback bool
	PrivateNetworks  []netip.Prefix
	// Client sends requests to the authorization server instead of the guarded client. Client must
	// check the addresses that it connects to.
	Client *http.Client

	// Logger receives rejected requests and the reason, at level Debug. Failures to check a token
	// are logged at level Error, at most once a second, and at level Debug beyond that. It also
	// receives a warning if keys cannot be fetched, and one if the tokens of an issuer need
	// AllowUntyped. Nil means slog.Default.
	Logger *slog.Logger
}

// Introspection configures questions to the authorization server about tokens (RFC 7662), for tokens
// that are not JWTs or that must stop working once they are revoked. Up to 16 questions are asked at a
// time; a rejected token is cached for 5 seconds.
type Introspection struct {
	// Endpoint is the introspection endpoint of the authorization server.
	Endpoint string
	// ClientID and ClientSecret authenticate this resource at the endpoint (client_secret_basic).
	// Empty if the endpoint authenticates it in another way, for example by the certificate of
	// Options.Client.
	ClientID, ClientSecret string
}

// DPoP configures tokens that are bound to a key of the client. Each proof is accepted once, at most 5
// minutes before or after it was made.
type DPoP struct {
	// Required rejects tokens that are not bound to a key.
	Required bool
	// Fleet returns the fleet in which replicas share used proofs, and nil if there is none: see
	// mcpkit.Server.Fleet. Nil means that each process remembers the proofs that it has received.
	Fleet func() *fleet.Fleet

	replays *dpop.Replays // of tests
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
	verifier    oauth.Verifier
	proofs      *dpop.Verifier // nil without DPoP
	bound       bool           // tokens have to be bound to a key
	origin      string
	local       bool // origin is this machine
	metadataURL string
	paths       []string
	document    []byte
	rules       httpserve.Guard
	complained  atomic.Int64 // when the last error was logged, in Unix nanoseconds; 0 for never
}

// New returns a guard. It fetches nothing until the first token arrives. The error lists every mistake
// in opts.
func New(opts Options) (*Guard, error) {
	opts.Logger = cmp.Or(opts.Logger, slog.Default())
	// The handler behind the guard decides which hosts and origins it serves.
	g := &Guard{opts: opts, verifier: opts.Verifier, rules: httpserve.NewGuard(opts.AllowedOrigins, []string{"*"})}
	var faults []error
	check := func(err error) {
		if err != nil {
			faults = append(faults, fmt.Errorf("resource: %w", err))
		}
	}
	for _, issuer := range g.issuers() {
		_, err := metadata.AuthorizationServerURLs(issuer)
		check(err)
	}
	for _, scope := range slices.Concat(opts.Scopes, opts.ScopesSupported) {
		check(checkScope(scope))
	}
	check(g.locate())
	if g.verifier == nil {
		var err error
		g.verifier, err = newVerifier(&g.opts)
		check(err)
	}
	if d := opts.DPoP; d != nil {
		replays := cmp.Or(d.replays, dpop.NewReplays(dpop.MaxReplays))
		replays.Fleet = d.Fleet
		g.proofs, g.bound = dpop.NewVerifier(replays), d.Required
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	if err := g.describe(); err != nil {
		return nil, fmt.Errorf("resource: %w", err)
	}
	if strings.HasPrefix(g.origin, "http:") && !g.local {
		g.opts.Logger.Warn("resource: tokens for this resource travel without protection; serve it by https",
			"resource", opts.Resource)
	}
	return g, nil
}

func (g *Guard) issuers() []string { return append([]string{g.opts.Issuer}, g.opts.OtherIssuers...) }

// checkScope returns an error for a text that is not a scope of a resource (RFC 6749, section 3.3).
func checkScope(s string) error {
	switch {
	case s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }):
		return fmt.Errorf("%q is not a scope: a scope is one word without quotes", s)
	case s == "offline_access":
		return fmt.Errorf("%q is not a scope of a resource: "+
			"clients request it from the authorization server themselves; leave it out", s)
	}
	return nil
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
		if g.rules.Refuse(r) == "" && httpserve.CORS(w, r, http.MethodPost, http.MethodGet, http.MethodDelete) {
			return
		}
		p, refusal := g.authenticate(r)
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

// audience returns the names of the resource, one of which must be in aud.
func (o *Options) audience() []string { return append([]string{o.Resource}, o.Audience...) }

// policy returns the rules for URLs and addresses of authorization servers.
func (o *Options) policy() metadata.Policy {
	return metadata.Policy{InsecureLoopback: o.InsecureLoopback, PrivateNetworks: o.PrivateNetworks}
}

// client returns the client for requests to authorization servers.
func (o *Options) client() *http.Client {
	if o.Client != nil {
		return o.Client
	}
	return o.policy().Client()
}
