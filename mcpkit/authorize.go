package mcpkit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/reflectx"
	"github.com/mcpkit/mcpkit-go/transport"
)

// Authenticated says that code in front of the server authenticates callers and puts the
// [oauth.Principal] into the context of requests: package oauth/resource, or middleware of
// the program. Tools, prompts and resources with scopes cannot be registered without this option or
// [TrustLocal], since nobody could call them.
//
// A request without a principal reaches only what needs no scopes.
func Authenticated() Option {
	return option(func(c *config) error { c.authenticated = true; return nil })
}

// TrustLocal gives scopes to local callers: requests that did not come over HTTP, such as those on
// standard input, and have no principal get the principal "local". Requests over HTTP, and over
// sockets that other users can connect to, never do. Any program that can start the server gets the
// scopes, so name only those that all of them may have.
func TrustLocal(scopes ...string) Option {
	return option(func(c *config) error {
		if len(scopes) == 0 {
			return errors.New(`mcpkit: TrustLocal() trusts with nothing; name the scopes, for example TrustLocal("notes:read", "notes:write")`)
		}
		c.local = &oauth.Principal{Subject: "local", Scopes: scopes}
		return nil
	})
}

// StepUp shows principals what they lack scopes for. Such a call fails with the scopes that it
// needs, and behind a resource server the client gets status 403 with a challenge, so that it can
// ask its user for more. By default, what a principal may not call does not exist for it. Requests
// without a principal see nothing more.
func StepUp() Option {
	return option(func(c *config) error { c.stepUp = true; return nil })
}

// The accessRules say whom a server trusts, and what it shows to callers.
type accessRules struct {
	authenticated bool
	stepUp        bool
	local         *oauth.Principal // the principal of TrustLocal; nil: none
	visible       []*predicate     // of Visible, for all that the server has
	describe      []func(*Def)
}

// authenticates reports whether callers can have scopes.
func (a *accessRules) authenticates() bool { return a.authenticated || a.local != nil }

// checkScopes refuses entries with scopes if nobody authenticates callers.
func (s *Server) checkScopes(entries []*entry) (faults reflectx.Errors) {
	for _, e := range entries {
		if s.config.authenticates() || len(e.Scopes) == 0 {
			continue
		}
		faults.Addf(e.site, "it demands the scopes %q, but nobody authenticates callers: give mcpkit.Authenticated() if a resource server "+
			"or other middleware does, or mcpkit.TrustLocal(\"%s\") to trust local callers",
			strings.Join(e.Scopes, " "), strings.Join(e.Scopes, `", "`))
	}
	return faults
}

// trust gives the local principal to a request that did not come over HTTP.
func (s *Server) trust(ctx context.Context, peer transport.Peer) context.Context {
	if s.config.local == nil || peer.Header() != nil || oauth.AuthenticationDecided(ctx) {
		return ctx
	}
	return oauth.NewContext(ctx, s.config.local)
}

// CodeForbidden is the JSON-RPC error code of calls that the caller is not allowed to make, if the
// caller may know that the tool, prompt or resource exists. If scopes are missing, the data of the
// error has all that are needed: {"scopes": ["notes:write"]}.
const CodeForbidden = -31001

// demandScopes refuses a call for which the caller lacks scopes, where [StepUp] shows it.
func (call *Call) demandScopes() error {
	if call.entry == nil || !call.server.config.stepUp || call.principal.Has(call.entry.Scopes...) {
		return nil
	}
	var scopes []string
	for _, scope := range call.entry.Scopes {
		first, _, _ := strings.Cut(scope, "|")
		scopes = append(scopes, first)
	}
	return &oauth.InsufficientScopeError{Scopes: scopes}
}

func insufficientScope(scopes []string) *jsonrpc.Error {
	data, _ := jsonx.Marshal(map[string][]string{"scopes": scopes}) // strings always encode
	message := fmt.Sprintf("insufficient scope: this needs %q", strings.Join(scopes, " "))
	return &jsonrpc.Error{Code: CodeForbidden, Message: message, Data: data}
}

// neededScopes returns the scopes of an error such as [oauth.InsufficientScopeError].
func neededScopes(err error) []string {
	type needer interface {
		error
		NeededScopes() []string
	}
	if need, ok := errors.AsType[needer](err); ok {
		return need.NeededScopes()
	}
	return nil
}
