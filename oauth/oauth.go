// Package oauth says who is asking: the principal of a request, carried in its context.
//
// It speaks no HTTP. What checks a token and puts the principal here, and what asks for tokens, are
// packages of their own, so that a program on stdio that merely reads the principal links neither.
package oauth

import (
	"context"
	"slices"
	"strings"
	"time"
)

// A Principal is who a request comes from, as far as an authenticator vouches for it.
// It must not be changed once it is in a context.
type Principal struct {
	// Subject names the user or workload, unique within Issuer.
	Subject string
	// Issuer names who vouches for Subject; empty where there is only one.
	Issuer string
	// ClientID names the OAuth client that acts for the subject; empty when unknown.
	ClientID string
	// Scopes are what the principal may do. Nil means none.
	Scopes []string
	// Expires is when the credential ends; zero means not known.
	Expires time.Time
	// Claims holds whatever else the authenticator learned, for the program's own use.
	Claims map[string]any
}

// Has reports whether p holds every one of scopes. A nil principal holds none.
func (p *Principal) Has(scopes ...string) bool {
	for _, scope := range scopes {
		if p == nil || !slices.Contains(p.Scopes, scope) {
			return false
		}
	}
	return true
}

// Key identifies the principal among all others: what sessions, caches and rate limits are bound to.
// It is "" for a nil principal, and never "" for another.
func (p *Principal) Key() string {
	if p == nil {
		return ""
	}
	return keyPart(p.Issuer) + "\x00" + keyPart(p.Subject) + "\x00" + keyPart(p.ClientID)
}

var keyEscaper = strings.NewReplacer("\x00", "\x01-", "\x01", "\x01\x01")

// keyPart is s without the byte that separates parts, which a name does not hold unless it was made up to be mistaken for
// another.
func keyPart(s string) string {
	if strings.ContainsAny(s, "\x00\x01") {
		return keyEscaper.Replace(s)
	}
	return s
}

type contextKey struct{}

// NewContext returns a context that carries p. A nil p says that the request comes from nobody who is known.
func NewContext(ctx context.Context, p *Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// AuthenticationDecided reports whether somebody has said who the request of ctx comes from, be it nobody: [NewContext] was called, with
// nil or not. Where it reports false, nobody asked.
func AuthenticationDecided(ctx context.Context) bool {
	_, ok := ctx.Value(contextKey{}).(*Principal)
	return ok
}

// FromContext returns the principal of the request that ctx belongs to, and nil where nobody was authenticated.
func FromContext(ctx context.Context) *Principal {
	p, _ := ctx.Value(contextKey{}).(*Principal)
	return p
}

// WithExpiry returns a context that ends when the credential of its principal does, as far as that is known: for what lasts longer than a
// call, since who listens has to show again that it may. The context holds resources until it or cancel ends.
func WithExpiry(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	if p := FromContext(ctx); p != nil && !p.Expires.IsZero() {
		return context.WithDeadline(ctx, p.Expires)
	}
	return context.WithCancel(ctx)
}
