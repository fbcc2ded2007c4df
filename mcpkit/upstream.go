package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/internal/paramheader"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/secret"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// An Upstream answers for tools, prompts and resources of another server, of which there are only
// the definitions: see [Upstream.Item] and [Server.Replace]. Package proxy is made of it.
type Upstream struct {
	// Site says where the definitions come from, for errors: "proxy of weather".
	Site string
	// Scopes are what a caller needs to see and use them.
	Scopes []string
	// Call answers tools/call, prompts/get and resources/read. [Call.OwnName] is the name in the
	// definition.
	Call Handler
	// Complete answers completion/complete; nil if arguments and variables cannot be completed.
	Complete Handler
	// Subscribe is called for each subscription to a resource. Its error is that of the subscription.
	// What changes is told with [Server.ResourceUpdated].
	Subscribe func(ctx context.Context, uri string) error
}

// Item returns the item of a definition, a JSON object of the protocol. list is the method whose
// result it is part of: "tools/list", "prompts/list", "resources/list" or "resources/templates/list".
// Unknown members are kept. The error says what is wrong with the definition.
func (u *Upstream) Item(list string, definition json.RawMessage) (Item, error) {
	it, err := u.item(list, definition)
	if err != nil {
		return nil, fmt.Errorf("%s: %q: %w", u.Site, it.base().key, err)
	}
	return upstreamItem{it}, nil
}

// An upstreamItem is an Item that is an entry already.
type upstreamItem struct{ item }

func (i upstreamItem) build(_ *Server, d *draft) error {
	*d = append(*d, i.item)
	return nil
}

func (u *Upstream) item(list string, raw json.RawMessage) (item, error) {
	switch list {
	case protocol.MethodToolsList:
		return u.tool(raw)
	case protocol.MethodPromptsList:
		return u.prompt(raw)
	case protocol.MethodResourcesList:
		return u.resource(raw)
	case protocol.MethodResourcesTemplatesList:
		return u.template(raw)
	}
	return &entry{}, fmt.Errorf("%q lists no definitions", list)
}

func (u *Upstream) entry(key string) entry {
	return entry{
		key: key, site: fmt.Sprintf("%s (%s)", u.Site, key), scopes: u.Scopes, logs: true, overdue: new(overdueCount),
		run: u.Call, completion: u.Complete, subscribe: u.Subscribe,
	}
}

func (u *Upstream) tool(raw json.RawMessage) (*tool, error) {
	t := &tool{raw: raw}
	if err := jsonx.Unmarshal(raw, &t.def); err != nil {
		return t, err
	}
	t.entry = u.entry(t.def.Name)
	t.completion = nil
	err := naming.Check(t.def.Name)
	if err == nil {
		t.headers, err = paramheader.Params(t.def.InputSchema)
	}
	t.secrets = secret.OfSchema(t.def.InputSchema)
	t.setToolWire()
	return t, err
}

func (u *Upstream) prompt(raw json.RawMessage) (*prompt, error) {
	p := &prompt{raw: raw}
	if err := jsonx.Unmarshal(raw, &p.def); err != nil {
		return p, err
	}
	p.entry = u.entry(p.def.Name)
	p.setPromptWire()
	return p, naming.Check(p.key)
}

func (u *Upstream) resource(raw json.RawMessage) (*resource, error) {
	r := &resource{private: true}
	if err := jsonx.Unmarshal(raw, &r.def); err != nil {
		return r, err
	}
	r.entry, r.mime = u.entry(r.def.URI), r.def.MIMEType
	r.completion = nil
	r.setWire(func(protocol.Version) (any, error) { return raw, nil })
	if !strings.Contains(r.key, ":") {
		return r, errors.New("it is not an absolute URI")
	}
	return r, nil
}

func (u *Upstream) template(raw json.RawMessage) (*resource, error) {
	r := &resource{private: true}
	if err := jsonx.Unmarshal(raw, &r.templateDef); err != nil {
		return r, err
	}
	r.entry, r.mime = u.entry(r.templateDef.URITemplate), r.templateDef.MIMEType
	r.setWire(func(protocol.Version) (any, error) { return raw, nil })
	tmpl, err := parseTemplate(r.key)
	if err == nil && len(tmpl.Vars()) == 0 {
		err = errors.New("the template has no variables")
	}
	r.template = tmpl
	return r, err
}

// Replace replaces what an earlier call of Replace has registered by items, and notifies subscribed
// clients of the lists that differ. Everything else that was registered stays. If an item has a
// fault, nothing changes.
func (s *Server) Replace(items ...Item) error { return s.replace(&s.replaced, items) }
