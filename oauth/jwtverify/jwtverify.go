// Package jwtverify returns the principal of an access token. It checks the signature of JWTs (RFC
// 9068) with a [Verifier], and asks the authorization server about other tokens (RFC 7662) with an
// [Introspector].
//
// Both return an [*oauth.TokenError] for a token that they reject, and any other error if the token
// could not be checked. Both are safe for concurrent use. They neither keep nor log tokens: caches
// are indexed by SHA-256.
package jwtverify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcpkit/mcpkit-go/internal/expiring"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/internal/claims"
	"github.com/mcpkit/mcpkit-go/oauth/internal/fetch"
	"github.com/mcpkit/mcpkit-go/oauth/internal/keys"
)

// Defaults of [Options] and [IntrospectorOptions].
const (
	DefaultLeeway      = 30 * time.Second
	DefaultCacheTime   = 60 * time.Second
	DefaultCacheSize   = 4096
	DefaultMinRefresh  = 10 * time.Second
	DefaultMaxKeyAge   = time.Hour
	DefaultRefusalTime = 5 * time.Second
	DefaultMaxRequests = 16
)

// maxTokenBytes is the size of the largest token that is parsed.
const maxTokenBytes = 16 << 10

// Options configures a [Verifier]. Issuer and Audience are required.
type Options struct {
	// Issuer is the required iss of tokens. It is compared byte by byte.
	Issuer string
	// Audience are the names of this resource. The aud of a token must contain one of them. Use the
	// URL of the MCP endpoint (RFC 8707) and any other name that the authorization server uses.
	Audience []string

	// JWKS is a fixed key set, as JSON. JWKSURI is the URL of a key set. If both are empty, the
	// metadata of the issuer names the URL (RFC 8414, then OpenID Connect Discovery).
	JWKS    []byte
	JWKSURI string

	// Algorithms are the accepted JWS algorithms. Nil means RS256, RS384, RS512, PS256, PS384,
	// PS512, ES256, ES384, ES512 and EdDSA. Symmetric algorithms and "none" are an error.
	Algorithms []string
	// AllowUntyped also accepts tokens whose typ is missing or "JWT". Many authorization servers
	// issue such tokens, among them Entra ID, Auth0 and Keycloak with default settings. An ID token
	// of the same issuer and audience is then accepted as an access token, so give ID tokens
	// another audience. By default the typ must be "at+jwt" (RFC 9068).
	AllowUntyped bool
	// Leeway is the allowed clock difference. Zero means [DefaultLeeway]. Negative means none.
	Leeway time.Duration

	// CacheTime is how long an accepted token is cached, and never beyond its expiry. Zero means
	// [DefaultCacheTime]. Negative disables the cache. CacheSize is the number of cached tokens.
	// Zero means [DefaultCacheSize].
	CacheTime time.Duration
	CacheSize int

	// MinRefresh is the minimum time between two fetches of the keys. Zero means
	// [DefaultMinRefresh]. Until then a token with a new key is not rejected: Verify returns an
	// error that is not an [oauth.TokenError]. MaxKeyAge is the age at which keys are fetched
	// again. Zero means [DefaultMaxKeyAge]. If that fails, old keys are used for up to 24 hours.
	MinRefresh, MaxKeyAge time.Duration

	// Fetch configures how keys and metadata are fetched.
	Fetch Fetch
	// Logger receives a warning if keys cannot be fetched, and one if the tokens of the issuer need
	// AllowUntyped. Nil means slog.Default.
	Logger *slog.Logger
}

// Fetch configures requests to an authorization server. The zero value uses https only and connects
// to public addresses only, whatever names resolve to. Redirects must stay at one origin.
type Fetch struct {
	// InsecureLoopback also allows loopback addresses, with http or https. For development and
	// tests.
	InsecureLoopback bool
	// PrivateNetworks are non-public networks that are allowed with https, for example that of an
	// enterprise's identity provider.
	PrivateNetworks []netip.Prefix
	// Client sends the requests instead of the guarded client. Client must check the addresses that
	// it connects to.
	Client *http.Client
}

func (f Fetch) policy() fetch.Policy {
	return fetch.Policy{InsecureLoopback: f.InsecureLoopback, PrivateNetworks: f.PrivateNetworks}
}

func (f Fetch) client() *http.Client {
	if f.Client != nil {
		return f.Client
	}
	return f.policy().Client()
}

// A Verifier checks access tokens that are JWTs. It is an [oauth.Verifier], safe for concurrent
// use. Create one with [New].
type Verifier struct {
	check      claims.Check
	algorithms []jose.SignatureAlgorithm
	anyType    bool
	keys       *keySet
	cache      *tokenCache
	now        func() time.Time
	logger     *slog.Logger
	hintOnce   sync.Once // about tokens of another type
}

var _ oauth.Verifier = (*Verifier)(nil)

// New returns a verifier. It fetches nothing until the first token arrives. The error lists every
// mistake in opts.
func New(opts Options) (*Verifier, error) {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("jwtverify: "+format, args...)) }
	if err := checkNames(opts.Issuer, opts.Audience); err != nil {
		faults = append(faults, err)
	}
	opts.Logger = cmp.Or(opts.Logger, slog.Default())
	algs, err := keys.Parse(opts.Algorithms)
	if err != nil {
		fault("%w", err)
	}
	v := &Verifier{
		check:      claims.Check{Issuer: opts.Issuer, NeedIssuer: true, Audience: opts.Audience, NeedExpiry: true, Leeway: leeway(opts.Leeway)},
		algorithms: algs,
		anyType:    opts.AllowUntyped,
		cache:      newTokenCache(opts.CacheTime, opts.CacheSize),
		now:        time.Now,
		logger:     opts.Logger,
	}
	if v.keys, err = newKeySet(&opts); err != nil {
		fault("%w", err)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return v, nil
}

// checkNames returns an error if the issuer or the audience is missing.
func checkNames(issuer string, audience []string) (err error) {
	if issuer == "" {
		err = errors.New("jwtverify: Issuer is empty; name the issuer whose tokens are accepted")
	}
	if len(audience) == 0 || slices.Contains(audience, "") {
		err = errors.Join(err, fmt.Errorf("jwtverify: Audience is empty; name this resource, for example %q", "https://mcp.example.com/mcp"))
	}
	return err
}

func leeway(d time.Duration) time.Duration {
	if d == 0 {
		return DefaultLeeway
	}
	return max(d, 0)
}

// Verify returns the principal of a token. Its Claims are the claims of the token. It returns an
// [*oauth.TokenError] for a token that it rejects, and another error if the keys could not be
// fetched.
func (v *Verifier) Verify(ctx context.Context, token string) (*oauth.Principal, error) {
	now := v.now()
	sum := sha256.Sum256([]byte(token))
	if p, ok := v.cache.Get(sum, now); ok {
		return p, nil
	}
	all, err := v.open(ctx, token)
	if err != nil {
		return nil, err
	}
	p, err := v.check.Verify(all, now)
	if err != nil {
		return nil, err
	}
	v.cache.put(sum, p, now)
	return p, nil
}

func refuse(reason string) error { return &oauth.TokenError{Reason: reason} }

// open checks the signature of a token and returns its claims.
func (v *Verifier) open(ctx context.Context, token string) (map[string]any, error) {
	if len(token) > maxTokenBytes {
		return nil, refuse("it is too large")
	}
	jws, err := jose.ParseSignedCompact(token, v.algorithms)
	if err != nil {
		if _, ok := errors.AsType[*jose.ErrUnexpectedSignatureAlgorithm](err); ok {
			return nil, refuse("its algorithm is not allowed")
		}
		return nil, refuse("it is not a signed JWT")
	}
	// Keys that the token itself brings or points to (jwk, jku, x5c, x5u) are never used.
	header := jws.Signatures[0].Protected
	kind := kindOf(header.ExtraHeaders[jose.HeaderType])
	if kind == otherJWT {
		return nil, refuse(reasonType)
	}
	payload, err := v.verify(ctx, jws)
	if err != nil {
		return nil, err
	}
	if kind == untyped && !v.anyType {
		v.hintOnce.Do(func() {
			v.logger.WarnContext(ctx, `jwtverify: a token of the issuer is rejected because its typ is not "at+jwt" (RFC 9068); `+
				`if its access tokens have no such typ, set Options.AllowUntyped`, "issuer", v.check.Issuer)
		})
		return nil, refuse(reasonType)
	}
	var all map[string]any
	if jsonx.Unmarshal(payload, &all) != nil || all == nil {
		return nil, refuse("its claims are not a JSON object")
	}
	return all, nil
}

// verify returns the payload of a token that a key of the issuer has signed.
func (v *Verifier) verify(ctx context.Context, jws *jose.JSONWebSignature) ([]byte, error) {
	header, issued := jws.Signatures[0].Protected, issuedAt(jws.UnsafePayloadWithoutVerification())
	for again := false; ; again = true {
		candidates, err := v.keys.find(ctx, header.KeyID, header.Algorithm, issued)
		if err != nil {
			return nil, err
		}
		for _, key := range candidates {
			if payload, err := jws.Verify(key); err == nil {
				return payload, nil
			}
		}
		if header.KeyID != "" || again {
			return nil, refuse("its signature is wrong")
		}
		// The key may be a new one, which no kid tells.
		_, err = v.keys.find(ctx, noKey, header.Algorithm, issued)
		if _, decided := errors.AsType[*oauth.TokenError](err); err != nil && !decided {
			return nil, err
		}
	}
}

const reasonType = "its typ is not that of an access token"

// issuedAt reads iat from unverified claims. It returns zero if there is none.
func issuedAt(payload []byte) time.Time {
	var c struct {
		IssuedAt any `json:"iat"`
	}
	if jsonx.Unmarshal(payload, &c) != nil {
		return time.Time{}
	}
	t, _ := claims.Date(c.IssuedAt)
	return t
}

type tokenKind int

const (
	accessToken tokenKind = iota // "at+jwt"
	untyped                      // none, or "JWT"
	otherJWT                     // a proof, an assertion, a logout token
)

// kindOf reads typ as a media type without the optional prefix "application/" (RFC 7515, section
// 4.1.9).
func kindOf(typ any) tokenKind {
	name, isText := typ.(string)
	if typ != nil && !isText {
		return otherJWT
	}
	switch strings.TrimPrefix(strings.ToLower(name), "application/") {
	case "at+jwt":
		return accessToken
	case "", "jwt":
		return untyped
	}
	return otherJWT
}

// A tokenCache holds the principals of accepted tokens.
type tokenCache struct {
	*expiring.Map[[sha256.Size]byte, *oauth.Principal]
	most time.Duration
}

func newTokenCache(most time.Duration, size int) *tokenCache {
	most, size = cacheLimits(most, DefaultCacheTime, size)
	return &tokenCache{expiring.New[[sha256.Size]byte, *oauth.Principal](size), most}
}

// cacheLimits applies defaults. A negative time disables the cache.
func cacheLimits(most, standard time.Duration, size int) (time.Duration, int) {
	if most < 0 {
		return most, 0
	}
	return cmp.Or(most, standard), cmp.Or(size, DefaultCacheSize)
}

func (c *tokenCache) put(sum [sha256.Size]byte, p *oauth.Principal, now time.Time) {
	until := now.Add(c.most)
	if !p.Expires.IsZero() && p.Expires.Before(until) {
		until = p.Expires
	}
	c.Put(sum, p, until)
}

// OneOf returns a verifier for tokens of several issuers. Each token is checked by the verifier of
// the issuer that it names. OneOf returns an error without verifiers, for a nil verifier, and for
// two verifiers of one issuer.
func OneOf(verifiers ...*Verifier) (oauth.Verifier, error) {
	m := make(multi, len(verifiers))
	for _, v := range verifiers {
		if v == nil {
			return nil, errors.New("jwtverify: OneOf was given a verifier that is nil")
		}
		if m[v.check.Issuer] != nil {
			return nil, fmt.Errorf("jwtverify: the issuer %q is given twice", v.check.Issuer)
		}
		m[v.check.Issuer] = v
	}
	if len(m) == 0 {
		return nil, errors.New("jwtverify: OneOf needs a verifier")
	}
	return m, nil
}

type multi map[string]*Verifier

func (m multi) Verify(ctx context.Context, token string) (*oauth.Principal, error) {
	if len(token) > maxTokenBytes {
		return nil, refuse("it is too large")
	}
	// The unverified issuer only selects the verifier, which checks the signature.
	_, rest, _ := strings.Cut(token, ".")
	payload, _, ok := strings.Cut(rest, ".")
	if !ok {
		return nil, refuse("it is not a signed JWT")
	}
	v := m[issuerOf(payload)]
	if v == nil {
		return nil, refuse("it is of another issuer")
	}
	return v.Verify(ctx, token)
}
