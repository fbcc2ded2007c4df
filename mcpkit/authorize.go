package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
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

// checkScopes refuses entries with scopes if nobody authenticates callers.
func (s *Server) checkScopes(entries []*entry) (faults reflectx.Errors) {
	for _, e := range entries {
		if s.config.authenticated || s.config.local != nil || len(e.Scopes) == 0 {
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
	if call.entry == nil || !call.server.config.stepUp || call.holds(call.entry) {
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

// An Entry is a tool, prompt, resource, resource template or event, as [Visible] gets it.
type Entry struct{ of *entry }

// Kind returns "tool", "prompt", "resource", "resource template" or "event".
func (e Entry) Kind() string { return e.of.Kind.String() }

// Name returns the name, URI or URI template.
func (e Entry) Name() string { return e.of.key }

// Tags returns the labels of the tag tags.
func (e Entry) Tags() []string { return e.of.Labels }

// Toolsets returns the names of the tag toolset, of the method or else of its service.
func (e Entry) Toolsets() []string { return e.of.Toolsets }

// Scopes returns the scopes that a caller needs.
func (e Entry) Scopes() []string { return e.of.Scopes }

// Hints returns the hints of a tool; nil if it has none.
func (e Entry) Hints() *protocol.ToolAnnotations {
	if e.of.tool == nil {
		return nil
	}
	return e.of.tool.Annotations
}

// Definition returns the definition that clients of the newest version get, a JSON object.
func (e Entry) Definition() json.RawMessage {
	text, _ := e.of.definition.latest() // it was encoded before
	return text
}

// Entries returns all that the caller sees, those of each kind sorted by name.
func (c *Call) Entries() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for _, e := range c.catalog.entries() {
			if !e.Hidden && c.sees(e) && !yield(Entry{e}) {
				return
			}
		}
	}
}

// Visible shows tools, prompts and resources only to some callers. For others they do not exist: in
// lists, calls, reads, completions, new subscriptions and tasks. f is called once for a request that
// needs it, and see for each entry in question, so it must be fast; a nil see shows nothing. A run of a
// task has the principal of its request, but no headers, path and address. f and see may be called
// concurrently, and must not ask what the call sees, as [Call.Entries] and [Call.CanRead] do.
//
// Callers with the same key see the same entries, so that they share an encoded list. The number of
// lists that are kept is limited. With the key "" a list is encoded for each request.
//
// As an option of a server, Visible is for all that it has, also for what is mounted or registered
// later. As an option of [With] and [Server.Register] it is for the service, and as one of
// [Server.Mount] for the mounted server, with the names there. Several functions must all permit. A
// nil f permits nobody.
func Visible(f func(ctx context.Context, call *Call) (see func(Entry) bool, key string)) MountOption {
	return guards{visible: []*predicate{{f}}}
}

// A predicate is a function of [Visible].
type predicate struct {
	of func(ctx context.Context, call *Call) (see func(Entry) bool, key string)
}

// A visibility is a predicate of an entry, as the server, service or mount knows it that has the option.
type visibility struct {
	by *predicate
	as Entry
}

// show shows the entry only where all predicates permit the one that they know.
func (e *entry) show(all []*predicate, as *entry) {
	for _, p := range all {
		e.visible = append(slices.Clip(e.visible), visibility{p, Entry{as}})
	}
}

// isPersonal reports whether not all callers may know of the entry.
func (e *entry) isPersonal() bool { return len(e.Scopes)+len(e.visible) > 0 }

// A sight is what a caller sees of what a predicate is for.
type sight struct {
	see func(Entry) bool
	key string
}

// sight asks a predicate, once for each call.
func (c *Call) sight(p *predicate) (s sight) {
	if known, ok := c.values.Load(p); ok {
		return known.(sight)
	}
	if p.of != nil {
		s.see, s.key = p.of(&c.limit, c)
	}
	if s.see == nil {
		s.see = func(Entry) bool { return false }
	}
	c.values.Store(p, s)
	return s
}

// holds reports whether the caller has the scopes of the entry.
func (c *Call) holds(e *entry) bool { return c.principal.Has(e.Scopes...) }

// sees reports whether the caller may know of the entry. For others it does not exist.
func (c *Call) sees(e *entry) bool {
	if !c.holds(e) && !c.stepsUp() {
		return false
	}
	return !slices.ContainsFunc(e.visible, func(v visibility) bool { return !c.sight(v.by).see(v.as) })
}

// stepsUp reports whether the caller is shown what it lacks scopes for.
func (c *Call) stepsUp() bool { return c.principal != nil && c.server.config.stepUp }

// selection returns a key that callers share who see the same entries of a list. ok is false if nobody
// said who does.
func (c *Call) selection(l list) (key string, ok bool) {
	var b []byte
	for _, scope := range l.scopes {
		if c.principal.Has(scope) {
			b = append(jsonx.AppendString(b, scope), ',')
		}
	}
	if c.stepsUp() {
		b = append(b, '+')
	}
	for _, p := range l.predicates {
		s := c.sight(p)
		if s.key == "" {
			return "", false
		}
		b = append(jsonx.AppendString(b, s.key), ';')
	}
	return string(b), true
}
