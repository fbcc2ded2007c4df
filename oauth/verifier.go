package oauth

import "context"

// A Verifier returns the principal that an access token stands for.
//
// It returns a [*TokenError] for a token that it rejects. Any other error means that the token
// could not be checked. The returned principal may be shared with other calls. Implementations must
// be safe for concurrent use.
type Verifier interface {
	Verify(ctx context.Context, token string) (*Principal, error)
}

// A TokenError says why a token is rejected. Its text contains no part of the token, and is sent to
// the client.
type TokenError struct{ Reason string }

// Error returns the reason.
func (e *TokenError) Error() string { return "oauth: the token is rejected: " + e.Reason }

// An InsufficientScopeError says that the principal lacks scopes for the request. Behind a resource
// server it becomes HTTP status 403 with a challenge, so that the client can get a token with more
// scopes.
type InsufficientScopeError struct {
	// Scopes are all scopes that the operation needs, including those that the principal has.
	Scopes []string
}

// Error lists the scopes.
func (e *InsufficientScopeError) Error() string {
	text := "oauth: insufficient scope; needed:"
	for _, scope := range e.Scopes {
		text += " " + scope
	}
	return text
}

// NeededScopes returns the scopes. Errors of other packages with the same meaning have this method
// too.
func (e *InsufficientScopeError) NeededScopes() []string { return e.Scopes }
