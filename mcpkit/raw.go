package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/internal/uritemplate"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/annotation"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/result"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/secret"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// newRaw returns the entry of a complete definition with the key, without its handler.
func newRaw(k entryKind, key, site string) (e *entry, err error) {
	e = &entry{kind: k, key: key, site: site, logs: true}
	switch k {
	case toolEntry, promptEntry:
		err = naming.Check(key)
	case resourceEntry:
		if !strings.Contains(key, ":") {
			err = errors.New("it is not an absolute URI")
		}
		e.canonical = uritemplate.Canonical(key)
	case templateEntry:
		if e.template, err = parseTemplate(key); err == nil && len(e.template.Vars()) == 0 {
			err = errors.New("the template has no variables")
		}
	}
	return e, err
}

// A rawFunc reads its arguments from the call and returns what a method may return.
type rawFunc func(ctx context.Context, call *Call) (any, error)

// values returns h as a method with one result.
func (h rawFunc) values(ctx context.Context, call *Call) ([]reflect.Value, error) {
	v, err := h(ctx, call)
	return []reflect.Value{reflect.ValueOf(&v).Elem()}, err
}

// addRaw adds the entry of a complete definition, to which set gives the handler h.
func (s *Server) addRaw(k entryKind, key string, h rawFunc, set func(e *entry) error) error {
	site := calledFrom(fmt.Sprintf("mcpkit: %s %s", k, jsonx.AppendString(nil, key)))
	e, err := newRaw(k, key, site)
	if h == nil {
		err = errors.New("the handler is nil; give a func(context.Context, *mcpkit.Call) (any, error)")
	}
	if err == nil {
		err = set(e)
	}
	if err != nil {
		return at(site, err)
	}
	return s.add([]*entry{e})
}

// AddTool registers a tool with a complete definition, for instance one that another program
// described. The arguments are validated against the input schema before h runs; h reads them from
// the call. For schemas the server needs the option [RawSchemas]; without an input schema the tool
// takes no arguments.
func (s *Server) AddTool(def protocol.Tool, h func(ctx context.Context, call *Call) (any, error)) error {
	return s.addRaw(toolEntry, def.Name, h, func(e *entry) error {
		input, inErr := s.handSchema("input", def.InputSchema)
		output, outErr := s.handSchema("output", def.OutputSchema)
		if err := joinFaults(at(e.site, inErr), at(e.site, outErr)); err != nil {
			return err
		}
		validate := refuseArguments
		if input == nil {
			def.InputSchema = noArguments
		} else {
			e.secrets = secret.OfSchema(def.InputSchema)
			validate = func(_ context.Context, args json.RawMessage) error {
				if args == nil {
					args = json.RawMessage("{}")
				}
				return input.Validate(args)
			}
		}
		run := func(ctx context.Context, call *Call) ([]reflect.Value, error) {
			if err := validate(ctx, call.Arguments()); err != nil {
				return nil, err
			}
			return rawFunc(h).values(ctx, call)
		}
		return s.setTool(e, &annotation.Annotation{}, def, result.Dynamic(result.Tool), output, run)
	})
}

// AddPrompt registers a prompt with a complete definition. h reads the arguments with [Call.Var]
// and returns what a prompt method may return.
func (s *Server) AddPrompt(def protocol.Prompt, h func(ctx context.Context, call *Call) (any, error)) error {
	return s.addRaw(promptEntry, def.Name, h, func(e *entry) error {
		run := func(ctx context.Context, call *Call) ([]reflect.Value, error) {
			for _, a := range def.Arguments {
				if _, ok := call.text(a.Name); !ok && a.Required != nil && *a.Required {
					return nil, invalidParams("prompt %q needs the argument %q", call.name, a.Name)
				}
			}
			return rawFunc(h).values(ctx, call)
		}
		s.setPrompt(e, &annotation.Annotation{}, def, result.Dynamic(result.Prompt), run)
		return nil
	})
}

// AddResource registers a resource with a complete definition. h returns what a resource method may
// return.
func (s *Server) AddResource(def protocol.Resource, h func(ctx context.Context, call *Call) (any, error)) error {
	return s.addRaw(resourceEntry, def.URI, h, s.rawResource(def, def.MIMEType, h))
}

// AddResourceTemplate registers a resource template with a complete definition. h reads the
// variables with [Call.Var] and returns what a resource method may return.
func (s *Server) AddResourceTemplate(def protocol.ResourceTemplate, h func(ctx context.Context, call *Call) (any, error)) error {
	return s.addRaw(templateEntry, def.URITemplate, h, s.rawResource(def, def.MIMEType, h))
}

// rawResource returns what makes an entry the resource or template of the definition.
func (s *Server) rawResource(def any, mime string, h rawFunc) func(*entry) error {
	return func(e *entry) error {
		e.definition = defined(def)
		s.setResource(e, &annotation.Annotation{}, mime, cacheHint(0, true), result.Dynamic(result.Resource), h.values)
		return nil
	}
}

// checkOutput validates a result against the output schema, since clients rely on it (server/tools,
// "Output Schema").
func checkOutput(schema reflectx.RawSchema, output Result) error {
	r, ok := output.(*protocol.CallToolResult)
	if !ok || r.IsError {
		return nil
	}
	if r.StructuredContent == nil {
		return fmt.Errorf("the tool has an output schema but returned no structured content")
	}
	if err := schema.Validate(r.StructuredContent); err != nil {
		return fmt.Errorf("the structured content does not fit the output schema: %v", err)
	}
	return nil
}

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
	var t protocol.Tool
	var p protocol.Prompt
	var r protocol.Resource
	var tmpl protocol.ResourceTemplate
	var k entryKind
	var def any
	var key *string
	switch list {
	case protocol.MethodToolsList:
		k, def, key = toolEntry, &t, &t.Name
	case protocol.MethodPromptsList:
		k, def, key = promptEntry, &p, &p.Name
	case protocol.MethodResourcesList:
		k, def, key = resourceEntry, &r, &r.URI
	case protocol.MethodResourcesTemplatesList:
		k, def, key = templateEntry, &tmpl, &tmpl.URITemplate
	default:
		return nil, fmt.Errorf("%s: %q lists no definitions", u.Site, list)
	}
	err := jsonx.Unmarshal(definition, def)
	if err == nil {
		var e *entry
		if e, err = newRaw(k, *key, fmt.Sprintf("%s (%s)", u.Site, *key)); err == nil {
			err = u.set(e, t, definition)
		}
		if err == nil {
			return upstreamItem{e}, nil
		}
	}
	return nil, fmt.Errorf("%s: %q: %w", u.Site, *key, err)
}

// set gives the entry its definition, and what answers for it. def is that of a tool.
func (u *Upstream) set(e *entry, def protocol.Tool, text json.RawMessage) (err error) {
	e.scopes, e.run, e.subscribe, e.limits.overdue = u.Scopes, u.Call, u.Subscribe, new(overdueCount)
	e.definition = defined(text)
	switch e.kind {
	case toolEntry:
		e.tool, err = newTool(def)
		e.secrets = secret.OfSchema(def.InputSchema)
		e.definition = &definition{make: func(v protocol.Version) (any, error) { return protocol.ToolFor(v, text), nil }}
	case promptEntry, templateEntry:
		if u.Complete != nil {
			e.complete = func(ctx context.Context, call *Call, _ *protocol.CompleteParams) (Result, error) {
				return u.Complete(ctx, call)
			}
		}
	}
	return err
}

// An upstreamItem is an Item that is an entry already.
type upstreamItem struct{ *entry }

func (i upstreamItem) build(*Server) (*entry, error) { return i.entry, nil }

// Replace replaces what an earlier call of Replace has registered by items, and notifies subscribed
// clients of the lists that differ. Everything else that was registered stays. If an item has a
// fault, nothing changes.
func (s *Server) Replace(items ...Item) error { return s.replace(&s.replaced, items) }
