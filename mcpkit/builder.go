package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/toolname"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/secret"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// An Item is a tool, prompt or resource that is built in code: by [NewTool], [NewPrompt] or
// [NewResource].
type Item interface {
	build(s *Server, d *draft) error
}

// Add registers items. If one of them has a fault, none is registered, and the error has all faults
// of all items. Subscribed clients are notified once.
func (s *Server) Add(items ...Item) error {
	d, err := s.draft(items)
	if err != nil {
		return err
	}
	return s.add(d)
}

// draft makes the entries of items. The error has all faults of all items.
func (s *Server) draft(items []Item) (d draft, err error) {
	var errs []error
	for i, it := range items {
		if v := reflect.ValueOf(it); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			errs = append(errs, &reflectx.Error{Msg: fmt.Sprintf("mcpkit: Add: item %d is nil; make one with NewTool, NewPrompt or NewResource", i+1)})
			continue
		}
		errs = append(errs, it.build(s, &d))
	}
	return d, joinFaults(errs...)
}

// A ToolBuilder describes a tool. Make one with [NewTool] and register it with [Server.Add].
type ToolBuilder struct{ builder }

// A PromptBuilder describes a prompt. Make one with [NewPrompt] and register it with [Server.Add].
type PromptBuilder struct{ builder }

// A ResourceBuilder describes a resource or a resource template. Make one with [NewResource] and
// register it with [Server.Add].
type ResourceBuilder struct{ builder }

// builder is the part that all builders share. Its values are those of the tags of methods.
type builder struct {
	def    definition
	names  []string    // of plain parameters, from Param
	extra  [][2]string // keys and values of tags of extensions
	faults []string
}

func newBuilder(k kind, name string, fn any) builder {
	b := builder{def: definition{annotation: &annotation{kind: k}, name: name, fn: reflect.ValueOf(fn)}}
	b.def.site = calledFrom(fmt.Sprintf("mcpkit: %s %q", strings.ToLower(k.String()), name))
	if b.def.fn.Kind() != reflect.Func || b.def.fn.IsNil() {
		b.faults = append(b.faults, fmt.Sprintf("needs a function, not %T", fn))
	}
	return b
}

// say sets the value of a tag, with the checks of the tag.
func (b *builder) say(key, value string) {
	for _, t := range tagKeys {
		if t.key == key {
			if err := t.set(b.def.annotation, value); err != nil {
				b.faults = append(b.faults, fmt.Sprintf("%s: %v", key, err))
			}
		}
	}
}

// finish returns the definition, or the faults of its values. It does not change the builder, which
// may be added to several servers, also at the same time.
func (b *builder) finish() (definition, error) {
	def, texts := b.def, slices.Clip(b.faults)
	if b.names != nil {
		if def.hasParams {
			texts = append(texts, "Params and Param both name the parameters; use one of them")
		}
		a := *def.annotation
		a.params, a.hasParams = strings.Join(b.names, ","), true
		def.annotation = &a
	}
	var faults reflectx.Errors
	for _, text := range texts {
		faults = append(faults, &reflectx.Error{Site: def.site, Msg: text})
	}
	return def, joinFaults(faults)
}

func (b *builder) build(s *Server, d *draft) error {
	def, err := b.finish()
	if err != nil {
		return err
	}
	if err := b.extend(s, &def); err != nil {
		return err
	}
	def.completer = func(string) (fn reflect.Value, hint string) { return fn, "" }
	return s.define(d, &def)
}

// extend parses the tags of extensions, which only the server knows.
func (b *builder) extend(s *Server, def *definition) error {
	if b.extra == nil {
		return nil
	}
	a := *def.annotation
	def.annotation = &a
	var faults reflectx.Errors
	for _, tag := range b.extra {
		parsed, texts := parseAnnotation(kindTool, reflect.StructTag(fmt.Sprintf("%s:%q", tag[0], tag[1])), s.extended)
		for _, text := range texts {
			faults = append(faults, &reflectx.Error{Site: def.site, Msg: text})
		}
		a.extended = append(a.extended, parsed.extended...)
	}
	return joinFaults(faults)
}

// NewTool describes a tool that calls fn: a function with the signature of a tool method. With
// [ToolBuilder.Input], one parameter may take all arguments.
func NewTool(name string, fn any) *ToolBuilder {
	return &ToolBuilder{builder: newBuilder(kindTool, name, fn)}
}

// Title sets the name that people see.
func (b *ToolBuilder) Title(t string) *ToolBuilder { b.def.title = t; return b }

// Desc sets the description: what the tool does.
func (b *ToolBuilder) Desc(d string) *ToolBuilder { b.def.desc = d; return b }

// Hints says how the tool affects its environment. The values are those of the hints tag.
func (b *ToolBuilder) Hints(hints ...string) *ToolBuilder {
	b.say("hints", strings.Join(hints, ","))
	return b
}

// Scopes sets the scopes that a caller needs.
func (b *ToolBuilder) Scopes(scopes ...string) *ToolBuilder { b.def.scopes = scopes; return b }

// Tags sets labels for middleware. They are not sent to clients.
func (b *ToolBuilder) Tags(tags ...string) *ToolBuilder { b.def.tags = tags; return b }

// Timeout limits the time of a call; 0 means no limit.
func (b *ToolBuilder) Timeout(d time.Duration) *ToolBuilder { b.say("timeout", d.String()); return b }

// Rate limits how many calls each caller may begin, like the rate tag: "10/s", "100/m burst=20".
func (b *ToolBuilder) Rate(limit string) *ToolBuilder { b.say("rate", limit); return b }

// Cache sets how long the server keeps results and for whom, like the cache tag: "60s",
// "10m,public". The tool needs the hint readonly.
func (b *ToolBuilder) Cache(policy string) *ToolBuilder { b.say("cache", policy); return b }

// Params names the plain parameters of the function in order: "a,b?".
func (b *ToolBuilder) Params(names string) *ToolBuilder { b.say("params", names); return b }

// Param names the next plain parameter of the function, and says what is known of it besides its
// type. Call it once for each parameter that comes from the arguments, in their order, instead of
// Params. The server enforces the rules, as it does for fields of an input struct; mistakes are
// errors of [Server.Add].
func (b *ToolBuilder) Param(name string, opts ...ParamOption) *ToolBuilder {
	b.param(name, opts)
	return b
}

// Tag sets a tag that an [Extension] of the server defines, such as Tag("app", "ui://notes/board").
func (b *ToolBuilder) Tag(key, value string) *ToolBuilder {
	b.extra = append(b.extra, [2]string{key, value})
	return b
}

// Icon adds an icon: an https: or data: URI.
func (b *ToolBuilder) Icon(src string) *ToolBuilder { b.say("icon", src); return b }

// Hidden leaves the tool out of lists.
func (b *ToolBuilder) Hidden() *ToolBuilder { b.def.hidden = true; return b }

// Input sets the JSON Schema of the arguments, an object. The server validates the arguments by it.
// The function takes them as one parameter, a map[string]any or a json.RawMessage, or reads them
// from its *Call; other parameters are injected. Defaults in the schema are not filled in, and
// numbers in the map are float64, so large integers are exact in a json.RawMessage only. Server.Add
// returns an error if the server does not have the option [RawSchemas], or if the schema is not valid
// or refers to anything outside itself.
func (b *ToolBuilder) Input(schema string) *ToolBuilder {
	b.def.input = json.RawMessage(schema)
	return b
}

// Output sets the JSON Schema of the structured result, in place of the schema of the function's
// result type. A result that does not fit is an internal error. The server needs the option
// [RawSchemas].
func (b *ToolBuilder) Output(schema string) *ToolBuilder {
	b.def.output = json.RawMessage(schema)
	return b
}

// A rawFunc reads its arguments from the call and returns what a method may return.
type rawFunc func(ctx context.Context, call *Call) (any, error)

// values returns h as a method with one result.
func (h rawFunc) values(ctx context.Context, call *Call) ([]reflect.Value, error) {
	v, err := h(ctx, call)
	return []reflect.Value{reflect.ValueOf(&v).Elem()}, err
}

// addRaw adds the entry that build makes for the handler h of a complete definition.
func (s *Server) addRaw(what, name string, h rawFunc, build func(d *draft, e entry) error) error {
	e := entry{key: name, site: calledFrom(fmt.Sprintf("mcpkit: %s %s", what, jsonx.AppendString(nil, name))), logs: true}
	if h == nil {
		return &reflectx.Error{Site: e.site, Msg: "the handler is nil; give a func(context.Context, *mcpkit.Call) (any, error)"}
	}
	var d draft
	if err := build(&d, e); err != nil {
		return at(e.site, err)
	}
	return s.add(d)
}

// addRawTool adds a tool whose schemas were written by hand.
func (s *Server) addRawTool(d *draft, t *tool, h rawFunc) error {
	input, inErr := s.handSchema("input", t.def.InputSchema)
	output, outErr := s.handSchema("output", t.def.OutputSchema)
	if err := joinFaults(at(t.site, toolname.Check(t.def.Name)), at(t.site, inErr), at(t.site, outErr)); err != nil {
		return err
	}
	validate := refuseArguments
	if input == nil {
		t.def.InputSchema = noArguments
	} else {
		t.secrets = secret.OfSchema(t.def.InputSchema)
		validate = func(_ context.Context, args json.RawMessage) error {
			if args == nil {
				args = json.RawMessage("{}")
			}
			return input.Validate(args)
		}
	}
	return s.addTool(d, t, dynamicOutputs(toolTypes), output, func(ctx context.Context, call *Call) ([]reflect.Value, error) {
		if err := validate(ctx, call.Arguments()); err != nil {
			return nil, err
		}
		return h.values(ctx, call)
	})
}

func prefixed(prefix string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s%w", prefix, err)
}

// checkOutput validates a result against the output schema, since clients rely on it (server/tools,
// "Output Schema").
func checkOutput(schema reflectx.RawSchema, result Result) error {
	r, ok := result.(*ToolResult)
	if !ok || r.IsError {
		return nil
	}
	if r.StructuredContent.IsZero() {
		return fmt.Errorf("the tool has an output schema but returned no structured content")
	}
	if err := schema.Validate([]byte(r.StructuredContent.text)); err != nil {
		return fmt.Errorf("the structured content does not fit the output schema: %v", err)
	}
	return nil
}

// AddTool registers a tool with a complete definition, for instance one that another program
// described. The arguments are validated against the input schema before h runs; h reads them from
// the call. For schemas the server needs the option [RawSchemas]; without an input schema the tool
// takes no arguments.
func (s *Server) AddTool(def protocol.Tool, h func(ctx context.Context, call *Call) (any, error)) error {
	return s.addRaw("tool", def.Name, h, func(d *draft, e entry) error { return s.addRawTool(d, &tool{entry: e, def: def}, h) })
}

// AddPrompt registers a prompt with a complete definition. h reads the arguments with [Call.Var]
// and returns what a prompt method may return.
func (s *Server) AddPrompt(def protocol.Prompt, h func(ctx context.Context, call *Call) (any, error)) error {
	return s.addRaw("prompt", def.Name, h, func(d *draft, e entry) error {
		if err := toolname.Check(def.Name); err != nil {
			return err
		}
		s.addPrompt(d, &prompt{entry: e, def: def}, dynamicOutputs(promptTypes), func(ctx context.Context, call *Call) ([]reflect.Value, error) {
			for _, a := range def.Arguments {
				if _, ok := call.text(a.Name); !ok && a.Required != nil && *a.Required {
					return nil, invalidParams("prompt %q needs the argument %q", call.name, a.Name)
				}
			}
			return rawFunc(h).values(ctx, call)
		})
		return nil
	})
}

// AddResource registers a resource with a complete definition. h returns what a resource method may
// return.
func (s *Server) AddResource(def protocol.Resource, h func(ctx context.Context, call *Call) (any, error)) error {
	return s.addRaw("resource", def.URI, h, func(d *draft, e entry) error {
		if !strings.Contains(def.URI, ":") {
			return fmt.Errorf("%q is not an absolute URI", def.URI)
		}
		s.addResource(d, &resource{entry: e, def: def, mime: def.MIMEType, private: true}, dynamicOutputs(resourceTypes), rawFunc(h).values)
		return nil
	})
}

// AddResourceTemplate registers a resource template with a complete definition. h reads the
// variables with [Call.Var] and returns what a resource method may return.
func (s *Server) AddResourceTemplate(def protocol.ResourceTemplate, h func(ctx context.Context, call *Call) (any, error)) error {
	return s.addRaw("resource template", def.URITemplate, h, func(d *draft, e entry) error {
		tmpl, err := parseTemplate(def.URITemplate)
		if err != nil {
			return err
		}
		if len(tmpl.Vars()) == 0 {
			return errors.New("the template has no variables; use AddResource")
		}
		r := &resource{entry: e, templateDef: def, template: tmpl, mime: def.MIMEType, private: true}
		s.addResource(d, r, dynamicOutputs(resourceTypes), rawFunc(h).values)
		return nil
	})
}

// calledFrom returns what with the place in the program that called an exported function, which has
// called the function that calls calledFrom.
func calledFrom(what string) string {
	if _, file, line, ok := runtime.Caller(3); ok {
		what += fmt.Sprintf(" (%s:%d)", filepath.Base(file), line)
	}
	return what
}

// RemoveTools removes tools by name and reports whether any existed. Running calls continue.
func (s *Server) RemoveTools(names ...string) (removed bool) {
	_ = s.change(func(c *catalog) error { removed = c.tools.remove(named(names)); return nil })
	return removed
}

// RemovePrompts removes prompts by name and reports whether any existed.
func (s *Server) RemovePrompts(names ...string) (removed bool) {
	_ = s.change(func(c *catalog) error { removed = c.prompts.remove(named(names)); return nil })
	return removed
}

// RemoveResources removes resources by URI, and resource templates by template. It reports whether
// any existed.
func (s *Server) RemoveResources(uris ...string) (removed bool) {
	_ = s.change(func(c *catalog) error {
		removed = c.resources.remove(named(uris))
		removed = c.templates.remove(named(uris)) || removed
		return nil
	})
	return removed
}

// NewPrompt describes a prompt that calls fn, a function with the signature of a prompt method.
func NewPrompt(name string, fn any) *PromptBuilder {
	return &PromptBuilder{newBuilder(kindPrompt, name, fn)}
}

// Title sets the name that people see.
func (b *PromptBuilder) Title(t string) *PromptBuilder { b.def.title = t; return b }

// Desc sets the description: what the prompt is for.
func (b *PromptBuilder) Desc(d string) *PromptBuilder { b.def.desc = d; return b }

// Scopes sets the scopes that a caller needs.
func (b *PromptBuilder) Scopes(scopes ...string) *PromptBuilder { b.def.scopes = scopes; return b }

// Tags sets labels for middleware. They are not sent to clients.
func (b *PromptBuilder) Tags(tags ...string) *PromptBuilder { b.def.tags = tags; return b }

// Timeout limits the time of a call; 0 means no limit.
func (b *PromptBuilder) Timeout(d time.Duration) *PromptBuilder {
	b.say("timeout", d.String())
	return b
}

// Rate limits how many calls each caller may begin, like the rate tag: "10/s", "100/m burst=20".
func (b *PromptBuilder) Rate(limit string) *PromptBuilder { b.say("rate", limit); return b }

// Params names the plain parameters of the function in order: "topic,style?".
func (b *PromptBuilder) Params(names string) *PromptBuilder { b.say("params", names); return b }

// Param names the next plain parameter of the function, as [ToolBuilder.Param] does. Clients see
// the rules as part of the argument's description; the values of a oneof rule are offered as
// completions.
func (b *PromptBuilder) Param(name string, opts ...ParamOption) *PromptBuilder {
	b.param(name, opts)
	return b
}

// NewResource describes a resource, or a resource template if uri has variables, that calls fn: a
// function with the signature of a resource method. People and models see the name.
func NewResource(uri, name string, fn any) *ResourceBuilder {
	b := &ResourceBuilder{newBuilder(kindResource, name, fn)}
	b.def.uri = uri
	return b
}

// Title sets the name that people see.
func (b *ResourceBuilder) Title(t string) *ResourceBuilder { b.def.title = t; return b }

// Desc sets the description: what the resource contains.
func (b *ResourceBuilder) Desc(d string) *ResourceBuilder { b.def.desc = d; return b }

// MIME sets the media type of the contents.
func (b *ResourceBuilder) MIME(t string) *ResourceBuilder { b.def.mime = t; return b }

// Hidden leaves the resource out of the list. Clients that know its URI can read it.
func (b *ResourceBuilder) Hidden() *ResourceBuilder { b.def.hidden = true; return b }

// Meta adds a member to the _meta of the resource's entry in the list. A value that does not encode
// as JSON is a fault.
func (b *ResourceBuilder) Meta(key string, value any) *ResourceBuilder {
	if b.def.extra == nil {
		b.def.extra = protocol.Meta{}
	}
	if err := b.def.extra.Set(key, value); err != nil {
		b.faults = append(b.faults, fmt.Sprintf("Meta(%q): %v", key, err))
	}
	return b
}

// Size sets the size of the contents in bytes, which clients see in the list.
func (b *ResourceBuilder) Size(bytes int64) *ResourceBuilder { b.def.size = &bytes; return b }

// Scopes sets the scopes that a caller needs.
func (b *ResourceBuilder) Scopes(scopes ...string) *ResourceBuilder { b.def.scopes = scopes; return b }

// Tags sets labels for middleware. They are not sent to clients.
func (b *ResourceBuilder) Tags(tags ...string) *ResourceBuilder { b.def.tags = tags; return b }

// Timeout limits the time of a call; 0 means no limit.
func (b *ResourceBuilder) Timeout(d time.Duration) *ResourceBuilder {
	b.say("timeout", d.String())
	return b
}

// Rate limits how many calls each caller may begin, like the rate tag: "10/s", "100/m burst=20".
func (b *ResourceBuilder) Rate(limit string) *ResourceBuilder { b.say("rate", limit); return b }

// Cache sets how long clients may cache the contents, like the cache tag: "60s,public".
func (b *ResourceBuilder) Cache(policy string) *ResourceBuilder { b.say("cache", policy); return b }
