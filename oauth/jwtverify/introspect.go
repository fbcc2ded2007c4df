package jwtverify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/expiring"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/internal/claims"
	"github.com/mcpkit/mcpkit-go/oauth/internal/fetch"
)

// IntrospectorOptions configures an [Introspector]. Endpoint, Issuer and Audience are required.
type IntrospectorOptions struct {
	// Endpoint is the introspection endpoint of the authorization server.
	Endpoint string
	// ClientID and ClientSecret authenticate this resource at the endpoint (client_secret_basic).
	// Empty if the endpoint authenticates it in another way, for example by the certificate of
	// Fetch.Client.
	ClientID, ClientSecret string

	// Issuer is the issuer of the principals. A response that names another issuer is rejected.
	Issuer string
	// Audience are the names of this resource. The aud of a response must contain one of them.
	Audience []string

	// Leeway is the allowed clock difference. Zero means [DefaultLeeway]. Negative means none.
	Leeway time.Duration
	// CacheTime is how long an active token is cached; a revoked token is accepted for that long.
	// Zero means [DefaultCacheTime]. Negative disables the cache. CacheSize is the number of cached
	// tokens. Zero means [DefaultCacheSize].
	CacheTime time.Duration
	CacheSize int
	// RefusalTime is how long a rejected token is cached. Zero means [DefaultRefusalTime]. Negative
	// disables this cache. Up to CacheSize rejected tokens are cached, in addition to the active
	// ones.
	RefusalTime time.Duration
	// MaxRequests is the number of concurrent requests to the endpoint; further tokens wait. Zero
	// means [DefaultMaxRequests]. Concurrent calls of Verify for one token share a request.
	MaxRequests int

	// Fetch configures requests to the endpoint.
	Fetch Fetch
}

// An Introspector asks the authorization server about access tokens (RFC 7662). It is an
// [oauth.Verifier], safe for concurrent use. Create one with [NewIntrospector].
type Introspector struct {
	endpoint   string
	id, secret string
	check      claims.Check
	client     *http.Client
	cache      *tokenCache
	refusals   *expiring.Map[[sha256.Size]byte, *oauth.TokenError]
	remember   time.Duration // how long refusals are cached
	slots      chan struct{} // holds one value for each request in progress
	now        func() time.Time

	mu      sync.Mutex
	flights map[[sha256.Size]byte]*question // in progress; guarded by mu
}

// A question is a request to the endpoint, shared by all callers with the same token. The other
// fields are valid once done is closed.
type question struct {
	done   chan struct{}
	answer map[string]any
	err    error
}

var _ oauth.Verifier = (*Introspector)(nil)

// NewIntrospector returns an introspector. The error lists every mistake in opts.
func NewIntrospector(opts IntrospectorOptions) (*Introspector, error) {
	err := checkNames(opts.Issuer, opts.Audience)
	if _, bad := opts.Fetch.policy().CheckURL(opts.Endpoint); bad != nil {
		err = errors.Join(fmt.Errorf("jwtverify: Endpoint: %w", bad), err)
	}
	if err != nil {
		return nil, err
	}
	remember, refusals := cacheLimits(opts.RefusalTime, DefaultRefusalTime, opts.CacheSize)
	return &Introspector{
		endpoint: opts.Endpoint, id: opts.ClientID, secret: opts.ClientSecret,
		check:  claims.Check{Issuer: opts.Issuer, Audience: opts.Audience, Leeway: leeway(opts.Leeway)},
		client: fetch.WithoutRedirects(opts.Fetch.client()), cache: newTokenCache(opts.CacheTime, opts.CacheSize), now: time.Now,
		refusals: expiring.New[[sha256.Size]byte, *oauth.TokenError](refusals), remember: remember,
		slots: make(chan struct{}, cmp.Or(max(opts.MaxRequests, 0), DefaultMaxRequests)), flights: make(map[[sha256.Size]byte]*question),
	}, nil
}

// Verify returns the principal of a token. Its Claims are those of the response. It returns an
// [*oauth.TokenError] for a token that is rejected, and another error if the endpoint failed or too
// many tokens are waiting.
func (v *Introspector) Verify(ctx context.Context, token string) (*oauth.Principal, error) {
	if len(token) > maxTokenBytes {
		return nil, refuse("it is too large")
	}
	now := v.now()
	sum := sha256.Sum256([]byte(token))
	if p, ok := v.cache.Get(sum, now); ok {
		return p, nil
	}
	if bad, ok := v.refusals.Get(sum, now); ok {
		return nil, bad
	}
	answer, err := v.askOnce(ctx, sum, token)
	if err != nil {
		return nil, fmt.Errorf("jwtverify: introspection: %w", err)
	}
	p, err := v.judge(answer, now)
	if bad, ok := errors.AsType[*oauth.TokenError](err); ok {
		v.refusals.Put(sum, bad, now.Add(v.remember))
	}
	if err != nil {
		return nil, err
	}
	v.cache.put(sum, p, now)
	return p, nil
}

// judge checks a response of the endpoint. Its errors are [*oauth.TokenError].
func (v *Introspector) judge(answer map[string]any, now time.Time) (*oauth.Principal, error) {
	if answer["active"] != true {
		return nil, refuse("it is not active")
	}
	// Refresh tokens and ID tokens are active, too. Both members are optional. Some servers write
	// access_token where RFC 7662 has the type of RFC 6749.
	for _, allowed := range []struct {
		member string
		words  []string
	}{{"token_type", []string{"bearer", "dpop", "access_token"}}, {"token_use", []string{"access_token", "access"}}} {
		if value, said := answer[allowed.member]; said {
			if word, _ := value.(string); !slices.Contains(allowed.words, strings.ToLower(word)) {
				return nil, refuse("it is not an access token")
			}
		}
	}
	if kind, _ := answer["token_type"].(string); strings.EqualFold(kind, "DPoP") {
		confirmation, _ := answer["cnf"].(map[string]any)
		if thumbprint, _ := confirmation["jkt"].(string); thumbprint == "" {
			return nil, refuse("it is bound to a key that the authorization server does not name")
		}
	}
	return v.check.Verify(answer, now)
}

// maxQuestions is the limit of tokens that are being asked about or are waiting.
const maxQuestions = 1024

var errBusy = errors.New("too many tokens at once; try again later")

// askOnce asks about a token, or waits for the request in progress.
func (v *Introspector) askOnce(ctx context.Context, sum [sha256.Size]byte, token string) (map[string]any, error) {
	v.mu.Lock()
	q := v.flights[sum]
	if q == nil && len(v.flights) >= maxQuestions {
		v.mu.Unlock()
		return nil, errBusy
	}
	if q == nil {
		q = &question{done: make(chan struct{})}
		v.flights[sum] = q
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
		// Ends with the response, after fetchTimeout at the latest. It does not end when one caller
		// gives up.
		go func() {
			defer cancel()
			q.answer, q.err = v.askInTurn(ctx, token)
			v.mu.Lock()
			delete(v.flights, sum)
			v.mu.Unlock()
			close(q.done)
		}()
	}
	v.mu.Unlock()
	select {
	case <-q.done:
		return q.answer, q.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// askInTurn waits until fewer than MaxRequests requests are in progress.
func (v *Introspector) askInTurn(ctx context.Context, token string) (map[string]any, error) {
	select {
	case v.slots <- struct{}{}:
		defer func() { <-v.slots }()
		return v.ask(ctx, token)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (v *Introspector) ask(ctx context.Context, token string) (map[string]any, error) {
	form := url.Values{"token": {token}, "token_type_hint": {"access_token"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, v.endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if v.id != "" {
		// Both are form-encoded first (RFC 6749, section 2.3.1).
		req.SetBasicAuth(url.QueryEscape(v.id), url.QueryEscape(v.secret))
	}
	var answer map[string]any
	err = fetch.JSON(v.client, req, &answer)
	return answer, err
}
