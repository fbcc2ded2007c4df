package middleware

import (
	"context"
	"fmt"
	"strings"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Scopes requires that the caller has all of the scopes. [When] limits it to a part of the server.
// The scopes tag of a method and [mcpkit.Visible] also hide what they refuse.
func Scopes(scopes ...string) mcpkit.Middleware {
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			if !call.Principal().Has(scopes...) {
				return nil, &DeniedError{Scopes: scopes}
			}
			return next(ctx, call)
		}
	}
}

// A DeniedError reports that the caller may not make this call. It is a protocol error.
type DeniedError struct {
	// Scopes are those that the call requires.
	Scopes []string
}

// Error returns the required scopes.
func (e *DeniedError) Error() string {
	return fmt.Sprintf("not allowed: this needs the scope %q", strings.Join(e.Scopes, " "))
}

// UserMessage returns the same text.
func (e *DeniedError) UserMessage() string { return e.Error() }

// NeededScopes returns the required scopes. Behind an HTTP resource server, the client gets status
// 403 and a challenge to get a token with these scopes.
func (e *DeniedError) NeededScopes() []string { return e.Scopes }

// ErrorCode returns [mcpkit.CodeForbidden].
func (e *DeniedError) ErrorCode() int { return mcpkit.CodeForbidden }
