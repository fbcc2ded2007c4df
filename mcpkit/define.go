package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/internal/paramheader"
	"github.com/mcpkit/mcpkit-go/internal/uritemplate"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/result"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/secret"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A definition is a Go function with everything that its tool, prompt or resource needs. Methods of
// services and functions of builders become definitions.
type definition struct {
	*annotation
	site              string
	name, title, desc string
	fn                reflect.Value
	paramDescriptions map[string]string // of plain parameters, by name
	input, output     json.RawMessage   // JSON Schemas written by hand; nil where the function says it
	size              *int64            // of a resource in bytes; nil if it is unknown
	extra             protocol.Meta     // members of _meta besides those of the tag
	owner             reflect.Type      // the type of the method; nil for functions
	method            string
	completer         func(method string) (fn reflect.Value, hint string) // finds a method; the hint is for one that does not exist
}

// define compiles the function and adds the entry to the draft.
func (s *Server) define(d *draft, def *definition) error {
	if err := naming.Check(def.name); err != nil && def.kind != kindResource {
		return at(def.site, err)
	}
	switch def.kind {
	case kindPrompt:
		return s.definePrompt(d, def)
	case kindResource:
		return s.defineResource(d, def)
	default:
		return s.defineTool(d, def)
	}
}

// injection provides the parameters that are not arguments.
func (s *Server) injection(o *reflectx.FuncOptions, logs *bool) {
	o.Give = injectable(s.config.providers)
	o.Inject = func(t reflect.Type) (reflectx.Injector, error) {
		if of := ofCall[t]; of != nil {
			*logs = *logs || t != reflect.TypeFor[*oauth.Principal]()
			return func(ctx context.Context) (reflect.Value, error) { return reflect.ValueOf(of(CallFrom(ctx))), nil }, nil
		}
		if isHeader(t) {
			return func(ctx context.Context) (reflect.Value, error) {
				return reflect.ValueOf(CallFrom(ctx).peer.Header()).Convert(t), nil
			}, nil
		}
		if provide := s.config.providers[t]; provide != nil {
			return provide, nil
		}
		return nil, fromTheWeb(t)
	}
}

// fromTheWeb returns an error that says what to write in place of a parameter that handlers of HTTP
// requests take. The types are recognised by their names, since most programs do not link their
// packages.
func fromTheWeb(t reflect.Type) error {
	const refused = "which a method does not get; "
	named := t
	if t.Kind() == reflect.Pointer {
		named = t.Elem()
	}
	switch named.PkgPath() + "." + named.Name() {
	case "net/http.Request":
		return errors.New(refused + "take http.Header for its header, or *mcpkit.Call for the caller")
	case "net/http.ResponseWriter":
		return errors.New(refused + "return the result")
	case "github.com/labstack/echo/v4.Context":
		return errors.New(refused + "take context.Context, and call echomcp.FromContext with it")
	}
	return nil
}

// ofCall are the parameters that are part of the call.
var ofCall = map[reflect.Type]func(*Call) any{
	reflect.TypeFor[*Call]():            func(c *Call) any { return c },
	reflect.TypeFor[*slog.Logger]():     func(c *Call) any { return c.Logger() },
	reflect.TypeFor[*oauth.Principal](): func(c *Call) any { return c.principal },
}

// injectable says in errors how a method gets what no argument can give.
func injectable(providers map[reflect.Type]reflectx.Injector) string {
	names := []string{"*mcpkit.Call", "*slog.Logger", "*oauth.Principal", "http.Header"}
	for t := range providers {
		names = append(names, t.String())
	}
	slices.Sort(names[4:])
	return "give it with mcpkit.Provide, or take one of context.Context, " + strings.Join(names, ", ")
}

// isHeader recognises http.Header by its shape and name: naming the type would link net/http into
// all programs.
func isHeader(t reflect.Type) bool {
	return t == reflect.TypeFor[transport.Header]() || t.PkgPath() == "net/http" && t.Name() == "Header"
}

// descriptions are the doc comments of services and of the types of their arguments and results.
var descriptions = reflectx.Comments()

func (s *Server) inputOptions() reflectx.InputOptions {
	return reflectx.InputOptions{Descriptions: descriptions, Validate: s.config.validate, Repair: s.config.repair, Repaired: noteRepair}
}

// noteRepair counts a repaired value.
func noteRepair(ctx context.Context) {
	if call := CallFrom(ctx); call != nil {
		call.repairs.Add(1)
	}
}

// noRawSchemas is the error of a server that has a schema written by hand and not the option for it.
const noRawSchemas = `schemas that are written by hand need the option mcpkit.RawSchemas(rawschema.Compile) of the server, with the package github.com/mcpkit/mcpkit-go/reflectx/rawschema`

// handSchema compiles a schema written by hand; nil where there is none.
func (s *Server) handSchema(what string, schema json.RawMessage) (reflectx.RawSchema, error) {
	if schema == nil {
		return nil, nil
	}
	if s.config.rawSchemas == nil {
		return nil, errors.New(what + ": " + noRawSchemas)
	}
	compiled, err := s.config.rawSchemas(schema)
	if err == nil && what == "input" && !isObjectSchema(schema) {
		err = errors.New(`the schema of arguments has "type": "object" at its root`)
	}
	return compiled, prefixed(what+": ", err)
}

// A faultySchema stands for a schema that does not compile. Nothing is validated by it.
type faultySchema struct{ reflectx.RawSchema }

// compile returns the call plan of the definition's function.
func (s *Server) compile(def *definition, names []string) (*reflectx.Func, *entry, error) {
	e := def.entry()
	o := reflectx.FuncOptions{Site: def.site, Names: names, URI: true, Descriptions: def.paramDescriptions, Tags: def.paramTags, Input: s.inputOptions()}
	if def.hasParams {
		o.Names, o.URI = strings.Split(def.params, ","), false
	}
	schema, schemaErr := s.handSchema("input", def.input)
	if schemaErr != nil {
		schema = faultySchema{} // the parameters are those of a function with a schema
	}
	o.Schema = schema
	if def.kind == kindResource {
		o.Input.What = "variables of the URI"
	}
	o.Input.NoSchema = def.kind == kindPrompt
	o.Input.OmitDescription = true // the tool's description covers the type, whose own would cost tokens
	o.Input.Owner, o.Input.Method = def.owner, def.method
	s.injection(&o, &e.logs)
	fn, err := reflectx.Compile(def.fn, o)
	return fn, &e, joinFaults(at(def.site, schemaErr), err)
}

// entry returns the entry of the definition, without its handler.
func (def *definition) entry() entry {
	return entry{
		key: def.name, site: def.site, scopes: def.scopes, tags: def.tags, hidden: def.hidden, timeout: def.timeout, rate: def.rate,
		extended: def.extended,
	}
}

// guard puts what the tags of an entry demand around h.
func (s *Server) guard(e *entry, k kind, h Handler) {
	if e.timeout == 0 && k == kindTool {
		e.timeout, e.timeoutByDefault = s.config.toolTimeout, true
	}
	e.overdue = new(overdueCount)
	e.run = traced(e.site, h)
	if e.cache.TTL > 0 {
		e.run = CacheResults(e.cache)(e.run)
	}
	e.limitRate()
}

func (s *Server) defineTool(d *draft, def *definition) error {
	fn, e, err := s.compile(def, nil)
	outputs, outErr := result.New(result.Tool, fn.Outputs())
	var outputSchema json.RawMessage
	if outErr == nil && outputs.Structured != nil {
		outputSchema, outErr = reflectx.OutputSchema(def.site, outputs.Structured, s.inputOptions())
	}
	var cacheErr error
	e.cache, cacheErr = def.cachePolicy()
	output, handErr := s.handSchema("output", def.output)
	if err := joinFaults(err, at(def.site, outErr), at(def.site, handErr), at(def.site, cacheErr)); err != nil {
		return err
	}
	t := &tool{entry: *e, def: protocol.Tool{
		Name: def.name, Title: def.title, Description: def.desc, Icons: def.icons,
		InputSchema: noArguments, OutputSchema: outputSchema, Meta: def.metaMembers(),
	}}
	if def.hasHints {
		t.def.Annotations = &def.hints
	}
	if in := fn.Input(); in != nil {
		fields := in.Fields()
		var faults reflectx.Errors
		for _, f := range fields {
			if f.Complete != "" {
				faults = append(faults, &reflectx.Error{Site: def.site, Msg: fmt.Sprintf("field %q has the tag complete; %s", f.Name, noCompletionForTools)})
			}
		}
		if faults != nil {
			return faults
		}
		t.def.InputSchema = in.Schema()
		t.secrets = secret.OfFields(fields)
	}
	if def.input != nil {
		t.def.InputSchema, t.secrets = def.input, secret.OfSchema(def.input)
	}
	if output != nil {
		t.def.OutputSchema = def.output
	}
	none := fn.Input() == nil && def.input == nil
	return s.addTool(d, t, outputs, output, func(ctx context.Context, call *Call) ([]reflect.Value, error) {
		args := call.Arguments()
		if none {
			if err := refuseArguments(ctx, args); err != nil {
				return nil, err
			}
		}
		return fn.Call(ctx, args)
	})
}

const noCompletionForTools = `completion works for prompts and resource templates; the protocol has none for tools. ` +
	`For a fixed list write validate:"oneof=a b" on a field, or rules:"name:oneof=a b" for a plain parameter`

// noArguments is the input schema of a tool that takes none.
var noArguments = json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)

// noInput decodes the arguments of a tool that takes none.
var noInput = sync.OnceValue(func() *reflectx.Input {
	in, err := reflectx.NewInput("", reflect.TypeFor[struct{}](), reflectx.InputOptions{})
	if err != nil {
		panic(err) // an empty struct has no faults
	}
	return in
})

// refuseArguments validates arguments against noArguments.
func refuseArguments(ctx context.Context, args json.RawMessage) error {
	if len(args) == 0 || string(args) == "{}" {
		return nil
	}
	return noInput().Decode(ctx, args, reflect.New(noInput().Type()).Elem())
}

// addTool adds a tool that run answers. output is a schema of the structured result that was
// written by hand, or nil.
func (s *Server) addTool(d *draft, t *tool, outputs *result.Outputs, output reflectx.RawSchema, run func(context.Context, *Call) ([]reflect.Value, error)) error {
	var err error
	if t.headers, err = paramheader.Params(t.def.InputSchema); err != nil {
		return at(t.site, err)
	}
	s.guard(&t.entry, kindTool, func(ctx context.Context, call *Call) (Result, error) {
		values, err := run(ctx, call)
		if err != nil {
			return nil, err
		}
		r, err := outputs.Tool(call.conversion(), values)
		if err == nil && output != nil {
			err = checkOutput(output, r)
		}
		return r, err
	})
	t.define = func(v protocol.Version) (protocol.Tool, error) { return s.extended(t, v) }
	t.setToolWire()
	*d = append(*d, t)
	return nil
}

func (s *Server) definePrompt(d *draft, def *definition) error {
	fn, e, err := s.compile(def, nil)
	outputs, outErr := result.New(result.Prompt, fn.Outputs())
	if err := joinFaults(err, at(def.site, outErr)); err != nil {
		return err
	}
	p := &prompt{entry: *e, def: protocol.Prompt{
		Name: def.name, Title: def.title, Description: def.desc, Icons: def.icons, Meta: def.metaMembers(),
	}}
	var fields []reflectx.Field
	if in := fn.Input(); in != nil {
		fields = in.Fields()
	}
	for _, f := range fields {
		arg := protocol.PromptArgument{Name: f.Name, Title: f.Title, Description: f.Description}
		if f.Required {
			arg.Required = new(true)
		}
		p.def.Arguments = append(p.def.Arguments, arg)
	}
	p.secrets = secret.OfFields(fields)
	if p.complete, err = s.completers(def, fields); err != nil {
		return err
	}
	s.addPrompt(d, p, outputs, func(ctx context.Context, call *Call) ([]reflect.Value, error) { return fn.CallText(ctx, call.text) })
	return nil
}

// addPrompt adds a prompt that run answers.
func (s *Server) addPrompt(d *draft, p *prompt, outputs *result.Outputs, run func(context.Context, *Call) ([]reflect.Value, error)) {
	s.guard(&p.entry, kindPrompt, func(ctx context.Context, call *Call) (Result, error) {
		if err := knownArguments(call, p.def.Arguments); err != nil {
			return nil, err
		}
		values, err := run(ctx, call)
		if err != nil {
			return nil, err
		}
		return outputs.Prompt(call.conversion(), p.def.Description, values)
	})
	p.setPromptWire()
	*d = append(*d, p)
}

// knownArguments refuses arguments that the prompt does not have, since they may be misspelt.
func knownArguments(call *Call, known []protocol.PromptArgument) error {
	args, _ := call.vars.(textArguments)
	for _, v := range args {
		if !slices.ContainsFunc(known, func(a protocol.PromptArgument) bool { return a.Name == v.name }) {
			names := make([]string, len(known))
			for i, a := range known {
				names[i] = a.Name
			}
			return invalidParams("prompt %q has no argument %q%s", call.name, v.name, naming.Hint(v.name, names))
		}
	}
	return nil
}

func (s *Server) defineResource(d *draft, def *definition) error {
	if def.uri == "" {
		return &reflectx.Error{Site: def.site, Msg: `a resource needs a URI; write for example uri:"note://{id}"`}
	}
	tmpl, uriErr := parseTemplate(def.uri)
	var vars []string
	if uriErr == nil {
		vars = tmpl.Vars()
	}
	fn, e, err := s.compile(def, vars)
	if uriErr != nil {
		err = at(def.site, uriErr) // parameters cannot be compared with unreadable variables
	}
	outputs, outErr := result.New(result.Resource, fn.Outputs())
	if err := joinFaults(err, at(def.site, outErr)); err != nil {
		return err
	}
	var fields []reflectx.Field
	if in := fn.Input(); in != nil {
		fields = in.Fields()
	}
	if err := sameNames(def, vars, fields); err != nil {
		return err
	}
	// What not all callers may read is not for shared caches.
	private := def.cachePrivate || !def.hasCache || len(def.scopes) > 0
	r := &resource{entry: *e, mime: def.mime, ttl: def.cacheTTL, private: private}
	r.key = def.uri
	if len(vars) > 0 {
		r.template = tmpl
	}
	if r.complete, err = s.completers(def, fields); err != nil {
		return err
	}
	var lists []string // parameters that get the segments of {/name*}
	for _, f := range fields {
		if f.Type.Kind() == reflect.Slice && tmpl.IsList(f.Name) {
			lists = append(lists, f.Name)
		}
	}
	r.describe(def)
	s.addResource(d, r, outputs, func(ctx context.Context, call *Call) ([]reflect.Value, error) {
		return fn.CallText(ctx, func(name string) (string, bool) {
			text, ok := call.text(name)
			if ok && slices.Contains(lists, name) {
				text = segmentsJSON(text)
			}
			return text, ok
		})
	})
	return nil
}

// addResource adds a resource that run answers.
func (s *Server) addResource(d *draft, r *resource, outputs *result.Outputs, run func(context.Context, *Call) ([]reflect.Value, error)) {
	s.guard(&r.entry, kindResource, func(ctx context.Context, call *Call) (Result, error) {
		values, err := run(ctx, call)
		if err != nil {
			return nil, err
		}
		cache := cacheHint(r.ttl, r.private)
		for _, v := range values {
			if v.Kind() == reflect.Interface {
				v = v.Elem()
			}
			if !v.IsValid() || result.IsNil(v) { // there is no such resource
				result.CloseReaders(values)
				return nil, ErrNotFound
			}
			if reader, ok := v.Interface().(io.Reader); ok && len(values) == 1 {
				return newStreamed(ctx, call, r.mime, cache, reader)
			}
		}
		return outputs.Resource(call.conversion(), call.name, r.mime, cache, values)
	})
	r.setWire(func(protocol.Version) (any, error) {
		if r.template != nil {
			return r.templateDef, nil
		}
		return r.def, nil
	})
	*d = append(*d, r)
}

// conversion returns what results of methods are made with.
func (c *Call) conversion() *result.Call {
	return &result.Call{Context: c.limit, MaxBytes: c.server.config.maxResultBytes, Progress: c.countProgress}
}

// segmentsJSON returns segments, joined by slashes, as a JSON array of strings.
func segmentsJSON(joined string) string {
	list := []byte{'['}
	if joined != "" {
		for segment := range strings.SplitSeq(joined, "/") {
			list = jsonx.AppendString(jsonx.AppendComma(list), segment)
		}
	}
	return string(append(list, ']'))
}

// parseTemplate parses a URI template that URIs will be matched against.
func parseTemplate(uri string) (*uritemplate.Template, error) {
	tmpl, err := uritemplate.Parse(uri)
	if err == nil && !strings.Contains(tmpl.Prefix(), ":") {
		err = fmt.Errorf("%q is not an absolute URI; write for example \"note://{id}\"", uri)
	}
	return tmpl, err
}

// sameNames compares the parameters of a resource with the variables of its URI template.
func sameNames(def *definition, vars []string, fields []reflectx.Field) error {
	var faults reflectx.Errors
	for _, f := range fields {
		if !slices.Contains(vars, f.Name) {
			faults = append(faults, &reflectx.Error{Site: def.site, Msg: fmt.Sprintf(
				"parameter %q is not a variable of uri %q%s", f.Name, def.uri, naming.Hint(f.Name, vars))})
		}
	}
	for _, v := range vars {
		if !slices.ContainsFunc(fields, func(f reflectx.Field) bool { return f.Name == v }) {
			faults = append(faults, &reflectx.Error{Site: def.site, Msg: fmt.Sprintf(
				"variable %q of uri %q goes to no parameter; add one", v, def.uri)})
		}
	}
	return joinFaults(faults)
}

// describe sets what clients read about the resource.
func (r *resource) describe(def *definition) {
	var annotations *protocol.Annotations
	if def.audience != nil || def.priority != nil {
		annotations = &protocol.Annotations{Audience: def.audience, Priority: def.priority}
	}
	meta := def.metaMembers()
	if r.template != nil {
		r.templateDef = protocol.ResourceTemplate{
			URITemplate: r.key, Name: def.name, Title: def.title, Description: def.desc, MIMEType: r.mime,
			Annotations: annotations, Icons: def.icons, Meta: meta,
		}
		return
	}
	r.def = protocol.Resource{
		URI: r.key, Name: def.name, Title: def.title, Description: def.desc, MIMEType: r.mime,
		Annotations: annotations, Icons: def.icons, Meta: meta, Size: def.size,
	}
}

// metaMembers returns the members of the definition's _meta; nil if there are none.
func (def *definition) metaMembers() protocol.Meta {
	if len(def.meta)+len(def.extra) == 0 {
		return nil
	}
	meta := protocol.Meta{}
	maps.Copy(meta, def.extra)
	for k, v := range def.meta {
		meta[k] = jsonx.AppendString(nil, v)
	}
	return meta
}

// at returns err with the place that it is about, unless it names one.
func at(site string, err error) error {
	if err == nil {
		return nil
	}
	var many reflectx.Errors
	var one *reflectx.Error
	if errors.As(err, &many) || errors.As(err, &one) {
		return err
	}
	return &reflectx.Error{Site: site, Msg: err.Error()}
}

// joinFaults joins errors; nil if there are none.
func joinFaults(errs ...error) error {
	var all reflectx.Errors
	for _, err := range errs {
		if err == nil {
			continue
		}
		var many reflectx.Errors
		var one *reflectx.Error
		switch {
		case errors.As(err, &many):
			all = append(all, many...)
		case errors.As(err, &one):
			all = append(all, one)
		default:
			all = append(all, &reflectx.Error{Msg: strings.TrimPrefix(err.Error(), "mcpkit: ")})
		}
	}
	if all == nil {
		return nil
	}
	return all
}
