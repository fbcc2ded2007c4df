package mcpkit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/toolname"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/mirror"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/secret"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// Definitions are the tools, prompts and resources of another server, each as a JSON object of the
// protocol. Unknown members are kept.
type Definitions struct {
	Tools, Prompts, Resources, Templates []json.RawMessage

	// Site says where they come from, for errors: "proxy of weather".
	Site string
	// Scopes are what a caller needs to see and use them.
	Scopes []string
	// Completes says that arguments and variables can be completed. Middleware of the server must
	// answer completion/complete.
	Completes bool
}

// SetDefinitions replaces the definitions of an earlier call, and notifies subscribed clients of
// the lists that differ. Everything else that was registered stays. h answers the calls of tools,
// prompts and resources. Package proxy uses it.
//
// skipped has the reasons for definitions that the server cannot have. The error means that a name
// or URI is registered already, names both places, and nothing has changed.
func (s *Server) SetDefinitions(d Definitions, h Handler) (skipped []error, err error) {
	r := &definer{server: s, from: d, handler: h}
	add(r, d.Tools, r.tool)
	add(r, d.Prompts, r.prompt)
	add(r, d.Resources, r.resource)
	add(r, d.Templates, r.template)
	if faults := s.checkScopes(&r.draft); faults != nil {
		return nil, faults
	}
	err = s.change(func(c *catalog) error {
		next := draft{}
		c.tools, next.tools = replaceDefined(c.tools, r.draft.tools)
		c.prompts, next.prompts = replaceDefined(c.prompts, r.draft.prompts)
		c.resources, next.resources = replaceDefined(c.resources, r.draft.resources)
		c.templates, next.templates = replaceDefined(c.templates, r.draft.templates)
		return c.add(&next)
	})
	return r.skipped, err
}

// replaceDefined removes the definitions of another server from r, unless items are equal. It
// returns what is to be added.
func replaceDefined[T item](r registry[T], items []T) (registry[T], []T) {
	var keys []string
	known := map[string]T{}
	for _, it := range r.added {
		if e := it.base(); e.given != nil {
			keys, known[e.key] = append(keys, e.key), it
		}
	}
	same := len(keys) == len(items)
	for _, it := range items {
		old, ok := known[it.base().key]
		same = same && ok && bytes.Equal(old.base().given, it.base().given)
	}
	if same {
		return r, nil
	}
	r, _ = r.without(keys)
	return r, items
}

// A definer makes entries of the definitions of another server.
type definer struct {
	server  *Server
	from    Definitions
	handler Handler
	draft   draft
	skipped []error
}

// add makes entries of one kind. Invalid and duplicate definitions are skipped, since they are not
// mistakes of this program.
func add(r *definer, definitions []json.RawMessage, make func(json.RawMessage) (key string, keep func(), err error)) {
	seen := map[string]bool{}
	for _, raw := range definitions {
		key, keep, err := make(raw)
		switch {
		case err != nil:
			r.skipped = append(r.skipped, fmt.Errorf("%s: %q: %w", r.from.Site, key, err))
		case seen[key]:
			r.skipped = append(r.skipped, fmt.Errorf("%s: %q comes twice", r.from.Site, key))
		default:
			seen[key] = true
			keep()
		}
	}
}

func (r *definer) entry(key string, raw json.RawMessage) entry {
	return entry{
		key: key, site: fmt.Sprintf("%s (%s)", r.from.Site, key), scopes: r.from.Scopes, logs: true, overdue: new(overdueCount),
		given: raw, run: r.handler,
	}
}

func (r *definer) tool(raw json.RawMessage) (string, func(), error) {
	t := &tool{raw: raw}
	if err := jsonx.Unmarshal(raw, &t.def); err != nil {
		return "", nil, err
	}
	t.entry = r.entry(t.def.Name, raw)
	err := toolname.Check(t.def.Name)
	if err == nil {
		t.headers, err = mirror.Params(t.def.InputSchema)
	}
	t.secrets = secret.OfSchema(t.def.InputSchema)
	t.setToolWire()
	return t.key, func() { r.draft.tools = append(r.draft.tools, t) }, err
}

func (r *definer) prompt(raw json.RawMessage) (string, func(), error) {
	p := &prompt{raw: raw}
	if err := jsonx.Unmarshal(raw, &p.def); err != nil {
		return "", nil, err
	}
	p.entry = r.entry(p.def.Name, raw)
	if r.from.Completes {
		p.complete = map[string]completer{}
		for _, a := range p.def.Arguments {
			p.complete[a.Name] = listCompleter(nil) // middleware answers
		}
	}
	p.setPromptWire()
	return p.key, func() { r.draft.prompts = append(r.draft.prompts, p) }, toolname.Check(p.key)
}

func (r *definer) resource(raw json.RawMessage) (string, func(), error) {
	res := &resource{private: true}
	if err := jsonx.Unmarshal(raw, &res.def); err != nil {
		return "", nil, err
	}
	res.entry, res.mime = r.entry(res.def.URI, raw), res.def.MIMEType
	var err error
	if !strings.Contains(res.key, ":") {
		err = errors.New("it is not an absolute URI")
	}
	res.setWire(func(protocol.Version) any { return raw })
	return res.key, func() { r.draft.resources = append(r.draft.resources, res) }, err
}

func (r *definer) template(raw json.RawMessage) (string, func(), error) {
	res := &resource{private: true}
	if err := jsonx.Unmarshal(raw, &res.templateDef); err != nil {
		return "", nil, err
	}
	res.entry, res.mime = r.entry(res.templateDef.URITemplate, raw), res.templateDef.MIMEType
	tmpl, err := parseTemplate("", res.key)
	if err == nil && len(tmpl.Vars()) == 0 {
		err = errors.New("the template has no variables")
	}
	if err == nil && r.from.Completes {
		res.complete = map[string]completer{}
		for _, name := range tmpl.Vars() {
			res.complete[name] = listCompleter(nil)
		}
	}
	if fault, ok := errors.AsType[*reflectx.Error](err); ok {
		err = errors.New(fault.Msg)
	}
	res.template = tmpl
	res.setWire(func(protocol.Version) any { return raw })
	return res.key, func() { r.draft.templates = append(r.draft.templates, res) }, err
}
