package mcpkit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/reflectx"
	"github.com/mcpkit/mcpkit-go/transport"
)

// Authenticated says that something in front of the server finds out who asks and puts the [oauth.Principal] into the
// context of requests: package oauth/resourceserver, or an app's own middleware. What demands scopes cannot be
// registered without this option or [TrustLocal]: nobody could ever reach it, or nobody would be asked.
//
// The option trusts nobody. A request without a principal reaches only what demands no scopes.
func Authenticated() Option {
	return newOption(func(c *config) error { c.authenticated = true; return nil })
}

// TrustLocal lets whoever runs the server have these scopes: requests that did not come over HTTP (those on standard
// input, of a child process or of the same process) and have no principal are those of the principal "local". Requests
// over HTTP, and those on sockets that others than the user can connect to, are never trusted by it. The program that starts a server on stdio says by its environment what that
// server may do; name only scopes that every such program may have.
func TrustLocal(scopes ...string) Option {
	return newOption(func(c *config) error {
		if len(scopes) == 0 {
			return errors.New(`mcpkit: TrustLocal() trusts with nothing; name the scopes, for example TrustLocal("notes:read", "notes:write")`)
		}
		c.local = &oauth.Principal{Subject: "local", Scopes: scopes}
		return nil
	})
}

// StepUp lets principals see what they lack scopes for. A call of it fails with the scopes that it needs; behind a
// resource server the client is answered 403 with a challenge, so that it can ask its user for more. Without this option
// what a principal may not call does not exist for it. Requests without a principal see nothing more either way.
func StepUp() Option {
	return newOption(func(c *config) error { c.stepUp = true; return nil })
}

// entries are all that the draft adds.
func (d *draft) entries() []*entry {
	var all []*entry
	for _, t := range d.tools {
		all = append(all, &t.entry)
	}
	for _, p := range d.prompts {
		all = append(all, &p.entry)
	}
	for _, r := range append(d.resources[:len(d.resources):len(d.resources)], d.templates...) {
		all = append(all, &r.entry)
	}
	return all
}

// checkScopes refuses entries whose scopes nobody would ask for.
func (s *Server) checkScopes(d *draft) (faults reflectx.Errors) {
	known := s.config.authenticated || s.config.local != nil
	for _, e := range d.entries() {
		if e.stepUp != s.config.stepUp { // what is mounted may be in use already, and has it
			e.stepUp = s.config.stepUp
		}
		if known || len(e.scopes) == 0 {
			continue
		}
		faults = append(faults, &reflectx.Error{Site: e.site, Msg: fmt.Sprintf("it demands the scopes %q, but nobody finds out who asks: "+
			"give mcpkit.Authenticated() where a resource server or other middleware does, or mcpkit.TrustLocal(%s) to trust who runs the server on stdio",
			strings.Join(e.scopes, " "), quoted(e.scopes))})
	}
	return faults
}

func quoted(words []string) string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = fmt.Sprintf("%q", w)
	}
	return strings.Join(list, ", ")
}

// trust puts the principal of who runs the server into the context of a request that did not come over HTTP.
func (s *Server) trust(ctx context.Context, peer transport.Peer) context.Context {
	if s.config.local == nil || peer.Header() != nil || oauth.AuthenticationDecided(ctx) {
		return ctx
	}
	return oauth.NewContext(ctx, s.config.local)
}

// CodeForbidden is the JSON-RPC error code of calls that the caller is not allowed to make, if the caller may know of what it
// called. If scopes are missing, the data of the error names all that are needed: {"scopes": ["notes:write"]}. The specification
// leaves codes outside of -32768 to -32000 to applications.
const CodeForbidden = -31001

// demandScopes refuses a call of what the caller only sees because of [StepUp].
func (call *Call) demandScopes() *jsonrpc.Error {
	if call.entry == nil || !call.entry.stepUp || call.principal.Has(call.entry.scopes...) {
		return nil
	}
	call.needs = call.entry.scopes
	return insufficientScope(call.needs)
}

func insufficientScope(scopes []string) *jsonrpc.Error {
	data, _ := jsonx.Marshal(map[string][]string{"scopes": scopes}) // strings: always encodable
	return &jsonrpc.Error{Code: CodeForbidden, Message: fmt.Sprintf("insufficient scope: this needs %q", strings.Join(scopes, " ")), Data: data}
}

// neededScopes are those that an error like [oauth.InsufficientScopeError] names.
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
