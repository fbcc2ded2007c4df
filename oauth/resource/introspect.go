package resource

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
)

const maxRequests = 16 // to the endpoint at a time

// An introspector asks the authorization server about access tokens (RFC 7662).
type introspector struct {
	opts     *Options
	audience []string
	client   *http.Client
	slots    chan struct{} // holds one value for each request in progress
}

func newIntrospector(opts *Options) (*introspector, error) {
	if _, err := opts.policy().CheckURL(opts.Introspection.Endpoint); err != nil {
		return nil, fmt.Errorf("Introspection.Endpoint: %w", err)
	}
	if len(opts.OtherIssuers) > 0 {
		return nil, errors.New("OtherIssuers does not go with Introspection, which asks only Issuer")
	}
	return &introspector{
		opts: opts, audience: opts.audience(), client: metadata.WithoutRedirects(opts.client()),
		slots: make(chan struct{}, maxRequests),
	}, nil
}

// Verify returns the principal of a token. Its Claims are those of the response. It returns an
// [*oauth.TokenError] for a token that is rejected, and another error if the endpoint failed.
func (v *introspector) Verify(ctx context.Context, token string) (*oauth.Principal, error) {
	answer, err := v.ask(ctx, token)
	if err != nil {
		return nil, fmt.Errorf("introspection: %w", err)
	}
	return v.judge(answer)
}

// judge checks a response of the endpoint. Its errors are [*oauth.TokenError].
func (v *introspector) judge(answer map[string]any) (*oauth.Principal, error) {
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
	payload, err := jsonx.Marshal(answer)
	if err != nil {
		return nil, err
	}
	c, err := parseClaims(payload)
	if err != nil {
		return nil, err
	}
	if _, named := answer["iss"]; !named {
		c.Issuer = v.opts.Issuer
	}
	return c.principal(v.opts.Issuer, v.audience, time.Now())
}

// ask asks the endpoint about a token, after other tokens if there are many.
func (v *introspector) ask(ctx context.Context, token string) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	select {
	case v.slots <- struct{}{}:
		defer func() { <-v.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	in := v.opts.Introspection
	form := url.Values{"token": {token}, "token_type_hint": {"access_token"}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, in.Endpoint, strings.NewReader(form))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if in.ClientID != "" {
		// Both are form-encoded first (RFC 6749, section 2.3.1).
		req.SetBasicAuth(url.QueryEscape(in.ClientID), url.QueryEscape(in.ClientSecret))
	}
	var answer map[string]any
	err = metadata.JSON(v.client, req, &answer)
	return answer, err
}
