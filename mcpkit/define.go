package mcpkit

import (
	"cmp"
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

// A spec is everything that an entry is made of: a method of a service, or a function with its builder.
type spec struct {
	service.Method
	input, output json.RawMessage            // JSON Schemas written by hand; nil where the function says it
	size          *int64                     // of a resource in bytes; nil if it is unknown
	methods       map[string]reflectx.Method // of the service, which may complete parameters
	guards
}

// newEntry returns an entry without what answers for it. The error says what is wrong with its key.
func newEntry(a *annotation.Annotation, site string) (e *entry, err error) {
	e = &entry{Annotation: a, key: a.URI, site: site, limits: entryLimits{load: new(load)}}
	switch {
	case !a.Kind.IsResource():
		e.key = a.About.Name
		return e, naming.Check(e.key)
	case e.key == "":
		return e, errors.New(`a resource needs a URI; write for example uri:"note://{id}"`)
	case a.Kind == annotation.Resource:
		e.canonical = uritemplate.Canonical(e.key)
	default:
		if e.template, err = uritemplate.Parse(e.key); err == nil && len(e.template.Vars()) == 0 {
			err = errors.New("the template has no variables")
		}
	}
	if beginning, _, _ := strings.Cut(e.key, "{"); err == nil && !strings.Contains(beginning, ":") {
		err = fmt.Errorf("%q is not an absolute URI; write for example \"note://{id}\"", e.key)
	}
	return e, err
}

// entry returns the entry of the spec for a server. A spec is an [Item].
func (def *spec) entry(s *Server) (*entry, error) {
	var faults reflectx.Errors
	e, keyErr := newEntry(def.Annotation, def.Site)
	faults.Add(def.Site, keyErr)
	input, err := s.handSchema("input", def.input)
	faults.Add(def.Site, err)
	output, err := s.handSchema("output", def.output)
	faults.Add(def.Site, err)
	if faults != nil && def.Kind == annotation.Tool {
		return nil, faults // without its schema, the parameters of the function make no sense
	}
	fn, err := s.compile(e, def, input)
	fields := fn.Input().Fields()
	if keyErr == nil { // else the parameters cannot be compared with the variables of the URI
		faults.Add(def.Site, err)
	}
	if err == nil && def.Kind != annotation.Tool { // the protocol has no completion for tools
		e.complete, err = s.completers(e, def, fields)
		faults.Add(def.Site, err)
	}
	outputs, err := result.New(def.Kind, fn.Outputs())
	faults.Add(def.Site, err)
	if def.Kind == annotation.Tool {
		faults.Add(def.Site, checkCache(def.Annotation))
		if outputs != nil && outputs.Structured != nil && output == nil {
			def.output, err = reflectx.OutputSchema(def.Site, outputs.Structured, s.inputOptions())
			faults.Add(def.Site, err)
		}
	}
	if faults != nil {
		return nil, faults
	}
	def.About.Description = cmp.Or(def.About.Description, fn.Doc())
	if def.input == nil {
		def.input = fn.Input().Schema()
	}
	e.shown = secret.OfSchema(def.input)
	m := &method{fn: fn, outputs: outputs, decode: func(ctx context.Context, call *Call) (reflect.Value, error) {
		return fn.Decode(ctx, call.Arguments())
	}}
	switch def.Kind {
	case annotation.Tool:
		err = s.defineTool(e, def, m, output)
	case annotation.Prompt:
		definePrompt(e, def, m)
	case annotation.Resource, annotation.Template:
		err = defineResource(e, def, m)
	case annotation.Event:
		err = s.defineEvent(e, def, m)
	}
	faults.Add(def.Site, err)
	s.guard(e, m)
	e.wrapAround(def.around)
	e.show(def.visible, e)
	return e, faults.Err()
}

// A method is the method of an entry.
type method struct {
	fn      *reflectx.Func
	outputs *result.Outputs
	decode  func(ctx context.Context, call *Call) (args reflect.Value, err error)
	result  func(ctx context.Context, call *Call, values []reflect.Value) (Result, error)
}

// answer calls the method with the arguments of the call. The time limit is for code of the program:
// the method, what is injected into it, and what is read of its results.
func (m *method) answer(ctx context.Context, call *Call) (Result, error) {
	args, err := m.decode(ctx, call)
	if err != nil {
		return nil, err
	}
	return call.limit.do(func() (Result, error) {
		values, err := m.fn.Call(ctx, args)
		if err != nil {
			return nil, err
		}
		return m.result(ctx, call, values)
	})
}

// limited runs h within the time limit of the call.
func limited(h Handler) Handler {
	return func(ctx context.Context, call *Call) (Result, error) {
		return call.limit.do(func() (Result, error) { return h(ctx, call) })
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
	return "give it with mcpkit.Provide, or take one of context.Context, " + strings.Join(names, ", ") +
		"; if the method is not for clients, hide it with mcpkit.Skip or mcpkit.OptIn"
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
		Descriptions: descriptions, Validate: s.config.validate, Lenient: s.config.lenient, Repaired: noteRepair,
	}
}

// noteRepair counts repaired values.
func noteRepair(ctx context.Context, values int) {
	if call := CallFrom(ctx); call != nil {
		call.repairs.Add(int32(values))
	}
}

// handSchema compiles a schema written by hand; nil where there is none.
func (s *Server) handSchema(what string, schema json.RawMessage) (reflectx.RawSchema, error) {
	if schema == nil {
		return nil, nil
	}
	if s.config.rawSchemas == nil {
		return nil, errors.New(what + ": schemas that are written by hand need the option mcpkit.RawSchemas(rawschema.Compile) " +
			"of the server, with the package github.com/mcpkit/mcpkit-go/reflectx/rawschema")
	}
	compiled, err := s.config.rawSchemas(schema)
	if err == nil && what == "input" && !jsonx.IsString(jsonx.Member(schema, "type"), "object") {
		err = errors.New(`the schema of arguments has "type": "object" at its root`)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return secret.InErrors(compiled, schema), nil
}

// compile returns the call plan of the spec's function. schema is that of the arguments if it was
// written by hand, or nil.
func (s *Server) compile(e *entry, def *spec, schema reflectx.RawSchema) (*reflectx.Func, error) {
	o := reflectx.FuncOptions{
		Site: def.Site, Names: def.Params, Doc: def.Doc, Tags: def.Rules, Input: s.inputOptions(),
	}
	if def.Params == nil && e.template != nil {
		o.Names, o.URI = e.template.Vars(), true
	}
	if def.Kind.IsResource() {
		o.Input.What = "variables of the URI"
	}
	o.Input.Schema, o.Input.SchemaText = schema, def.input
	o.Input.NoSchema = def.Kind == annotation.Prompt
	o.Input.Owner, o.Input.Method = def.Owner, def.Name
	o.Give, o.Inject = injectable(s.config.providers), s.injectors(e, ofCall)
	return reflectx.Compile(def.Func, o)
}

// injectors returns what gives parameters of the entry's methods their values, by the type: those of the
// table, and those that the program provides.
func (s *Server) injectors(e *entry, table map[reflect.Type]func(*Call) any) func(t reflect.Type) reflectx.Injector {
	return func(t reflect.Type) reflectx.Injector {
		of := table[t]
		if isHeader(t) {
			of = func(c *Call) any { return c.peer.Header() }
		}
		if of == nil {
			return s.config.providers[t]
		}
		e.logs = e.logs || t == reflect.TypeFor[*Call]() || t == reflect.TypeFor[*slog.Logger]()
		return func(ctx context.Context) (reflect.Value, error) {
			return reflect.ValueOf(of(CallFrom(ctx))).Convert(t), nil
		}
	}
}

// guard makes m what calls of the entry run, with what its tags demand around it.
func (s *Server) guard(e *entry, m *method) {
	if e.Timeout != nil {
		e.limits.timeout = *e.Timeout
	} else if e.Kind == annotation.Tool {
		e.limits.timeout = s.config.toolTimeout
	}
	e.run = traced(e.site, m.answer)
	if e.Kind == annotation.Tool && e.Cache != nil {
		e.run = CacheResults(CachePolicy{TTL: e.Cache.TTL, Shared: e.Cache.Public})(e.run)
	}
	e.limitRate()
}

// defineTool gives e the definition of a tool with the method m. output is the schema of the structured
// result if it was written by hand, or nil.
func (s *Server) defineTool(e *entry, def *spec, m *method, output reflectx.RawSchema) (err error) {
	err = e.setTool(protocol.Tool{
		Name: e.key, Title: def.About.Title, Description: def.About.Description, Icons: def.About.Icons,
		InputSchema: def.input, OutputSchema: def.output, Annotations: def.Hints, Meta: def.Meta,
	})
	e.definition = &definition{ofTool: true, make: func(v protocol.Version) ([]byte, error) {
		own, err := s.extended(e, v)
		if err != nil {
			return nil, err
		}
		text, err := own.MarshalJSON()
		return text, prefixed("the definition does not encode: ", err)
	}}
	m.result = func(_ context.Context, call *Call, values []reflect.Value) (Result, error) {
		r, err := m.outputs.Tool(call.conversion(), values)
		if err == nil && output != nil {
			err = checkOutput(output, r)
		}
		return r, err
	}
	return err
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

// setTool makes def the definition that calls of the tool go by.
func (e *entry) setTool(def protocol.Tool) (err error) {
	e.tool = &def
	e.headers, err = protocol.HeaderParams(def.InputSchema)
	return err
}

// definePrompt gives e the definition of a prompt with the method m.
func definePrompt(e *entry, def *spec, m *method) {
	p := protocol.Prompt{
		Name: e.key, Title: def.About.Title, Description: def.About.Description, Icons: def.About.Icons, Meta: def.Meta,
	}
	var names []string
	for _, f := range m.fn.Input().Fields() {
		arg := protocol.PromptArgument{Name: f.Name, Title: f.Title, Description: f.Description}
		if f.Required {
			arg.Required = new(true)
		}
		p.Arguments, names = append(p.Arguments, arg), append(names, f.Name)
	}
	e.definition = defined(p)
	m.decode = func(ctx context.Context, call *Call) (none reflect.Value, err error) {
		if err := knownArguments(call, names); err != nil {
			return none, err
		}
		return m.fn.DecodeText(ctx, call.text)
	}
	m.result = func(_ context.Context, call *Call, values []reflect.Value) (Result, error) {
		return m.outputs.Prompt(call.conversion(), p.Description, values)
	}
}

// knownArguments refuses arguments that the prompt does not have, since they may be misspelt.
func knownArguments(call *Call, known []string) error {
	for _, name := range slices.Sorted(maps.Keys(call.vars)) {
		if !slices.Contains(known, name) {
			var shown []string                        // without those that Describe hides
			text, _ := call.entry.definition.latest() // it was encoded before
			for argument := range jsonx.Elements(jsonx.Member(text, "arguments")) {
				shown = append(shown, jsonx.String(jsonx.Member(argument, "name")))
			}
			return invalidParams("prompt %q has no argument %q%s", call.name, name, naming.Hint(name, shown))
		}
	}
	return nil
}

// defineResource gives e the definition of a resource or a template with the method m.
func defineResource(e *entry, def *spec, m *method) error {
	fields, about := m.fn.Input().Fields(), def.About
	r := protocol.Resource{
		URI: e.key, Name: about.Name, Title: about.Title, Description: about.Description, MIMEType: def.MIME,
		Annotations: def.For, Icons: about.Icons, Meta: def.Meta, Size: def.size,
	}
	e.definition = defined(r)
	if e.Kind == annotation.Template {
		e.definition = defined(protocol.ResourceTemplate{
			URITemplate: r.URI, Name: r.Name, Title: r.Title, Description: r.Description, MIMEType: r.MIMEType,
			Annotations: r.Annotations, Icons: r.Icons, Meta: r.Meta,
		})
	}
	var lists []string // parameters that get the segments of {/name*}
	for _, f := range fields {
		if f.Type.Kind() == reflect.Slice && e.template.IsList(f.Name) {
			lists = append(lists, f.Name)
		}
	}
	m.decode = func(ctx context.Context, call *Call) (reflect.Value, error) {
		return m.fn.DecodeText(ctx, func(name string) (string, bool) {
			text, ok := call.text(name)
			if ok && slices.Contains(lists, name) {
				text = segmentsJSON(text)
			}
			return text, ok
		})
	}
	m.result = func(ctx context.Context, call *Call, values []reflect.Value) (Result, error) {
		cache := cacheHint(0, true)
		if def.Cache != nil { // what not all callers may read is not for shared caches
			cache = cacheHint(def.Cache.TTL, !def.Cache.Public || call.entry.isPersonal())
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
				return newStreamed(ctx, call, def.MIME, cache, reader)
			}
		}
		return m.outputs.Resource(call.conversion(), call.name, def.MIME, cache, values)
	}
	return checkVariables(e, fields)
}

// defineEvent gives e the definition of an event with the method m, and makes its iterator the result of
// the method.
func (s *Server) defineEvent(e *entry, def *spec, m *method) error {
	if !s.config.tags.Any && !slices.ContainsFunc(s.config.extensions, func(x Extension) bool { return x.Events }) {
		return errors.New("nobody serves events: add events.New() of package ext/events to the options of New")
	}
	out := m.fn.Outputs()
	if len(out) != 1 || !out[0].CanSeq2() || out[0].In(0).In(1) != reflect.TypeFor[error]() {
		return errors.New("an event returns an iter.Seq2[T, error] of what happens")
	}
	payload, err := reflectx.OutputSchema(def.Site, out[0].In(0).In(0), s.inputOptions())
	if err == nil && !jsonx.IsString(jsonx.Member(payload, "type"), "object") {
		err = errors.New("what happens is an object; write a struct")
	}
	delivery := def.Delivery
	if len(delivery) == 0 {
		delivery = []string{"poll", "push", "webhook"}
	}
	e.definition = defined(struct {
		Name        string          `json:"name"`
		Title       string          `json:"title,omitzero"`
		Description string          `json:"description,omitzero"`
		Delivery    []string        `json:"delivery"`
		Input       json.RawMessage `json:"inputSchema"`
		Payload     json.RawMessage `json:"payloadSchema"`
		Meta        protocol.Meta   `json:"_meta,omitzero"`
	}{e.key, def.About.Title, def.About.Description, delivery, def.input, payload, def.Meta})
	m.result = func(_ context.Context, _ *Call, values []reflect.Value) (Result, error) {
		return values[0].Interface(), nil
	}
	return err
}

// conversion returns what results of methods are made with.
func (c *Call) conversion() result.Call {
	to := result.Call{
		Context: &c.limit, Kind: c.entry.Kind, Name: c.name, MaxBytes: c.server.config.maxResultBytes, Progress: c.countProgress,
	}
	if c.load != nil {
		last := c.load.memory.Load()
		to.Small = last > 0 && last < 1<<20
	}
	return to
}

// segmentsJSON returns segments, joined by slashes, as a JSON array of strings.
func segmentsJSON(joined string) string {
	if joined == "" {
		return "[]"
	}
	list, _ := jsonx.Marshal(strings.Split(joined, "/")) // strings always encode
	return string(list)
}

// checkVariables compares the parameters of a resource with the variables of its URI template.
func checkVariables(e *entry, fields []reflectx.Field) error {
	var vars, names []string
	if e.template != nil {
		vars = e.template.Vars()
	}
	for _, f := range fields {
		if f.Secret {
			return fmt.Errorf("parameter %q is secret, but logs and other programs show URIs; "+
				"take it as an argument of a tool", f.Name)
		}
		names = append(names, f.Name)
	}
	slices.Sort(vars)
	slices.Sort(names)
	if !slices.Equal(vars, names) {
		return fmt.Errorf("the variables of uri %q are %q, but the parameters are %q; give both the same names",
			e.key, vars, names)
	}
	return nil
}

func prefixed(prefix string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s%w", prefix, err)
}
