package resource

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcpkit/mcpkit-go/internal/limits"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/internal/keys"
)

const (
	cacheTime   = time.Minute
	cacheSize   = 4096
	refusalTime = 5 * time.Second
)

// newVerifier returns the verifier of access tokens.
func newVerifier(opts *Options) (oauth.Verifier, error) {
	c := &cache{most: cmp.Or(opts.CacheTime, cacheTime), refused: newTokenMap[*oauth.TokenError](0)}
	var err error
	if opts.Introspection != nil {
		c.next, err = newIntrospector(opts)
		c.refused = newTokenMap[*oauth.TokenError](cacheSize)
	} else {
		c.next, err = newJWTVerifier(opts)
	}
	size := cacheSize
	if opts.CacheTime < 0 {
		size = 0
	}
	c.accepted = newTokenMap[*oauth.Principal](size)
	return c, err
}

// A cache remembers what a verifier has said about tokens.
type cache struct {
	next     oauth.Verifier
	most     time.Duration
	accepted tokenMap[*oauth.Principal]
	refused  tokenMap[*oauth.TokenError] // made-up tokens do not evict accepted ones
}

type tokenMap[V any] = *limits.Map[[sha256.Size]byte, V]

func newTokenMap[V any](size int) tokenMap[V] { return limits.NewMap[[sha256.Size]byte, V](size) }

// Verify implements [oauth.Verifier].
func (c *cache) Verify(ctx context.Context, token string) (*oauth.Principal, error) {
	now, sum := time.Now(), sha256.Sum256([]byte(token))
	if p, ok := c.accepted.Get(sum, now); ok {
		return p, nil
	}
	if bad, ok := c.refused.Get(sum, now); ok {
		return nil, bad
	}
	p, err := c.next.Verify(ctx, token)
	if bad, ok := errors.AsType[*oauth.TokenError](err); ok {
		c.refused.Put(sum, bad, now.Add(refusalTime))
	}
	if err != nil {
		return nil, err
	}
	until := now.Add(c.most)
	if !p.Expires.IsZero() && p.Expires.Before(until) {
		until = p.Expires
	}
	c.accepted.Put(sum, p, until)
	return p, nil
}

// A jwtVerifier checks access tokens that are JWTs (RFC 9068).
type jwtVerifier struct {
	opts       *Options
	audience   []string
	algorithms []jose.SignatureAlgorithm
	keys       map[string]*keySet // by issuer
	hintOnce   sync.Once          // about tokens of another type
}

func newJWTVerifier(opts *Options) (*jwtVerifier, error) {
	v := &jwtVerifier{opts: opts, audience: opts.audience(), keys: make(map[string]*keySet)}
	var err error
	if v.algorithms, err = keys.Parse(opts.Algorithms); err != nil {
		return nil, err
	}
	if v.keys[opts.Issuer], err = newKeySet(opts, opts.Issuer, opts.JWKS, opts.JWKSURI); err != nil {
		return nil, err
	}
	for _, issuer := range opts.OtherIssuers {
		if v.keys[issuer] != nil {
			return nil, fmt.Errorf("the issuer %q is given twice", issuer)
		}
		if v.keys[issuer], err = newKeySet(opts, issuer, nil, ""); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// Verify returns the principal of a token. It returns an [*oauth.TokenError] for a token that it
// rejects, and another error if the keys could not be fetched.
func (v *jwtVerifier) Verify(ctx context.Context, token string) (*oauth.Principal, error) {
	jws, err := jose.ParseSignedCompact(token, v.algorithms)
	if err != nil {
		if _, ok := errors.AsType[*jose.ErrUnexpectedSignatureAlgorithm](err); ok {
			return nil, refuse("its algorithm is not allowed")
		}
		return nil, refuse("it is not a signed JWT")
	}
	// Keys that the token itself brings or points to (jwk, jku, x5c, x5u) are never used.
	typ := typeOf(jws)
	if typ != "at+jwt" && typ != "jwt" {
		return nil, refuse(reasonType) // a proof, an assertion, a logout token
	}
	c, err := parseClaims(jws.UnsafePayloadWithoutVerification())
	if err != nil {
		return nil, err
	}
	set := v.keys[c.Issuer]
	if set == nil {
		return nil, refuse(reasonIssuer)
	}
	if err := set.verify(ctx, jws); err != nil {
		return nil, err
	}
	if typ != "at+jwt" && !v.opts.AllowUntyped {
		v.hintOnce.Do(func() {
			v.opts.Logger.WarnContext(ctx, `resource: a token of the issuer is rejected because its typ is not `+
				`"at+jwt" (RFC 9068); if its access tokens have no such typ, set Options.AllowUntyped`, "issuer", c.Issuer)
		})
		return nil, refuse(reasonType)
	}
	if c.Expiry == nil {
		return nil, refuse("it has no expiry")
	}
	return c.principal(c.Issuer, v.audience, time.Now())
}

const reasonType = "its typ is not that of an access token"

// typeOf returns the typ of a token, a media type, without the optional prefix "application/" (RFC
// 7515, section 4.1.9). A token without typ is a "jwt".
func typeOf(jws *jose.JSONWebSignature) string {
	typ, ok := jws.Signatures[0].Protected.ExtraHeaders[jose.HeaderType]
	if !ok {
		return "jwt"
	}
	name, _ := typ.(string)
	return strings.TrimPrefix(strings.ToLower(name), "application/")
}
