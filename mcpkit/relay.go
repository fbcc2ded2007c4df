package mcpkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/relay"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

func init() {
	relay.Replace = func(server any, d relay.Definitions, h relay.Handler) ([]error, error) {
		return server.(*Server).relayed(d, h)
	}
	relay.Ask = relayQuestion
	relay.Pending = func(err error) bool { return errors.Is(err, errAsked) }
	relay.Log = relayLog
	relay.Has = func(call any, uri string) bool {
		c := call.(*Call)
		_, ok := c.catalog.findResource(c.principal, uri)
		return ok
	}
}

// relayedResult is what the other server answered, as a Result.
func relayedResult(result any, err error) (Result, error) {
	if err != nil {
		return nil, err
	}
	return wholeResult(reflect.ValueOf(result))
}

// relayed replaces all that the server has of another one.
func (s *Server) relayed(d relay.Definitions, h relay.Handler) (skipped []error, err error) {
	r := &relayer{server: s, from: d, handler: func(ctx context.Context, _ *Call) (Result, error) { return relayedResult(h(ctx)) }}
	add(r, d.Tools, r.tool)
	add(r, d.Prompts, r.prompt)
	add(r, d.Resources, r.resource)
	add(r, d.Templates, r.template)
	if faults := s.checkScopes(&r.draft); faults != nil {
		return nil, faults
	}
	err = s.change(func(c *catalog) error {
		next := draft{}
		c.tools, next.tools = replaceRelayed(c.tools, r.draft.tools)
		c.prompts, next.prompts = replaceRelayed(c.prompts, r.draft.prompts)
		c.resources, next.resources = replaceRelayed(c.resources, r.draft.resources)
		c.templates, next.templates = replaceRelayed(c.templates, r.draft.templates)
		return c.add(&next)
	})
	return r.skipped, err
}

// replaceRelayed takes out of r what another server had, unless items say the same. It returns what is to be added.
func replaceRelayed[T item](r registry[T], items []T) (registry[T], []T) {
	var keys []string
	known := map[string]T{}
	for _, it := range r.added {
		if e := it.base(); e.relayed != nil {
			keys, known[e.key] = append(keys, e.key), it
		}
	}
	same := len(keys) == len(items)
	for _, it := range items {
		old, ok := known[it.base().key]
		same = same && ok && bytes.Equal(old.base().relayed, it.base().relayed)
	}
	if same {
		return r, nil
	}
	r, _ = r.without(keys)
	return r, items
}

// A relayer makes entries of the definitions of another server.
type relayer struct {
	server  *Server
	from    relay.Definitions
	handler Handler
	draft   draft
	skipped []error
}

// add makes entries of one kind. What cannot be had, and what comes twice, is skipped: it is not this program's mistake.
func add(r *relayer, definitions []json.RawMessage, make func(json.RawMessage) (key string, keep func(), err error)) {
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

func (r *relayer) entry(key string, raw json.RawMessage) entry {
	return entry{
		key: key, site: fmt.Sprintf("%s (%s)", r.from.Site, key), scopes: r.from.Scopes, logs: true,
		relayed: raw, run: r.handler,
	}
}

func (r *relayer) tool(raw json.RawMessage) (string, func(), error) {
	t := &tool{raw: raw}
	if err := jsonx.Unmarshal(raw, &t.def); err != nil {
		return "", nil, err
	}
	t.entry = r.entry(t.def.Name, raw)
	err := checkName(t.def.Name)
	if err == nil {
		t.headers, err = headerParams(t.def.InputSchema)
	}
	t.secrets = secrecyOfSchema(t.def.InputSchema)
	t.setToolWire()
	return t.key, func() { r.draft.tools = append(r.draft.tools, t) }, err
}

func (r *relayer) prompt(raw json.RawMessage) (string, func(), error) {
	p := &prompt{raw: raw}
	if err := jsonx.Unmarshal(raw, &p.def); err != nil {
		return "", nil, err
	}
	p.entry = r.entry(p.def.Name, raw)
	if r.from.Completes {
		p.complete = map[string]completer{}
		for _, a := range p.def.Arguments {
			p.complete[a.Name] = listCompleter(nil) // the proxy's middleware answers
		}
	}
	p.setPromptWire()
	return p.key, func() { r.draft.prompts = append(r.draft.prompts, p) }, checkName(p.key)
}

func (r *relayer) resource(raw json.RawMessage) (string, func(), error) {
	res := &resource{private: true}
	if err := jsonx.Unmarshal(raw, &res.def); err != nil {
		return "", nil, err
	}
	res.entry, res.mime = r.entry(res.def.URI, raw), res.def.MIMEType
	var err error
	if !strings.Contains(res.key, ":") {
		err = errors.New("it is no absolute URI")
	}
	res.setWire(func(protocol.Version) any { return raw })
	return res.key, func() { r.draft.resources = append(r.draft.resources, res) }, err
}

func (r *relayer) template(raw json.RawMessage) (string, func(), error) {
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

// relayQuestion asks what another server asks.
func relayQuestion(ctx context.Context, method string, params json.RawMessage, key string) (json.RawMessage, error) {
	var has func(protocol.ClientCapabilities) bool
	var needed protocol.ClientCapabilities
	what := shortName(method)
	switch {
	case method == protocol.MethodSamplingCreateMessage:
		tools := jsonx.Member(params, "tools") != nil || jsonx.Member(params, "toolChoice") != nil
		needed.Sampling = &protocol.SamplingCapability{}
		if tools {
			needed.Sampling.Tools = protocol.Object{}
		}
		has = func(c protocol.ClientCapabilities) bool {
			return c.Sampling != nil && (!tools || c.Sampling.Tools != nil)
		}
	case method == protocol.MethodRootsList:
		needed.Roots = &protocol.RootsCapability{}
		has = func(c protocol.ClientCapabilities) bool { return c.Roots != nil }
	case jsonx.IsString(jsonx.Member(params, "mode"), protocol.ElicitURL):
		needed.Elicitation = &protocol.ElicitationCapability{URL: protocol.Object{}}
		has = func(c protocol.ClientCapabilities) bool { return c.Elicitation.SupportsURL() }
	default:
		needed.Elicitation = &protocol.ElicitationCapability{}
		has = func(c protocol.ClientCapabilities) bool { return c.Elicitation.SupportsForm() }
	}
	c, err := asking(ctx, has, needed, what)
	if err != nil {
		return nil, err
	}
	return c.ask(ctx, method, params, []AskOption{Key(key)})
}

// relayLog passes a log message of another server on.
func relayLog(ctx context.Context, params json.RawMessage) {
	c := CallFrom(ctx)
	if c == nil {
		return
	}
	level := protocol.LoggingLevel(jsonx.String(jsonx.Member(params, "level")))
	if level.Valid() && c.wants(level) {
		c.notify(protocol.NotificationMessage, params)
	}
}
