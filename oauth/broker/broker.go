// Package broker puts the login of an identity provider in front of an MCP server: Google, GitHub,
// Microsoft Entra ID, Okta, Keycloak, or any other that has OpenID Connect.
//
// MCP clients register themselves, by dynamic registration or a client ID metadata document, and need
// tokens for one resource. Most identity providers do neither. A [Broker] is an authorization server
// that does both, and logs users in at a provider:
//
//	b, err := broker.New(broker.Options{
//		Issuer:   "https://notes.example.com",
//		Resource: "https://notes.example.com/mcp",
//		Provider: broker.Google(clientID, clientSecret),
//		Domains:  []string{"example.com"},
//		Scopes:   map[string][]string{"notes:read": nil, "notes:write": {"editors"}},
//		Keys:     [][]byte{key},
//	})
//	http.ListenAndServe(addr, b.Protect(streamable.NewHandler(srv, nil)))
//
// It implements OAuth 2.1 as MCP demands it: metadata (RFC 8414, OpenID Connect Discovery), registration
// (RFC 7591), client ID metadata documents, codes with PKCE S256, rotating refresh tokens, revocation
// (RFC 7009), resource indicators (RFC 8707), iss in responses (RFC 9207), access tokens that are JWTs
// (RFC 9068), and DPoP (RFC 9449). All clients are public.
//
// A user allows each client on a page. Tokens of the provider stay in the broker; methods use them by
// [Broker.Upstream].
//
// A broker keeps logins in memory, or in an engine of package fleet, where replicas share them.
// Everything there is sealed with Options.Keys. A Broker is safe for concurrent use.
package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/text/language"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth/internal/dpop"
	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
)

const (
	maxBody        = 64 << 10
	requestTimeout = 10 * time.Second // of a request to the provider
)

// ErrRefused means that a user may not log in. [Options].Decide returns it.
var ErrRefused = errors.New("broker: the user may not log in")

// ErrEnded means that the login behind a token has ended: it was revoked, or the provider does not know
// the user any more.
var ErrEnded error = endedError{}

type endedError struct{}

func (endedError) Error() string { return "broker: the login has ended" }

// UserMessage returns a text for models and users.
func (endedError) UserMessage() string { return "the login has ended; log in again" }

// Options configures a [Broker].
type Options struct {
	// Issuer is the URL of the broker as clients know it: the origin at which its handler is served,
	// and perhaps a path. A broker has one provider: for another one, use another issuer.
	Issuer string
	// Resource is the URL of the MCP endpoint as clients know it. Tokens are for it alone.
	Resource string
	// Name is what users see as the name of the server. Empty means the host of Resource.
	Name string
	// Provider is where users log in.
	Provider Provider

	// Domains, Groups and Decide say who may log in. At least one of them is required; all that are
	// given must admit the user. Use [Anyone] to admit everybody who has an account at the provider.

	// Domains are domains of verified email addresses.
	Domains []string
	// Groups are groups of the provider. The user must be in one of them.
	Groups []string
	// Decide decides about a user whom Domains and Groups admit, at the login and at each refresh. It
	// returns the scopes that the user gets, which are some of those given: the requested ones that
	// Scopes allows. It returns [ErrRefused], perhaps wrapped, for a user who may not log in. Any
	// other error fails the request, and ends no login.
	Decide func(ctx context.Context, u *User, scopes []string) ([]string, error)
	// Scopes are the scopes of the resource, each with the groups whose members get it. A scope
	// without groups is for everybody who may log in.
	Scopes map[string][]string

	// Keys are random texts of at least 32 bytes. They seal what the broker, browsers and clients keep,
	// and sign access tokens. The first is used; the others still open and verify. To replace a key,
	// add the new one as the second everywhere, then put it first, then drop the old one: that ends the
	// logins and registrations that are older. Nil means a random key: a restart ends all logins.
	// Required with an Engine. The keys of mcpkit.StateKeys may be used here, too.
	Keys [][]byte
	// Engine keeps logins. All replicas share it. Nil keeps them in memory. [Broker.Close] closes it.
	Engine fleet.Engine

	// Translations are translations of the pages by language ("de"), each by the English text: see
	// [Texts]. The language of the browser decides. What is not translated is English.
	Translations map[string]map[string]string

	// Client sends requests to the provider. Nil means one that times out after 10 seconds.
	Client *http.Client
	// InsecureLoopback allows http for the broker, the provider and metadata documents of clients on
	// loopback addresses, for development and tests.
	InsecureLoopback bool
	// Logger receives logins and their end at level Info, refused requests at level Debug, and failures
	// at level Error, all without secrets. Nil means slog.Default.
	Logger *slog.Logger
}

// Anyone admits everybody who has an account at the provider. Use it as Options.Decide.
func Anyone(_ context.Context, _ *User, scopes []string) ([]string, error) { return scopes, nil }

// A Broker is an authorization server in front of an identity provider. It is an http.Handler of its
// endpoints and the metadata of the resource; [Broker.Protect] also serves the resource. Create one with
// [New].
type Broker struct {
	opts      Options
	origin    string // of the issuer
	base      string // path of the issuer, without a slash at the end
	secure    bool   // the issuer is https
	scopes    []string
	keys      *keyring
	jwks      []byte
	upstream  upstream
	documents *documents
	proofs    *dpop.Verifier
	guard     *resource.Guard
	mux       *http.ServeMux

	fleet                   *fleet.Fleet
	grants, consents, locks *fleet.Set

	languages    language.Matcher
	translations []map[string]string // as languages
}

// New returns a broker. It sends no requests: the provider is asked when the first user logs in. The
// error lists every mistake in opts.
func New(opts Options) (*Broker, error) {
	opts.Logger = cmp.Or(opts.Logger, slog.Default())
	opts.Client = cmp.Or(opts.Client, &http.Client{Timeout: requestTimeout})
	b := &Broker{opts: opts, scopes: slices.Sorted(maps.Keys(opts.Scopes)), mux: http.NewServeMux()}
	policy := metadata.Policy{InsecureLoopback: opts.InsecureLoopback}
	b.documents = newDocuments(policy)
	var faults []error
	check := func(err error) {
		if err != nil {
			faults = append(faults, fmt.Errorf("broker: %w", err))
		}
	}
	check(b.locate(policy))
	if len(opts.Domains)+len(opts.Groups) == 0 && opts.Decide == nil {
		check(errors.New("nobody may log in; give Domains, Groups or Decide, or set Decide to Anyone " +
			"to admit every account of the provider"))
	}
	if opts.Engine != nil && len(opts.Keys) == 0 {
		check(errors.New("replicas need the same Keys; give one of 32 random bytes"))
	}
	if opts.Engine == nil && len(opts.Keys) == 0 {
		opts.Logger.Warn("broker: the key is random: a restart ends all logins and registrations; set Options.Keys")
	}
	groups := len(opts.Groups) > 0 || opts.Decide != nil
	for _, needed := range opts.Scopes {
		groups = groups || len(needed) > 0
	}
	var err error
	b.upstream, err = newUpstream(opts.Provider, b.CallbackURL(), groups, policy)
	check(err)
	bound := []string{opts.Issuer, opts.Provider.Issuer, opts.Provider.ClientID}
	b.keys, err = newKeyring(opts.Keys, strings.Join(bound, "\x00"))
	check(err)
	check(b.translate())
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	b.jwks = must(jsonx.Marshal(b.keys.public()))
	b.share()
	if b.guard, err = resource.New(b.ResourceOptions()); err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	b.guard.Mount(b.mux)
	b.Mount(b.mux)
	return b, nil
}

// locate checks the URLs of the broker and its resource.
func (b *Broker) locate(policy metadata.Policy) error {
	// The addresses are the operator's own.
	policy.PrivateNetworks = everywhere
	u, err := policy.CheckURL(b.opts.Issuer)
	if err != nil {
		return fmt.Errorf("Options.Issuer: %w", err)
	}
	if strings.ContainsAny(b.opts.Issuer, "?#") {
		return errors.New("Options.Issuer has a query or a fragment; it must have none")
	}
	b.origin, b.base, b.secure = u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/"), u.Scheme == "https"
	if u, err = policy.CheckURL(b.opts.Resource); err != nil {
		return fmt.Errorf("Options.Resource: %w", err)
	}
	b.opts.Name = cmp.Or(b.opts.Name, u.Host)
	b.opts.Provider.Name = cmp.Or(b.opts.Provider.Name, b.opts.Provider.Issuer)
	return nil
}

// translate prepares the languages of the pages.
func (b *Broker) translate() error {
	tags := []language.Tag{language.English}
	b.translations = []map[string]string{nil}
	known := Texts()
	for _, name := range slices.Sorted(maps.Keys(b.opts.Translations)) {
		tag, err := language.Parse(name)
		if err != nil {
			return fmt.Errorf("Options.Translations: %q is not a language", name)
		}
		for text := range b.opts.Translations[name] {
			if !slices.Contains(known, text) {
				return fmt.Errorf("Options.Translations: %s: no page has the text %q", name, text)
			}
		}
		tags, b.translations = append(tags, tag), append(b.translations, b.opts.Translations[name])
	}
	b.languages = language.NewMatcher(tags)
	return nil
}

// share opens the engine.
func (b *Broker) share() {
	engine := b.opts.Engine
	if engine == nil {
		engine = fleet.NewMemory(fleet.MemoryOptions{})
	}
	b.fleet = fleet.New(engine, fleet.Options{Seal: b.keys.seal, Open: b.keys.open, Logger: b.opts.Logger})
	b.grants, b.consents = b.fleet.Set("broker-grants", 1), b.fleet.Set("broker-consents", 1)
	b.locks = b.fleet.Set("broker-locks", 1)
	replays := dpop.NewReplays(dpop.MaxReplays)
	replays.Fleet = b.ownFleet
	b.proofs = dpop.NewVerifier(replays)
}

func (b *Broker) ownFleet() *fleet.Fleet { return b.fleet }

// Close closes the engine. Logins that it keeps stay.
func (b *Broker) Close() error {
	b.opts.Client.CloseIdleConnections()
	b.documents.http.CloseIdleConnections()
	return b.fleet.Close()
}

// CallbackURL returns the redirect URI to register at the provider.
func (b *Broker) CallbackURL() string { return b.url("callback") }

// url returns the URL of an endpoint.
func (b *Broker) url(endpoint string) string { return b.origin + b.base + "/" + endpoint }

// ResourceOptions returns the options of a guard that accepts the tokens of the broker. The guard has
// the keys, and sends no requests. Use it for what [Broker.Protect] does not do, such as policies.
func (b *Broker) ResourceOptions() resource.Options {
	return resource.Options{
		Issuer: b.opts.Issuer, Resource: b.opts.Resource, ScopesSupported: b.scopes, Name: b.opts.Name,
		JWKS: b.jwks, DPoP: &resource.DPoP{Fleet: b.ownFleet}, InsecureLoopback: b.opts.InsecureLoopback,
		Logger: b.opts.Logger,
	}
}

// Protect returns a handler that serves the endpoints of the broker and the metadata of the resource, and
// passes all other requests to next if they have a token of the broker. For echo, use
// app.Use(echo.WrapMiddleware(b.Protect)).
func (b *Broker) Protect(next http.Handler) http.Handler {
	guarded := b.guard.Wrap(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h, pattern := b.mux.Handler(r); pattern != "" {
			h.ServeHTTP(w, r)
			return
		}
		guarded.ServeHTTP(w, r)
	})
}

// ServeHTTP serves the endpoints of the broker and the metadata of the resource.
func (b *Broker) ServeHTTP(w http.ResponseWriter, r *http.Request) { b.mux.ServeHTTP(w, r) }

// Mount registers the endpoints of the broker with an *http.ServeMux or a similar router. The metadata of
// the resource is that of the guard: see [Broker.ResourceOptions].
func (b *Broker) Mount(mux interface{ Handle(string, http.Handler) }) {
	for _, raw := range must(metadata.AuthorizationServerURLs(b.opts.Issuer)) {
		mux.Handle(strings.TrimPrefix(raw, b.origin), metadata.Document(b.describe()))
	}
	mux.Handle(b.base+"/jwks.json", metadata.Document(b.jwks))
	for path, serve := range map[string]http.HandlerFunc{
		"/register": b.answer(http.StatusCreated, b.register),
		"/token":    b.answer(http.StatusOK, b.token),
		"/revoke":   b.answer(http.StatusOK, b.revoke),
	} {
		mux.Handle("POST "+b.base+path, public(serve))
		mux.Handle("OPTIONS "+b.base+path, public(serve))
	}
	for pattern, serve := range map[string]http.HandlerFunc{
		"GET /authorize": b.begin, "GET /callback": b.callback, "GET /switch": b.switchAccount,
		"GET /consent": b.showConsent, "POST /consent": b.decide,
	} {
		verb, path, _ := strings.Cut(pattern, " ")
		mux.Handle(verb+" "+b.base+path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			serve(w, r)
		}))
	}
}

// public serves an endpoint that has no use for cookies, so that pages of any origin may call it.
func public(serve http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", "*")
		if r.Method != http.MethodOptions {
			serve.ServeHTTP(w, r)
			return
		}
		h.Set("Access-Control-Allow-Methods", "POST")
		h.Set("Access-Control-Allow-Headers", "Content-Type, DPoP, MCP-Protocol-Version")
		w.WriteHeader(http.StatusNoContent)
	}
}

// describe returns the metadata of the broker as JSON. Members of OpenID Connect Discovery are there for
// clients that look for nothing else; the broker issues no ID tokens.
func (b *Broker) describe() []byte {
	return must(jsonx.Marshal(map[string]any{
		"issuer":                                         b.opts.Issuer,
		"authorization_endpoint":                         b.url("authorize"),
		"token_endpoint":                                 b.url("token"),
		"registration_endpoint":                          b.url("register"),
		"revocation_endpoint":                            b.url("revoke"),
		"jwks_uri":                                       b.url("jwks.json"),
		"scopes_supported":                               b.scopes,
		"response_types_supported":                       []string{"code"},
		"grant_types_supported":                          []string{grantCode, grantRefresh},
		"token_endpoint_auth_methods_supported":          []string{"none"},
		"code_challenge_methods_supported":               []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
		"client_id_metadata_document_supported":          true,
		"dpop_signing_alg_values_supported":              b.proofs.Algorithms(),
		"subject_types_supported":                        []string{"public"},
		"id_token_signing_alg_values_supported":          []string{"EdDSA"},
	}))
}

// outgoing returns a context for requests to the provider, which libraries send.
func (b *Broker) outgoing(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, b.opts.Client)
}

type refusal = metadata.Refusal

var refuse = metadata.Refuse

// answer serves an endpoint whose responses must not be cached.
func (b *Broker) answer(status int, serve func(r *http.Request) (any, error)) http.HandlerFunc {
	return metadata.Endpoint(status, serve, func(ctx context.Context, err error) {
		level := slog.LevelError
		if _, refused := errors.AsType[*refusal](err); refused {
			level = slog.LevelDebug
		}
		b.opts.Logger.Log(ctx, level, "broker: a request failed", "reason", err)
	})
}
