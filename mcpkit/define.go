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
	"github.com/mcpkit/mcpkit-go/internal/uritemplate"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/annotation"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/result"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/secret"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/service"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A spec is a Go function with everything that its tool, prompt or resource needs. Methods of services
// and functions of builders become specs.
type spec struct {
	*annotation.Annotation
	site              string
	name, title, desc string
	fn                reflect.Value
	paramDescriptions map[string]string // of plain parameters, by name
	input, output     json.RawMessage   // JSON Schemas written by hand; nil where the function says it
	size              *int64            // of a resource in bytes; nil if it is unknown
	extra             protocol.Meta     // members of _meta besides those of the tag
	owner             reflect.Type      // the type of the method; nil for functions
	method            string
	completer         func(param, method string) (service.Completer, error)
}

// define returns the entry of a spec.
func (s *Server) define(def *spec) (*entry, error) {
	if err := naming.Check(def.name); err != nil && def.Kind != annotation.Resource {
		return nil, at(def.site, err)
	}
	switch def.Kind {
	case annotation.Prompt:
		return s.definePrompt(def)
	case annotation.Resource:
		return s.defineResource(def)
	default:
		return s.defineTool(def)
	}
}

// injection provides the parameters that are not arguments.
func (s *Server) injection(o *reflectx.FuncOptions, logs *bool) {
	o.Give = injectable(s.config.providers)
	o.Inject = func(t reflect.Type) reflectx.Injector {
		if of := ofCall[t]; of != nil {
			*logs = *logs || t != reflect.TypeFor[*oauth.Principal]()
			return func(ctx context.Context) (reflect.Value, error) { return reflect.ValueOf(of(CallFrom(ctx))), nil }
		}
		if isHeader(t) {
			return func(ctx context.Context) (reflect.Value, error) {
				return reflect.ValueOf(CallFrom(ctx).peer.Header()).Convert(t), nil
			}
		}
		return s.config.providers[t]
	}
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
	return reflectx.InputOptions{
		Descriptions: descriptions, Validate: s.config.validate, Repair: s.config.repair, Repaired: noteRepair,
	}
}

// noteRepair counts a repaired value.
func noteRepair(ctx context.Context) {
	if call := CallFrom(ctx); call != nil {
		call.repairs.Add(1)
	}
}

// noRawSchemas is the error of a server that has a schema written by hand and not the option for it.
const noRawSchemas = "schemas that are written by hand need the option mcpkit.RawSchemas(rawschema.Compile) of the server, " +
	"with the package github.com/mcpkit/mcpkit-go/reflectx/rawschema"

// handSchema compiles a schema written by hand; nil where there is none.
func (s *Server) handSchema(what string, schema json.RawMessage) (reflectx.RawSchema, error) {
	if schema == nil {
		return nil, nil
	}
	if s.config.rawSchemas == nil {
		return nil, errors.New(what + ": " + noRawSchemas)
	}
	compiled, err := s.config.rawSchemas(schema)
	if err == nil && what == "input" && !jsonx.IsString(jsonx.Member(schema, "type"), "object") {
		err = errors.New(`the schema of arguments has "type": "object" at its root`)
	}
	if secrets := secret.OfSchema(schema); err == nil && what == "input" && secrets != nil {
		compiled = secretSchema{compiled, secrets}
	}
	return compiled, prefixed(what+": ", err)
}

// A secretSchema is a schema whose errors do not repeat secret values.
type secretSchema struct {
	reflectx.RawSchema
	secrets *secret.Secrecy
}

func (s secretSchema) Validate(args json.RawMessage) error {
	err := s.RawSchema.Validate(args)
	if wrong, ok := errors.AsType[*reflectx.ArgumentError](err); ok {
		s.secrets.Hide(wrong)
	}
	return err
}

// A faultySchema stands for a schema that does not compile. Nothing is validated by it.
type faultySchema struct{ reflectx.RawSchema }

// compile returns the call plan of the spec's function, and its entry without a handler.
func (s *Server) compile(k entryKind, def *spec, names []string) (*reflectx.Func, *entry, error) {
	e := &entry{
		kind: k, key: def.name, site: def.site, access: access{scopes: def.Scopes}, labels: def.Labels, hidden: def.Hidden,
	}
	o := reflectx.FuncOptions{
		Site: def.site, Names: names, URI: true,
		Descriptions: def.paramDescriptions, Tags: def.Rules, Input: s.inputOptions(),
	}
	if def.Params != nil {
		o.Names, o.URI = def.Params, false
	}
	schema, schemaErr := s.handSchema("input", def.input)
	if schemaErr != nil {
		schema = faultySchema{} // the parameters are those of a function with a schema
	}
	o.Schema = schema
	if def.Kind == annotation.Resource {
		o.Input.What = "variables of the URI"
	}
	o.Input.NoSchema = def.Kind == annotation.Prompt
	o.Input.OmitDescription = true // the tool's description covers the type, whose own would cost tokens
	o.Input.Owner, o.Input.Method = def.owner, def.method
	s.injection(&o, &e.logs)
	fn, err := reflectx.Compile(def.fn, o)
	return fn, e, joinFaults(at(def.site, schemaErr), err)
}

// fieldsOf returns the arguments of a function.
func fieldsOf(fn *reflectx.Func) []reflectx.Field {
	if in := fn.Input(); in != nil {
		return in.Fields()
	}
	return nil
}

// A method calls the method of an entry, and returns its results.
type method func(ctx context.Context, call *Call) ([]reflect.Value, error)

// guard makes h, the method of an entry, what calls run: with what its tags demand around it.
func (s *Server) guard(e *entry, a *annotation.Annotation, h Handler) {
	e.limits.overdue = new(overdueCount)
	if a.Timeout != nil {
		e.limits.timeout = *a.Timeout
	} else if e.kind == toolEntry {
		e.limits.timeout, e.limits.timeoutByDefault = s.config.toolTimeout, true
	}
	e.run = traced(e.site, h)
	if e.kind == toolEntry && a.Cache != nil {
		e.run = CacheResults(CachePolicy{TTL: a.Cache.TTL, Shared: a.Cache.Public})(e.run)
	}
	e.limitRate(a.Rate)
}

func (s *Server) defineTool(def *spec) (*entry, error) {
	fn, e, err := s.compile(toolEntry, def, nil)
	outputs, outErr := result.New(result.Tool, fn.Outputs())
	t := protocol.Tool{
		Name: def.name, Title: def.title, Description: def.desc, Icons: def.About.Icons, InputSchema: noArguments,
		Annotations: def.Hints, Meta: def.metaMembers(),
	}
	if outErr == nil && outputs.Structured != nil {
		t.OutputSchema, outErr = reflectx.OutputSchema(def.site, outputs.Structured, s.inputOptions())
	}
	output, handErr := s.handSchema("output", def.output)
	err = joinFaults(err, at(def.site, outErr), at(def.site, handErr), at(def.site, checkCache(def.Annotation)))
	if err != nil {
		return nil, err
	}
	if _, err := def.completers(fieldsOf(fn)); err != nil {
		return nil, err
	}
	call := fn.Call
	switch in := fn.Input(); {
	case def.input != nil:
		t.InputSchema, e.secrets = def.input, secret.OfSchema(def.input)
	case in != nil:
		t.InputSchema, e.secrets = in.Schema(), secret.OfFields(in.Fields())
	default:
		call = func(ctx context.Context, args json.RawMessage) ([]reflect.Value, error) {
			if err := refuseArguments(ctx, args); err != nil {
				return nil, err
			}
			return fn.Call(ctx, args)
		}
	}
	if output != nil {
		t.OutputSchema = def.output
	}
	run := func(ctx context.Context, c *Call) ([]reflect.Value, error) { return call(ctx, c.Arguments()) }
	return e, s.setTool(e, def.Annotation, t, outputs, output, run)
}

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

// setTool makes e a tool whose method is run. output is a schema of the structured result that was
// written by hand, or nil.
func (s *Server) setTool(
	e *entry, a *annotation.Annotation, def protocol.Tool, outputs *result.Outputs, output reflectx.RawSchema, run method,
) (err error) {
	if e.tool, err = newTool(def); err != nil {
		return at(e.site, err)
	}
	e.tool.extended = a.Extended
	e.definition = &definition{make: func(v protocol.Version) ([]byte, error) {
		own, err := s.extended(e, v)
		if err != nil {
			return nil, err
		}
		text, err := own.MarshalJSON()
		return protocol.ToolFor(v, text), prefixed("the definition does not encode: ", err)
	}}
	s.guard(e, a, func(ctx context.Context, call *Call) (Result, error) {
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
	return nil
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

func newTool(def protocol.Tool) (*tool, error) {
	headers, err := protocol.HeaderParams(def.InputSchema)
	return &tool{def: def, headers: headers}, err
}

func (s *Server) definePrompt(def *spec) (*entry, error) {
	fn, e, err := s.compile(promptEntry, def, nil)
	outputs, outErr := result.New(result.Prompt, fn.Outputs())
	if err := joinFaults(err, at(def.site, outErr)); err != nil {
		return nil, err
	}
	fields := fieldsOf(fn)
	p := protocol.Prompt{
		Name: def.name, Title: def.title, Description: def.desc, Icons: def.About.Icons, Meta: def.metaMembers(),
	}
	for _, f := range fields {
		arg := protocol.PromptArgument{Name: f.Name, Title: f.Title, Description: f.Description}
		if f.Required {
			arg.Required = new(true)
		}
		p.Arguments = append(p.Arguments, arg)
	}
	e.secrets = secret.OfFields(fields)
	if e.complete, err = def.completers(fields); err != nil {
		return nil, err
	}
	s.setPrompt(e, def.Annotation, p, outputs, func(ctx context.Context, call *Call) ([]reflect.Value, error) {
		return fn.CallText(ctx, call.text)
	})
	return e, nil
}

// setPrompt makes e a prompt whose method is run.
func (s *Server) setPrompt(
	e *entry, a *annotation.Annotation, def protocol.Prompt, outputs *result.Outputs, run method,
) {
	e.definition = defined(def)
	s.guard(e, a, func(ctx context.Context, call *Call) (Result, error) {
		if err := knownArguments(call, def.Arguments); err != nil {
			return nil, err
		}
		values, err := run(ctx, call)
		if err != nil {
			return nil, err
		}
		return outputs.Prompt(call.conversion(), def.Description, values)
	})
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

func (s *Server) defineResource(def *spec) (*entry, error) {
	if def.URI == "" {
		return nil, &reflectx.Error{Site: def.site, Msg: `a resource needs a URI; write for example uri:"note://{id}"`}
	}
	tmpl, uriErr := parseTemplate(def.URI)
	var vars []string
	if uriErr == nil {
		vars = tmpl.Vars()
	}
	fn, e, err := s.compile(resourceEntry, def, vars)
	if uriErr != nil {
		err = at(def.site, uriErr) // parameters cannot be compared with unreadable variables
	}
	outputs, outErr := result.New(result.Resource, fn.Outputs())
	if err := joinFaults(err, at(def.site, outErr)); err != nil {
		return nil, err
	}
	fields := fieldsOf(fn)
	if err := sameNames(def, vars, fields); err != nil {
		return nil, err
	}
	e.key, e.canonical = def.URI, uritemplate.Canonical(def.URI)
	if len(vars) > 0 {
		e.kind, e.template = templateEntry, tmpl
	}
	if e.complete, err = def.completers(fields); err != nil {
		return nil, err
	}
	var lists []string // parameters that get the segments of {/name*}
	for _, f := range fields {
		if f.Type.Kind() == reflect.Slice && tmpl.IsList(f.Name) {
			lists = append(lists, f.Name)
		}
	}
	// What not all callers may read is not for shared caches.
	cache := cacheHint(0, true)
	if def.Cache != nil {
		cache = cacheHint(def.Cache.TTL, !def.Cache.Public || len(def.Scopes) > 0)
	}
	e.definition = defined(def.resource(e.kind))
	run := func(ctx context.Context, call *Call) ([]reflect.Value, error) {
		return fn.CallText(ctx, func(name string) (string, bool) {
			text, ok := call.text(name)
			if ok && slices.Contains(lists, name) {
				text = segmentsJSON(text)
			}
			return text, ok
		})
	}
	s.setResource(e, def.Annotation, def.MIME, cache, outputs, run)
	return e, nil
}

// setResource gives e, a resource or a template, the method run.
func (s *Server) setResource(
	e *entry, a *annotation.Annotation, mime string, cache protocol.Cache, outputs *result.Outputs, run method,
) {
	s.guard(e, a, func(ctx context.Context, call *Call) (Result, error) {
		values, err := run(ctx, call)
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			if v.Kind() == reflect.Interface {
				v = v.Elem()
			}
			if !v.IsValid() || result.IsNil(v) { // there is no such resource
				result.CloseReaders(values)
				return nil, ErrNotFound
			}
			if reader, ok := v.Interface().(io.Reader); ok && len(values) == 1 {
				return newStreamed(ctx, call, mime, cache, reader)
			}
		}
		return outputs.Resource(call.conversion(), call.name, mime, cache, values)
	})
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
func sameNames(def *spec, vars []string, fields []reflectx.Field) error {
	var faults reflectx.Errors
	for _, f := range fields {
		if !slices.Contains(vars, f.Name) {
			faults = append(faults, &reflectx.Error{Site: def.site, Msg: fmt.Sprintf(
				"parameter %q is not a variable of uri %q%s", f.Name, def.URI, naming.Hint(f.Name, vars))})
		}
	}
	for _, v := range vars {
		if !slices.ContainsFunc(fields, func(f reflectx.Field) bool { return f.Name == v }) {
			faults = append(faults, &reflectx.Error{Site: def.site, Msg: fmt.Sprintf(
				"variable %q of uri %q goes to no parameter; add one", v, def.URI)})
		}
	}
	return joinFaults(faults)
}

// resource returns what clients read about a resource or a template.
func (def *spec) resource(k entryKind) any {
	if k == templateEntry {
		return protocol.ResourceTemplate{
			URITemplate: def.URI, Name: def.name, Title: def.title, Description: def.desc, MIMEType: def.MIME,
			Annotations: def.For, Icons: def.About.Icons, Meta: def.metaMembers(),
		}
	}
	return protocol.Resource{
		URI: def.URI, Name: def.name, Title: def.title, Description: def.desc, MIMEType: def.MIME,
		Annotations: def.For, Icons: def.About.Icons, Meta: def.metaMembers(), Size: def.size,
	}
}

// metaMembers returns the members of the definition's _meta; nil if there are none.
func (def *spec) metaMembers() protocol.Meta {
	if len(def.Meta)+len(def.extra) == 0 {
		return nil
	}
	meta := protocol.Meta{}
	maps.Copy(meta, def.extra)
	maps.Copy(meta, def.Meta)
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

func prefixed(prefix string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s%w", prefix, err)
}
