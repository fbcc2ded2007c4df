package mcpkit

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/internal/uritemplate"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/annotation"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// The markers say in a service's annotation block what its methods are. The block is a blank field
// of anonymous struct type; its field names are method names:
//
//	type Notes struct {
//		_ struct {
//			Search mcpkit.Tool     `hints:"readonly"`
//			Note   mcpkit.Resource `uri:"note://{id}"`
//			Ask    mcpkit.Prompt   `params:"topic,style?"`
//			Reload mcpkit.Skip
//		}
//	}
//
// They take no space. The tags that each takes are listed in docs/reference/tags.md.
type (
	// Tool marks a method as a tool. Exported methods that the block does not list are tools. The
	// definition that clients get is a [protocol.Tool].
	Tool struct{}
	// Resource marks a method as a resource or, if its URI has variables, as a resource template.
	Resource struct{}
	// Prompt marks a method as a prompt.
	Prompt struct{}
	// Skip hides an exported method from clients.
	Skip struct{}
	// Info is the type of a blank field of a service, whose tags set the server's name, version,
	// title and so on.
	Info struct{}
)

var kindOf = map[reflect.Type]annotation.Kind{
	reflect.TypeFor[Tool]():     annotation.Tool,
	reflect.TypeFor[Resource](): annotation.Resource,
	reflect.TypeFor[Prompt]():   annotation.Prompt,
	reflect.TypeFor[Info]():     annotation.Info,
	reflect.TypeFor[Skip]():     annotation.Skip,
}

// Register adds a service. Each exported method becomes a tool, or what the annotation block says.
// The error, a [reflectx.Errors], has all faults of the service; then nothing of it is registered.
func (s *Server) Register(service any, opts ...ServiceOption) error {
	return s.registerAll([]registration{newRegistration(service, opts)})
}

// A registrar turns one service into entries.
type registrar struct {
	server  *Server
	reg     registration
	typ     reflect.Type // the struct type
	name    string       // of it
	methods map[string]reflectx.Method
	block   map[string]*annotation.Annotation
	order   []string // the fields of the block, in order
	faults  reflectx.Errors
	entries []*entry
}

func newRegistrar(s *Server, reg registration) *registrar {
	return &registrar{server: s, reg: reg, methods: map[string]reflectx.Method{}, block: map[string]*annotation.Annotation{}}
}

// registerAll registers all services, or returns all of their faults.
func (s *Server) registerAll(regs []registration) error {
	var faults reflectx.Errors
	var all []*entry
	for _, reg := range regs {
		r := newRegistrar(s, reg)
		if err := r.inspect(); err != nil {
			r.keep("", err)
		} else {
			r.addAll()
		}
		if err := checkMiddleware("Around", reg.around); err != nil {
			r.keep("", err)
		} else {
			for _, e := range r.entries {
				e.run, e.allow = wrap("Around: ", e.run, reg.around), reg.allow
			}
		}
		faults = append(faults, r.faults...)
		all = append(all, r.entries...)
	}
	if err := s.addUnless(faults, all); err != nil {
		return err
	}
	for _, reg := range regs {
		s.life.add(reg.service)
	}
	return nil
}

// inspect finds the service's methods and reads its annotation block.
func (r *registrar) inspect() error {
	v := reflect.ValueOf(r.reg.service)
	if v.Kind() == reflect.Pointer && v.IsNil() && v.Type().Elem().Kind() == reflect.Struct {
		return &reflectx.Error{Msg: fmt.Sprintf("mcpkit: the service is a nil %T; write for example &%s{}", r.reg.service, v.Type().Elem().Name())}
	}
	if !v.IsValid() || v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return &reflectx.Error{Msg: fmt.Sprintf("mcpkit: a service is a pointer to a struct, not %T; write for example &Notes{}", r.reg.service)}
	}
	if _, isItem := r.reg.service.(Item); isItem {
		return &reflectx.Error{Msg: fmt.Sprintf("mcpkit: a %T is not a service; pass it to Server.Add", r.reg.service)}
	}
	if _, isServer := r.reg.service.(*Server); isServer {
		return &reflectx.Error{Msg: "mcpkit: a *mcpkit.Server is not a service; serve it with its method Serve, or pass it to Mount of another server"}
	}
	r.typ = v.Type().Elem()
	r.name = r.typ.Name()
	return r.read(reflectx.Methods(r.reg.service))
}

// addAll makes entries of the methods.
func (r *registrar) addAll() {
	completers := r.completers()
	r.checkWellKnown(completers)
	names := slices.DeleteFunc(r.names(), func(name string) bool { return slices.Contains(completers, name) })
	r.checkEmpty(names)
	for _, name := range names {
		r.add(r.methods[name])
	}
}

// read takes over the methods and reads the annotation block.
func (r *registrar) read(methods []reflectx.Method) error {
	if r.reg.prefix != "" {
		if err := naming.Check(r.reg.prefix); err != nil {
			return &reflectx.Error{Site: r.name, Msg: "prefix: " + err.Error()}
		}
	}
	for _, m := range methods {
		r.methods[m.Name] = m
	}
	for i := range r.typ.NumField() {
		f := r.typ.Field(i)
		switch {
		case f.Type == reflect.TypeFor[Info]():
			_, faults := annotation.Parse(annotation.Info, f.Tag, annotation.Extensions{})
			r.fault(r.name+", field Info", faults...)
		case isBlock(f):
			r.readBlock(f.Type, nil)
		case kindOf[f.Type] != 0:
			r.fault(r.name+"."+f.Name, fmt.Sprintf("a mcpkit.%s stands in a block: _ struct { Method mcpkit.%[1]s }", kindOf[f.Type]))
		case hasMarkers(f.Type):
			r.fault(r.name+"."+f.Name, "the annotation block is a blank field of a struct without a name: _ struct { ... }")
		}
	}
	r.readIncluded(r.typ, nil)
	return nil
}

func isBlock(f reflect.StructField) bool {
	return f.Name == "_" && f.Type.Kind() == reflect.Struct && f.Type.Name() == ""
}

// readIncluded reads the annotation blocks of the structs that t embeds with the tag
// mcpkit:"include". path leads to t.
func (r *registrar) readIncluded(t reflect.Type, path []string, above ...reflect.Type) {
	for f := range t.Fields() {
		in := f.Type
		if in.Kind() == reflect.Pointer {
			in = in.Elem()
		}
		tag, tagged := f.Tag.Lookup("mcpkit")
		switch {
		case tagged && tag != "include":
			r.fault(r.name+"."+f.Name, fmt.Sprintf("tag mcpkit: %q is unknown; write mcpkit:\"include\"", tag))
		case tagged && !f.Anonymous:
			r.fault(r.name+"."+f.Name, "tag mcpkit: a field that is not embedded promotes no methods; embed it, or drop the tag")
		}
		if !f.Anonymous || tag != "include" || in.Kind() != reflect.Struct || slices.Contains(above, in) {
			continue
		}
		to := append(slices.Clip(path), f.Name)
		for b := range in.Fields() {
			if isBlock(b) {
				r.readBlock(b.Type, to)
			}
		}
		r.readIncluded(in, to, append(above, in)...)
	}
}

// hasMarkers reports whether t looks like an annotation block.
func hasMarkers(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	for f := range t.Fields() {
		if k := kindOf[f.Type]; k != 0 && k != annotation.Info {
			return true
		}
	}
	return false
}

// readBlock reads an annotation block. path leads to the embedded struct that has it. There, it is
// for methods that the struct promotes and that no block further out has.
func (r *registrar) readBlock(block reflect.Type, path []string) {
	for i := range block.NumField() {
		f := block.Field(i)
		m, exists := r.methods[f.Name]
		if path != nil && (r.block[f.Name] != nil || exists && !slices.Equal(m.Path[:min(len(path), len(m.Path))], path)) {
			continue
		}
		site := r.name + "." + f.Name
		if exists {
			site = r.site(m)
		}
		k := kindOf[f.Type]
		if k == 0 || k == annotation.Info {
			r.fault(site, fmt.Sprintf("%s is not a marker; known are mcpkit.Tool, mcpkit.Resource, mcpkit.Prompt, mcpkit.Skip", f.Type))
			continue
		}
		a, faults := annotation.Parse(k, f.Tag, r.server.toolTags)
		r.fault(site, faults...)
		if !exists {
			r.fault(site, fmt.Sprintf("%s has no exported method %q%s", r.name, f.Name, naming.Hint(f.Name, slices.Sorted(maps.Keys(r.methods)))))
			continue
		}
		if r.block[f.Name] != nil {
			r.fault(site, "the annotation block says it twice")
			continue
		}
		r.block[f.Name] = a
		r.order = append(r.order, f.Name)
	}
}

// completers returns the methods that complete parameters. They are not tools, unless the block
// says so.
func (r *registrar) completers() []string {
	var names []string
	add := func(method string) {
		if _, ok := r.methods[method]; !ok { // the name is misspelt, not the method
			method = naming.Nearest(method, r.ableToComplete())
		}
		if r.block[method] == nil {
			names = append(names, method)
		}
	}
	for _, a := range r.block {
		for _, method := range a.Complete {
			add(method)
		}
	}
	for _, m := range r.methods {
		for t := range m.Func.Type().Ins() {
			for _, method := range completeTags(t) {
				add(method)
			}
		}
	}
	return names
}

// completer returns a method that completes a parameter, or a hint at the method that is meant.
func (r *registrar) completer(method string) (fn reflect.Value, hint string) {
	if m, ok := r.methods[method]; ok {
		return m.Func, ""
	}
	return fn, naming.Hint(method, r.ableToComplete())
}

// ableToComplete returns the methods with the signature of a completer.
func (r *registrar) ableToComplete() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.methods)), func(name string) bool {
		_, err := methodCompleter(r.methods[name].Func)
		return err != nil
	})
}

// completeTags returns the completers that the fields of an input struct name, and those of structs
// that it embeds. above are the structs that embed t.
func completeTags(t reflect.Type, above ...reflect.Type) (methods []string) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || slices.Contains(above, t) {
		return nil
	}
	for f := range t.Fields() {
		if method := f.Tag.Get("complete"); method != "" {
			methods = append(methods, method)
		}
		if f.Anonymous {
			methods = append(methods, completeTags(f.Type, append(above, t)...)...)
		}
	}
	return methods
}

// checkWellKnown refuses methods that have a well-known name but another signature: leaving them
// out silently would surprise.
func (r *registrar) checkWellKnown(completers []string) {
	for _, name := range naming.GoMethods {
		m, ok := r.methods[name]
		if _, mentioned := r.block[name]; !ok || mentioned || !r.included(m) || slices.Contains(completers, name) {
			continue
		}
		life := name == "Start" || name == "Close"
		known, got := naming.GoSignatures[name], m.Func.Type().String()
		switch {
		case slices.Contains(known.Forms, got), r.reg.optIn && !life:
		case life:
			r.fault(r.site(m), fmt.Sprintf("it is %s, and would not be called, since the server calls a %s that is %s; write that, or %[2]s mcpkit.Skip in the annotation block",
				got, name, known.Forms[0]))
		default:
			r.fault(r.site(m), fmt.Sprintf("%s is %s: %s; this one is %s. Add it to the annotation block: %[1]s mcpkit.Tool makes it a tool, %[1]s mcpkit.Skip leaves it out",
				name, known.What, goTypes.Replace(known.Forms[0]), goTypes.Replace(got)))
		}
	}
}

// goTypes writes types as Go code does.
var goTypes = strings.NewReplacer("[]uint8", "[]byte", "interface {}", "any", "fmt.State, int32", "fmt.State, rune")

// checkEmpty refuses a service that registers nothing, unless it starts or closes something.
func (r *registrar) checkEmpty(names []string) {
	_, starts := r.methods["Start"]
	_, closes := r.methods["Close"]
	if len(names) > 0 || len(r.faults) > 0 || starts || closes {
		return
	}
	how := `export the methods that are to be tools (Search, not search), or tag the embedded field that has them mcpkit:"include"; for a server without services, pass nil`
	if r.reg.optIn {
		how = "OptIn registers only what the annotation block mentions"
	}
	r.fault("", fmt.Sprintf("mcpkit: %s has no method to register: %s", r.name, how))
}

// names returns the methods to register, sorted.
func (r *registrar) names() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(r.methods)) {
		m := r.methods[name]
		a, mentioned := r.block[name]
		switch {
		case mentioned && a.Kind == annotation.Skip:
		case mentioned:
			names = append(names, name)
		case r.reg.optIn, slices.Contains(naming.GoMethods, name), !r.included(m):
		default:
			names = append(names, name)
		}
	}
	return names
}

// included reports whether the embedded field that promotes m has the tag mcpkit:"include".
func (r *registrar) included(m reflectx.Method) bool {
	t := r.typ
	for _, name := range m.Path {
		f, ok := t.FieldByName(name)
		if !ok || f.Tag.Get("mcpkit") != "include" {
			return false
		}
		t = f.Type
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return true
		}
	}
	return true
}

func (r *registrar) fault(site string, msgs ...string) {
	for _, msg := range msgs {
		r.faults = append(r.faults, &reflectx.Error{Site: site, Msg: msg})
	}
}

// keep collects the faults of err.
func (r *registrar) keep(site string, err error) {
	faults, _ := joinFaults(at(site, err)).(reflectx.Errors)
	r.faults = append(r.faults, faults...)
}

// add registers one method.
func (r *registrar) add(m reflectx.Method) {
	a := r.block[m.Name]
	if a == nil {
		a = &annotation.Annotation{Kind: annotation.Tool}
	}
	site := r.site(m)
	doc, paramDescriptions := reflectx.ParamDescriptions(descriptions.Text(m.Owner, m.Name), paramNames(a))
	d := spec{
		Annotation:        a,
		site:              site,
		name:              cmp.Or(a.About.Name, reflectx.SnakeCase(m.Name)),
		title:             cmp.Or(a.About.Title, reflectx.Title(m.Name)),
		desc:              cmp.Or(a.About.Description, describe(m.Name, doc)),
		fn:                m.Func,
		paramDescriptions: paramDescriptions,
		owner:             m.Owner,
		method:            m.Name,
		completer:         r.completer,
	}
	if r.reg.prefix != "" && a.Kind != annotation.Resource {
		d.name = r.reg.prefix + "_" + d.name
	}
	e, err := r.server.define(&d)
	if err != nil {
		r.keep(site, err)
		return
	}
	r.entries = append(r.entries, e)
}

// paramNames returns the names that the annotation gives plain parameters.
func paramNames(a *annotation.Annotation) []string {
	if a.Params != nil {
		names := slices.Clone(a.Params)
		for i, name := range names {
			names[i] = strings.TrimSuffix(strings.TrimSpace(name), "?")
		}
		return names
	}
	if a.URI == "" {
		return nil
	}
	tmpl, err := uritemplate.Parse(a.URI)
	if err != nil {
		return nil
	}
	return tmpl.Vars()
}

// describe makes a description of a doc comment: it removes the method's name, which clients do not
// know, before a verb. Other comments, such as "Area of a shape", stay as they are.
func describe(method, doc string) string {
	rest, ok := strings.CutPrefix(doc, method+" ")
	verb := strings.TrimRight(rest[:len(rest)-len(strings.TrimLeftFunc(rest, func(r rune) bool { return !unicode.IsSpace(r) }))], ".,;:!?")
	if !ok || !strings.HasSuffix(verb, "s") || slices.Contains([]string{"is", "was", "has", "as", "its", "this", "does"}, verb) {
		return doc
	}
	r, size := utf8.DecodeRuneInString(rest)
	return string(unicode.ToUpper(r)) + rest[size:]
}

// site returns for example "Notes.Search (notes.go:12)".
func (r *registrar) site(m reflectx.Method) string {
	site := r.name + "." + m.Name
	if m.File != "" {
		site += " (" + filepath.Base(m.File) + ":" + strconv.Itoa(m.Line) + ")"
	}
	return site
}

// serviceInfo returns the tags of a service's Info field. Its faults were reported at registration.
func serviceInfo(t reflect.Type) protocol.Implementation {
	for f := range t.Fields() {
		if f.Type == reflect.TypeFor[Info]() {
			a, _ := annotation.Parse(annotation.Info, f.Tag, annotation.Extensions{})
			return a.About
		}
	}
	return protocol.Implementation{}
}
