package oauth

import (
	"context"
	"slices"
	"sync"
)

// A ScopeDemand collects the scopes that a request lacked. A request's handler reports them with
// [DemandScopes], and the authenticator reads them. It holds up to 100 scopes, and ignores further ones.
// It is safe for concurrent use.
type ScopeDemand struct {
	mu     sync.Mutex
	scopes []string // guarded by mu
}

type demandKey struct{}

// maxDemanded limits the scopes of a demand. The calls on a WebSocket share one, and scopes may contain
// what callers choose.
const maxDemanded = 100

// WithScopeDemand returns a context and the demand that [DemandScopes] adds to when it is called
// with that context.
func WithScopeDemand(ctx context.Context) (context.Context, *ScopeDemand) {
	d := new(ScopeDemand)
	return context.WithValue(ctx, demandKey{}, d), d
}

// DemandScopes reports that the request of ctx failed because the caller lacks some of the scopes.
// The scopes are all that the request needs. Several calls add up. DemandScopes returns false if
// ctx has no [ScopeDemand].
func DemandScopes(ctx context.Context, scopes ...string) bool {
	d, ok := ctx.Value(demandKey{}).(*ScopeDemand)
	if !ok {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, scope := range scopes {
		if len(d.scopes) < maxDemanded && !slices.Contains(d.scopes, scope) {
			d.scopes = append(d.scopes, scope)
		}
	}
	return true
}

// Scopes returns the demanded scopes, or nil if there are none.
func (d *ScopeDemand) Scopes() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.scopes)
}
