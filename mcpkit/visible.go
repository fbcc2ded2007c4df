package mcpkit

import (
	"context"
	"slices"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// An Entry is a tool, prompt, resource or resource template, as [Visible] gets it.
type Entry struct{ of *entry }

// Kind returns "tool", "prompt", "resource" or "resource template".
func (e Entry) Kind() string { return e.of.kind.String() }

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
	return e.of.tool.def.Annotations
}

// Visible shows tools, prompts and resources only to some callers. For others they do not exist: in
// lists, calls, reads, completions, new subscriptions and tasks. f is called once for a request that
// needs it, and see for each entry in question, so it must be fast; a nil see shows nothing. The
// principal, the headers and the path of call are those of the request, which a run of a task does not
// have. f and see may be called concurrently.
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
		s.see, s.key = p.of(c.limit, c)
	}
	if s.see == nil {
		s.see = func(Entry) bool { return false }
	}
	c.values.Store(p, s)
	return s
}

// sees reports whether the caller may know of the entry. For others it does not exist.
func (c *Call) sees(e *entry) bool {
	if !c.principal.Has(e.Scopes...) && !c.stepsUp() {
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
		if c.stepsUp() || c.principal.Has(scope) {
			b = append(jsonx.AppendString(b, scope), ',')
		}
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
