package jwtverify

import (
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

	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/internal/claims"
	"github.com/mcpkit/mcpkit-go/oauth/internal/fetch"
)

// IntrospectorOptions configures an [Introspector]. Endpoint, Issuer and Audience are needed.
type IntrospectorOptions struct {
	// Endpoint is the introspection endpoint of the authorization server.
	Endpoint string
	// ClientID and ClientSecret authenticate this resource at the endpoint (client_secret_basic). Empty for an endpoint
	// that knows it otherwise, such as by the certificate of Fetch.Client.
	ClientID, ClientSecret string

	// Issuer is who vouches for the principals. An answer that names another one is refused.
	Issuer string
	// Audience are the names of this resource, of which aud must hold one. An answer without aud is refused.
	Audience []string

	// Leeway is how much clocks may differ. Zero means [DefaultLeeway], less than zero none.
	Leeway time.Duration
	// CacheTime is for how long at most an active token is not asked about again; so long it may outlive its
	// revocation. Requests that come at once with one token ask once, whatever it says. Zero means [DefaultCacheTime], less than zero asks every time. CacheSize is how many are remembered;
	// zero means [DefaultCacheSize].
	CacheTime time.Duration
	CacheSize int

	// Fetch says how the endpoint is asked.
	Fetch Fetch
}

// An Introspector asks the authorization server about access tokens (RFC 7662). It is an [oauth.Verifier]. Make one
// with [NewIntrospector].
type Introspector struct {
	endpoint   string
	id, secret string
	check      claims.Check
	client     *http.Client
	cache      *tokenCache
	now        func() time.Time

	mu      sync.Mutex
	flights map[[sha256.Size]byte]*question // under way; guarded by mu
}

// A question is one to the endpoint, for all who want to know the same. The rest is read after done was closed.
type question struct {
	done   chan struct{}
	answer map[string]any
	err    error
}

var _ oauth.Verifier = (*Introspector)(nil)

// NewIntrospector makes an introspector. The error says every mistake in opts.
func NewIntrospector(opts IntrospectorOptions) (*Introspector, error) {
	var faults []error
	if _, err := opts.Fetch.policy().CheckURL(opts.Endpoint); err != nil {
		faults = append(faults, fmt.Errorf("jwtverify: Endpoint: %w", err))
	}
	if opts.Issuer == "" {
		faults = append(faults, errors.New("jwtverify: Issuer is empty; say whose tokens are taken"))
	}
	if len(opts.Audience) == 0 || slices.Contains(opts.Audience, "") {
		faults = append(faults, fmt.Errorf("jwtverify: Audience is empty; name this resource, for example %q", "https://mcp.example.com/mcp"))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	client := *opts.Fetch.client()
	// A redirect would take the token along.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Introspector{
		endpoint: opts.Endpoint, id: opts.ClientID, secret: opts.ClientSecret,
		check:  claims.Check{Issuer: opts.Issuer, Audience: opts.Audience, Leeway: leeway(opts.Leeway)},
		client: &client, cache: newTokenCache(opts.CacheTime, opts.CacheSize), now: time.Now,
		flights: make(map[[sha256.Size]byte]*question),
	}, nil
}

// Verify asks who token stands for. The claims are those of the answer.
func (v *Introspector) Verify(ctx context.Context, token string) (*oauth.Principal, error) {
	if len(token) > maxToken {
		return nil, refuse("it is too large")
	}
	now := v.now()
	sum := sha256.Sum256([]byte(token))
	if p, ok := v.cache.get(sum, now); ok {
		return p, nil
	}
	answer, err := v.askOnce(ctx, sum, token)
	if err != nil {
		return nil, fmt.Errorf("jwtverify: introspection: %w", err)
	}
	if answer["active"] != true {
		return nil, refuse("it is not active")
	}
	p, err := v.check.Verify(answer, now)
	if err != nil {
		return nil, err
	}
	v.cache.put(sum, p, now, v.check.Leeway)
	return p, nil
}

// askOnce asks, unless somebody does already. A client has as many requests under way as it likes, all with one token.
func (v *Introspector) askOnce(ctx context.Context, sum [sha256.Size]byte, token string) (map[string]any, error) {
	v.mu.Lock()
	q := v.flights[sum]
	if q == nil {
		q = &question{done: make(chan struct{})}
		v.flights[sum] = q
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
		// Ends with the answer, after fetchTimeout at the latest: who asked first may be gone before the others.
		go func() {
			defer cancel()
			q.answer, q.err = v.ask(ctx, token)
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

func (v *Introspector) ask(ctx context.Context, token string) (map[string]any, error) {
	form := url.Values{"token": {token}, "token_type_hint": {"access_token"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, v.endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if v.id != "" {
		// Both are encoded as in a form (RFC 6749, section 2.3.1).
		req.SetBasicAuth(url.QueryEscape(v.id), url.QueryEscape(v.secret))
	}
	var answer map[string]any
	err = fetch.JSON(v.client, req, &answer)
	return answer, err
}
