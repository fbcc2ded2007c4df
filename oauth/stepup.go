package oauth

import (
	"context"
	"slices"
	"sync"
)

// A ScopeDemand carries back, from what answers a request to what authenticated it, that scopes were missing. It is safe
// for concurrent use.
type ScopeDemand struct {
	mu     sync.Mutex
	scopes []string // guarded by mu
}

type demandKey struct{}

// WithScopeDemand returns a context through which [DemandScopes] reaches the demand that it also returns.
func WithScopeDemand(ctx context.Context) (context.Context, *ScopeDemand) {
	d := new(ScopeDemand)
	return context.WithValue(ctx, demandKey{}, d), d
}

// DemandScopes says that the request of ctx failed for want of some of scopes, which are all that it needs. It reports
// whether anybody wants to know. Of several demands the client hears all.
func DemandScopes(ctx context.Context, scopes ...string) bool {
	d, ok := ctx.Value(demandKey{}).(*ScopeDemand)
	if !ok {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, scope := range scopes {
		if !slices.Contains(d.scopes, scope) {
			d.scopes = append(d.scopes, scope)
		}
	}
	return true
}

// Scopes are those that were demanded, nil when none were.
func (d *ScopeDemand) Scopes() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.scopes)
}
