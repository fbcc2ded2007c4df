package middleware

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Scopes demands that the caller holds every one of the scopes, for each method that it is around. With
// mcpkit.Server.UseFor it guards a part of the server; what the scopes tag guards is hidden from lists as well.
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

// Authorize asks allow before each call of every method, initialize, lists and completions included. Any error denies the
// call: nothing further in runs. The caller is shown the error's text where it is meant for it (mcpkit.Errorf), and else
// that the call is not allowed. An error that panics or a nil allow denies, too.
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

// CodeDenied is the JSON-RPC error code of a [DeniedError]. The specification leaves the codes outside of -32768 to -32000 to
// programs.
const CodeDenied = 403

// A DeniedError says that the caller may not do what it asked for. It is a protocol error of the code [CodeDenied].
type DeniedError struct {
	// Scopes are those that the caller would need; nil when it is about something else.
	Scopes []string
	// Reason is why; nil when it is about scopes.
	Reason error
}

// Error says why, for the log.
func (e *DeniedError) Error() string {
	switch {
	case e.Reason != nil:
		return "not allowed: " + e.Reason.Error()
	case len(e.Scopes) > 0:
		return e.UserMessage()
	}
	return "not allowed"
}

// UserMessage says what is missing, or the reason where it is meant for the caller.
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

// NeededScopes are Scopes: behind a resource server over HTTP the client is told, by status 403 and a challenge, to get a
// token that has them.
func (e *DeniedError) NeededScopes() []string { return e.Scopes }

// ErrorCode is [CodeDenied].
func (e *DeniedError) ErrorCode() int { return CodeDenied }

func (e *DeniedError) outcome() Outcome { return Denied }
