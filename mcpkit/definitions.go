package mcpkit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/paramheader"
	"github.com/mcpkit/mcpkit-go/internal/toolname"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/secret"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Definitions are the tools, prompts and resources of another server, each as a JSON object of the
// protocol. Unknown members are kept.
type Definitions struct {
	Tools, Prompts, Resources, Templates []json.RawMessage

	// Info and Instructions are what the other server says about itself. If Info has a name, this
	// server says the same. It does not tell a parent that it is mounted in.
	Info         protocol.Implementation
	Instructions string

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
	r := &definer{from: d, handler: h}
	tools, prompts := defined(r, d.Tools, r.tool), defined(r, d.Prompts, r.prompt)
	resources, templates := defined(r, d.Resources, r.resource), defined(r, d.Templates, r.template)
	all := appendItems(appendItems(nil, tools), prompts)
	all = appendItems(appendItems(all, resources), templates)
	if faults := s.checkScopes(all); faults != nil {
		return nil, faults
	}
	err = s.change(func(c *catalog) error {
		next := replaceDefined(nil, &c.tools, tools)
		next = replaceDefined(next, &c.prompts, prompts)
		next = replaceDefined(next, &c.resources, resources)
		next = replaceDefined(next, &c.templates, templates)
		return c.add(next)
	})
	if err == nil && d.Info.Name != "" {
		s.introduceAs(d.Info, d.Instructions)
	}
	return r.skipped, err
}

// replaceDefined removes the definitions of another server from r, and appends items, which are to
// be added in their place, to d. If they are equal, r stays unchanged.
func replaceDefined[T item](d draft, r *registry[T], items []T) draft {
	known := map[string]T{}
	for _, it := range r.added {
		if e := it.base(); e.given != nil {
			known[e.key] = it
		}
	}
	same := len(known) == len(items)
	for _, it := range items {
		old, ok := known[it.base().key]
		same = same && ok && bytes.Equal(old.base().given, it.base().given)
	}
	if same {
		return d
	}
	r.remove(func(e *entry) bool { return e.given != nil })
	return appendItems(d, items)
}

// A definer makes entries of the definitions of another server.
type definer struct {
	from    Definitions
	handler Handler
	skipped []error
}

// defined makes entries of one kind. Invalid and duplicate definitions are skipped, since they are
// not mistakes of this program.
func defined[T item](r *definer, definitions []json.RawMessage, make func(json.RawMessage) (T, error)) (items []T) {
	seen := map[string]bool{}
	for _, raw := range definitions {
		it, err := make(raw)
		key := it.base().key
		switch {
		case err != nil:
			r.skipped = append(r.skipped, fmt.Errorf("%s: %q: %w", r.from.Site, key, err))
		case seen[key]:
			r.skipped = append(r.skipped, fmt.Errorf("%s: %q comes twice", r.from.Site, key))
		default:
			seen[key] = true
			items = append(items, it)
		}
	}
	return items
}

func (r *definer) entry(key string, raw json.RawMessage) entry {
	return entry{
		key: key, site: fmt.Sprintf("%s (%s)", r.from.Site, key), scopes: r.from.Scopes, logs: true, overdue: new(overdueCount),
		given: raw, run: r.handler,
	}
}

func (r *definer) tool(raw json.RawMessage) (*tool, error) {
	t := &tool{raw: raw}
	if err := jsonx.Unmarshal(raw, &t.def); err != nil {
		return t, err
	}
	t.entry = r.entry(t.def.Name, raw)
	err := toolname.Check(t.def.Name)
	if err == nil {
		t.headers, err = paramheader.Params(t.def.InputSchema)
	}
	t.secrets = secret.OfSchema(t.def.InputSchema)
	t.setToolWire()
	return t, err
}

func (r *definer) prompt(raw json.RawMessage) (*prompt, error) {
	p := &prompt{raw: raw}
	if err := jsonx.Unmarshal(raw, &p.def); err != nil {
		return p, err
	}
	p.entry = r.entry(p.def.Name, raw)
	if r.from.Completes {
		p.complete = map[string]completer{}
		for _, a := range p.def.Arguments {
			p.complete[a.Name] = listCompleter(nil) // middleware answers
		}
	}
	p.setPromptWire()
	return p, toolname.Check(p.key)
}

func (r *definer) resource(raw json.RawMessage) (*resource, error) {
	res := &resource{private: true}
	if err := jsonx.Unmarshal(raw, &res.def); err != nil {
		return res, err
	}
	res.entry, res.mime = r.entry(res.def.URI, raw), res.def.MIMEType
	res.setWire(func(protocol.Version) any { return raw })
	if !strings.Contains(res.key, ":") {
		return res, errors.New("it is not an absolute URI")
	}
	return res, nil
}

func (r *definer) template(raw json.RawMessage) (*resource, error) {
	res := &resource{private: true}
	if err := jsonx.Unmarshal(raw, &res.templateDef); err != nil {
		return res, err
	}
	res.entry, res.mime = r.entry(res.templateDef.URITemplate, raw), res.templateDef.MIMEType
	res.setWire(func(protocol.Version) any { return raw })
	tmpl, err := parseTemplate(res.key)
	if err != nil {
		return res, err
	}
	if len(tmpl.Vars()) == 0 {
		return res, errors.New("the template has no variables")
	}
	res.template = tmpl
	if r.from.Completes {
		res.complete = map[string]completer{}
		for _, name := range tmpl.Vars() {
			res.complete[name] = listCompleter(nil)
		}
	}
	return res, nil
}
