package oauth

import "context"

// A Verifier tells who a token stands for.
//
// A token that is not to be taken is a [*TokenError]. Any other error says that it could not be found out: nothing is
// known of the token then. The principal may be shared with other calls. Verifiers are safe for concurrent use.
type Verifier interface {
	Verify(ctx context.Context, token string) (*Principal, error)
}

// A TokenError says why a token is refused. Its text holds nothing of the token and is meant for the client.
type TokenError struct{ Reason string }

// Error returns the reason.
func (e *TokenError) Error() string { return "oauth: the token is refused: " + e.Reason }

// An InsufficientScopeError says that the principal needs more scopes for what it asked. Over HTTP, behind a resource
// server, it becomes status 403 with a challenge, so that the client can get a token with more scopes.
type InsufficientScopeError struct {
	// Scopes are all that the operation needs, those included that the principal has.
	Scopes []string
}

// Error names the scopes.
func (e *InsufficientScopeError) Error() string {
	text := "oauth: the scopes are insufficient; needed are"
	for _, scope := range e.Scopes {
		text += " " + scope
	}
	return text
}

// NeededScopes returns the scopes. Errors of other packages that mean the same have this method, too.
func (e *InsufficientScopeError) NeededScopes() []string { return e.Scopes }
