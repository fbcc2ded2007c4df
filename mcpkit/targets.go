package mcpkit

import (
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/internal/uritemplate"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// textArguments are the arguments of a prompt.
type textArguments []struct{ name, value string }

// Get returns the argument with the name.
func (args textArguments) Get(name string) (value string, ok bool) {
	for _, a := range args {
		if a.name == name {
			return a.value, true
		}
	}
	return "", false
}

// nameOf reads the name or URI of a request. known returns the registered string that equals it, to
// save a copy.
func nameOf(call *Call, known func(name []byte) (string, bool)) *jsonrpc.Error {
	raw := call.req.Param(call.row.nameParam)
	if jsonx.Kind(raw) != '"' {
		return invalidParams("%s needs %s, a string", call.row.method, call.row.nameParam)
	}
	name, ok := known(raw[1 : len(raw)-1])
	if !ok {
		name = jsonx.String(raw)
	}
	call.name = name
	return nil
}

// findTool finds the tool of tools/call. A tool that the caller may not see does not exist.
func findTool(call *Call) *jsonrpc.Error {
	if err := nameOf(call, call.catalog.tools.key); err != nil {
		return err
	}
	t, ok := call.catalog.tools.get(call.name)
	if !ok || !call.mayKnow(&t.entry) {
		return invalidParams("unknown tool %q%s", call.name, call.catalog.tools.hint(call))
	}
	call.entry, call.item = &t.entry, t
	if raw := call.Arguments(); raw != nil && jsonx.Kind(raw) != '{' {
		return invalidParams("the arguments of tool %q are not an object", call.name)
	}
	return nil
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
	call.server.config.logger.WarnContext(call.limit, "mcpkit: a call was refused by scopes or Authorize; the caller got the response for an unknown name",
		"ref", call.Ref(), "method", call.row.method, "name", call.name, "scopes", strings.Join(e.scopes, " "), "callerScopes", has, "principal", who)
	return false
}

// findPrompt finds the prompt of prompts/get and its arguments.
func findPrompt(call *Call) *jsonrpc.Error {
	if err := nameOf(call, call.catalog.prompts.key); err != nil {
		return err
	}
	p, ok := call.catalog.prompts.get(call.name)
	if !ok || !call.mayKnow(&p.entry) {
		return invalidParams("unknown prompt %q%s", call.name, call.catalog.prompts.hint(call))
	}
	call.entry, call.item = &p.entry, p
	raw := call.Arguments()
	if raw != nil && jsonx.Kind(raw) != '{' {
		return invalidParams("the arguments of prompt %q are not an object", call.name)
	}
	args, err := readTextArguments(call.name, raw)
	call.vars = args
	return err
}

// readTextArguments reads the arguments of a prompt.
func readTextArguments(prompt string, raw []byte) (textArguments, *jsonrpc.Error) {
	var args textArguments
	for name, value := range jsonx.Members(raw) {
		if jsonx.Kind(value) != '"' {
			return nil, invalidParams("argument %s of prompt %q is not a string", name, prompt)
		}
		args = append(args, struct{ name, value string }{jsonx.String(name), jsonx.String(value)})
	}
	return args, nil
}

// findResource finds the resource of resources/read.
func findResource(call *Call) *jsonrpc.Error {
	if err := nameOf(call, call.catalog.resources.key); err != nil {
		return err
	}
	if len(call.name) > uritemplate.MaxURI {
		return invalidParams("the uri has %d bytes; at most %d are allowed", len(call.name), uritemplate.MaxURI)
	}
	m := call.catalog.findResource(call.name)
	if m.resource == nil || !call.mayKnow(&m.resource.entry) {
		return protocol.ResourceNotFound(call.version, call.name)
	}
	call.matched(m)
	return nil
}

// matched sets the target of a call that is about a resource.
func (c *Call) matched(m resourceMatch) {
	c.entry, c.item = &m.resource.entry, m.resource
	if len(m.vars) > 0 {
		c.vars = m.vars
	}
}

// findSubscribed finds the resource of a subscription for middleware. The method itself reports
// faults.
func findSubscribed(call *Call) *jsonrpc.Error {
	if m := call.findVisible(jsonx.String(call.req.Param("uri"))); m.resource != nil {
		call.matched(m)
	}
	return nil
}

// findListened combines the tags and scopes of all resources of subscriptions/listen for
// middleware.
func findListened(call *Call) *jsonrpc.Error {
	e := &entry{}
	n := 0
	for uri := range jsonx.Elements(jsonx.Member(call.req.Param("notifications"), "resourceSubscriptions")) {
		if n++; n > maxSubscriptions {
			break // too many: the method refuses all
		}
		if m := call.findVisible(jsonx.String(uri)); m.resource != nil {
			e.tags = union(e.tags, m.resource.tags)
			e.scopes = union(e.scopes, m.resource.scopes)
		}
	}
	if e.tags != nil || e.scopes != nil {
		call.entry = e
	}
	return nil
}

// union adds the missing words to list.
func union(list, words []string) []string {
	for _, w := range words {
		if !slices.Contains(list, w) {
			list = append(list, w)
		}
	}
	return list
}

// findCompleted finds what is completed, for middleware. The method itself reports faults.
func findCompleted(call *Call) *jsonrpc.Error {
	ref := call.req.Param("ref")
	found, _, err := call.completersOf(protocol.CompletionRef{
		Type: jsonx.String(jsonx.Member(ref, "type")),
		Name: jsonx.String(jsonx.Member(ref, "name")),
		URI:  jsonx.String(jsonx.Member(ref, "uri")),
	})
	if err == nil {
		call.entry, call.item = found.base(), found
		call.name = call.entry.key
		row := *call.row // servers share it
		row.overdue = call.entry.overdue
		call.row = &row
	}
	return nil
}

// A resourceMatch is the resource with a URI, or the template that matches it with the values of
// its variables.
type resourceMatch struct {
	resource *resource
	vars     uritemplate.Values
}

// findResource returns the resource that answers for the URI, if there is one. It is the same for all
// callers: a wider template is not a way around scopes.
func (c *catalog) findResource(uri string) resourceMatch {
	for _, s := range c.speakers {
		if r, ok := s.resources[uri]; ok {
			return resourceMatch{resource: r}
		}
		for _, t := range s.templates {
			if values, ok := t.template.Match(uri); ok {
				return resourceMatch{t, values}
			}
		}
	}
	return resourceMatch{}
}

// findVisible is like findResource for what the caller may know of.
func (c *Call) findVisible(uri string) resourceMatch {
	if m := c.catalog.findResource(uri); m.resource != nil && c.sees(&m.resource.entry) {
		return m
	}
	return resourceMatch{}
}

// CanRead reports whether a resource with the URI exists that the caller may see. If it has been
// replaced since the call began, both must be visible.
func (c *Call) CanRead(uri string) bool {
	if c.findVisible(uri).resource == nil {
		return false
	}
	now := c.server.catalog.Load().findResource(uri)
	return now.resource != nil && c.sees(&now.resource.entry)
}

// hint suggests the name that was meant, among those that the caller may know of.
func (l list[T]) hint(call *Call) string {
	var known []string
	for _, it := range l.sorted {
		if e := it.base(); !e.hidden && call.sees(e) {
			known = append(known, e.key)
		}
	}
	return naming.Hint(call.name, known)
}
