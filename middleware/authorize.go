package middleware

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Scopes requires that the caller has all of the scopes. [When] limits it to a part of the server.
// The scopes tag of a method also hides the method from callers without the scopes.
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

// Authorize calls allow before each call of every method, initialize, lists and completions
// included. If allow returns an error, the call ends with a [DeniedError]. The caller gets the text
// of the error only if it is a [mcpkit.UserMessenger], for example from [mcpkit.Errorf]. A nil
// allow denies every call.
func Authorize(allow func(ctx context.Context, call *mcpkit.Call) error) mcpkit.Middleware {
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			if allow == nil {
				return nil, &DeniedError{}
			}
			if err := allow(ctx, call); err != nil {
				if denied, ok := errors.AsType[*DeniedError](err); ok {
					return nil, denied
				}
				return nil, &DeniedError{Reason: err}
			}
			return next(ctx, call)
		}
	}
}

// A DeniedError reports that the caller may not make this call. It is a protocol error.
type DeniedError struct {
	// Scopes are those that the call requires. Nil if the call was denied for another reason.
	Scopes []string
	// Reason is the error of [Authorize]. Nil if scopes are missing.
	Reason error
}

// Error returns the reason, for the log.
func (e *DeniedError) Error() string {
	switch {
	case e.Reason != nil:
		return "not allowed: " + e.Reason.Error()
	case len(e.Scopes) > 0:
		return e.UserMessage()
	}
	return "not allowed"
}

// UserMessage returns the required scopes, or the reason if it is meant for the caller.
func (e *DeniedError) UserMessage() string {
	if user, ok := errors.AsType[mcpkit.UserMessenger](e.Reason); ok {
		return "not allowed: " + user.UserMessage()
	}
	if len(e.Scopes) > 0 {
		return fmt.Sprintf("not allowed: this needs the scope %q", strings.Join(e.Scopes, " "))
	}
	return "not allowed"
}

// Unwrap returns the reason.
func (e *DeniedError) Unwrap() error { return e.Reason }

// NeededScopes returns the required scopes. Behind an HTTP resource server, the client gets status
// 403 and a challenge to get a token with these scopes.
func (e *DeniedError) NeededScopes() []string { return e.Scopes }

// ErrorCode returns [mcpkit.CodeForbidden].
func (e *DeniedError) ErrorCode() int { return mcpkit.CodeForbidden }

func (e *DeniedError) outcome() Outcome { return Denied }
