// Package oauth carries the authenticated caller of a request, its [Principal], in the request's
// context.
//
// The package does not depend on HTTP. Package resource checks tokens and stores the
// principal here, package oauthclient gets tokens. A program that only reads the principal, over
// stdio for example, links neither.
//
// All functions are safe for concurrent use. Authorization follows RFC 6749 and RFC 6750.
package oauth

import (
	"context"
	"slices"
	"strings"
	"time"
)

// A Principal is the authenticated user or workload that a request acts for. Do not change a
// Principal once it is in a context. The zero value has no identity and no scopes.
type Principal struct {
	// Subject names the user or workload, unique within Issuer.
	Subject string
	// Issuer names the authority that vouches for Subject. Empty if there is only one.
	Issuer string
	// ClientID names the OAuth client that acts for the subject. Empty if unknown.
	ClientID string
	// Scopes are the scopes granted to the principal. Nil means none.
	Scopes []string
	// Expires is when the credential is no longer accepted, with the allowed clock difference. Zero
	// means unknown.
	Expires time.Time
	// Claims holds everything else that the authenticator learned, for the program's own use.
	Claims map[string]any
}

// Has reports whether p holds all of the scopes. Holding "a" or "b" is holding the scope "a|b". A nil
// principal holds none.
func (p *Principal) Has(scopes ...string) bool {
	for _, scope := range scopes {
		held := false
		for one := range strings.SplitSeq(scope, "|") {
			held = held || p != nil && slices.Contains(p.Scopes, one)
		}
		if !held {
			return false
		}
	}
	return true
}

// Key identifies the principal uniquely. Sessions, caches and rate limits are bound to it. Key
// returns "" only for a nil principal.
func (p *Principal) Key() string {
	if p == nil {
		return ""
	}
	return keyPart(p.Issuer) + "\x00" + keyPart(p.Subject) + "\x00" + keyPart(p.ClientID)
}

var keyEscaper = strings.NewReplacer("\x00", "\x01-", "\x01", "\x01\x01")

// keyPart escapes the separator byte in s, so that different principals have different keys.
func keyPart(s string) string {
	if strings.ContainsAny(s, "\x00\x01") {
		return keyEscaper.Replace(s)
	}
	return s
}

type contextKey struct{}

// NewContext returns a context that carries p. A nil p records that the caller is unauthenticated.
func NewContext(ctx context.Context, p *Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// AuthenticationDecided reports whether [NewContext] was called for ctx, with a principal or with
// nil. If it reports false, no authenticator has looked at the request.
func AuthenticationDecided(ctx context.Context) bool {
	_, ok := ctx.Value(contextKey{}).(*Principal)
	return ok
}

// FromContext returns the principal of the request that ctx belongs to. It returns nil if the
// caller is unauthenticated.
func FromContext(ctx context.Context) *Principal {
	p, _ := ctx.Value(contextKey{}).(*Principal)
	return p
}

// WithExpiry returns a context that is done when the credential of its principal expires. Use it
// for work that lasts longer than one call, such as a subscription. The context does not expire if
// the principal or its expiry is unknown. Call cancel to release its resources.
func WithExpiry(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	if p := FromContext(ctx); p != nil && !p.Expires.IsZero() {
		return context.WithDeadline(ctx, p.Expires)
	}
	return context.WithCancel(ctx)
}
