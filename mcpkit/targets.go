package mcpkit

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/internal/uritemplate"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/annotation"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// nameOf reads the name or URI of a request.
func nameOf(call *Call) error {
	raw := call.req.Param(call.row.nameParam)
	if jsonx.Kind(raw) != '"' {
		return invalidParams("%s needs %s, a string", call.row.method, call.row.nameParam)
	}
	call.name = jsonx.String(raw)
	return nil
}

// findNamed returns what finds the tool or prompt that a request names, and the arguments of a prompt.
func findNamed(k annotation.Kind) func(*Call) error {
	return func(call *Call) error {
		if err := nameOf(call); err != nil {
			return err
		}
		l := call.catalog.list(k)
		e, err := call.choose(l, call.name)
		if err != nil {
			return err
		}
		if e == nil {
			return invalidParams("unknown %s %q%s", k, call.name, l.hint(call))
		}
		call.entry = e
		if raw := call.Arguments(); raw != nil && jsonx.Kind(raw) != '{' {
			return invalidParams("the arguments of %s %q are not an object", k, call.name)
		}
		if k != annotation.Prompt {
			return nil
		}
		if call.vars, err = readTextArguments(call.name, call.Arguments()); err != nil {
			return invalidParams("%v", err)
		}
		return nil
	}
}

// choose returns the entry that the caller sees of those that a name means, or nil.
func (call *Call) choose(l list, name string) (found *entry, err error) {
	for _, e := range l.named(name) {
		switch {
		case !call.mayKnow(e):
		case found == nil || !call.holds(found): // StepUp shows variants whose scopes the caller lacks, too
			found = e
		case call.holds(e):
			return nil, fmt.Errorf("mcpkit: the caller sees two variants of %s %q: %s and %s", e.Kind, e.key, found.site, e.site)
		}
	}
	return found, nil
}

// mayKnow reports whether the caller may know of the entry. If not, the caller gets the response
// for an unknown name, and the log gets the scopes that the method needs and those of the caller.
func (call *Call) mayKnow(e *entry) bool {
	if call.sees(e) {
		return true
	}
	who, has := "", ""
	if call.principal != nil {
		who, has = call.principal.Subject, strings.Join(call.principal.Scopes, " ")
	}
	call.log(slog.LevelDebug, "mcpkit: a call was refused by scopes or Visible; the caller got the response for an unknown name",
		"scopes", strings.Join(e.Scopes, " "), "callerScopes", has, "principal", who)
	return false
}

// readTextArguments reads the arguments of a prompt.
func readTextArguments(prompt string, raw []byte) (uritemplate.Values, error) {
	args := uritemplate.Values{}
	for name, value := range jsonx.Members(raw) {
		if jsonx.Kind(value) != '"' {
			return nil, fmt.Errorf("the arguments of prompt %q are not all strings", prompt)
		}
		args[jsonx.String(name)] = jsonx.String(value)
	}
	return args, nil
}

// findResource finds the resource of resources/read and resources/subscribe.
func findResource(call *Call) error {
	if err := nameOf(call); err != nil {
		return err
	}
	if len(call.name) > uritemplate.MaxURI {
		return invalidParams("the uri has %d bytes; at most %d are allowed", len(call.name), uritemplate.MaxURI)
	}
	e, vars := call.catalog.findResource(call.name)
	if e == nil || !call.mayKnow(e) {
		return protocol.ResourceNotFound(call.version, call.name)
	}
	call.entry, call.vars = e, vars
	return nil
}

// findResource returns the resource that answers for the URI, or nil, and the values of the variables
// of its template. It is the same for all callers: a wider template is not a way around scopes. Neither
// is another spelling of a URI: it names nothing if its canonical form is that of something that
// demands more.
func (c *catalog) findResource(uri string) (*entry, uritemplate.Values) {
	e, values := c.match(uri)
	if e == nil || e.template == nil || !c.list(annotation.Resource).personal() && !c.list(annotation.Template).personal() {
		return e, values
	}
	if other := c.matchCanonical(uritemplate.Canonical(uri)); other != nil && other != e && other.demandsMoreThan(e) {
		return nil, nil
	}
	return e, values
}

// demandsMoreThan reports whether there may be callers that may know of other, but not of e.
func (e *entry) demandsMoreThan(other *entry) bool {
	return e.visible != nil || slices.ContainsFunc(e.Scopes, func(s string) bool { return !slices.Contains(other.Scopes, s) })
}

// matchCanonical returns the first resource or template, in the order of match, whose URI has the
// canonical form.
func (c *catalog) matchCanonical(form string) *entry {
	for _, e := range c.list(annotation.Resource).sorted {
		if e.canonical == form {
			return e
		}
	}
	for _, e := range c.templates {
		if e.template.MatchCanonical(form) {
			return e
		}
	}
	return nil
}

// match is like findResource for the URI as it is written. A resource comes before all templates: one of
// a mounted server that an earlier template matches is left out.
func (c *catalog) match(uri string) (*entry, uritemplate.Values) {
	if at, ok := c.list(annotation.Resource).find(uri); ok {
		return c.list(annotation.Resource).sorted[at], nil
	}
	for _, e := range c.templates {
		if values, ok := e.template.Match(uri); ok {
			return e, values
		}
	}
	return nil, nil
}

// findVisible is like findResource for what the caller may know of.
func (c *Call) findVisible(uri string) (*entry, uritemplate.Values) {
	if e, values := c.catalog.findResource(uri); e != nil && c.sees(e) {
		return e, values
	}
	return nil, nil
}

// CanRead reports whether a resource with the URI exists that the caller may see. If it has been
// replaced since the call began, both must be visible.
func (c *Call) CanRead(uri string) bool {
	then, _ := c.findVisible(uri)
	now, _ := c.server.catalog.Load().findResource(uri)
	return then != nil && now != nil && c.sees(now)
}

// hint suggests the name that was meant, among those that the caller may know of.
func (l list) hint(call *Call) string {
	var known []string
	for _, e := range l.sorted {
		if !e.Hidden && call.sees(e) {
			known = append(known, e.key)
		}
	}
	return naming.Hint(call.name, known)
}
