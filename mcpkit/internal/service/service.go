// Package service finds the methods of a service, and reads its annotation block.
package service

import (
	"cmp"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/annotation"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// Options say how a service is read.
type Options struct {
	Markers    map[reflect.Type]annotation.Kind // the types of the fields of annotation blocks
	Extensions annotation.Extensions
	OptIn      bool // only the methods that the block mentions
	Comments   reflectx.Descriptions
}

// A Method is a function that becomes a tool, prompt or resource.
type Method struct {
	reflectx.Method
	*annotation.Annotation        // About has the name, the title and the description
	Site                   string // for example "Notes.Search (notes.go:12)"
	Doc                    string // the doc comment, without the method's name before a verb
}

// A Service is what was read of a service.
type Service struct {
	// Methods are the methods to register, sorted by name.
	Methods []Method
	// All are the exported methods, by name.
	All map[string]reflectx.Method
	// About are the tags of the Info field.
	About protocol.Implementation
	// Toolsets are those of methods that have none.
	Toolsets []string
	// Faults are what is wrong with the service.
	Faults reflectx.Errors

	options   Options
	typ       reflect.Type           // the struct type
	blocks    map[reflect.Type]block // of the service, and of the structs that it includes
	completes map[string]bool        // the methods that complete parameters of others
}

// A block is an annotation block: the annotations of methods by their names.
type block map[string]*annotation.Annotation

// Read reads a service, a pointer to a struct.
func Read(service any, o Options) *Service {
	s := &Service{
		All: map[string]reflectx.Method{}, options: o, typ: reflect.TypeOf(service).Elem(),
		blocks: map[reflect.Type]block{}, completes: map[string]bool{},
	}
	methods := reflectx.Methods(service)
	for _, m := range methods {
		s.All[m.Name] = m
		s.findCompleters(m.Func.Type())
	}
	s.readBlocks(s.typ)
	for _, f := range reflect.VisibleFields(s.typ) {
		tag, tagged := f.Tag.Lookup("mcpkit")
		switch {
		case tagged && tag != "include":
			s.Faults.Addf(s.field(f.Name), "tag mcpkit: %q is unknown; write mcpkit:\"include\"", tag)
		case tagged && !f.Anonymous:
			s.Faults.Addf(s.field(f.Name), "tag mcpkit: a field that is not embedded promotes no methods; embed it, or drop the tag")
		case tagged:
			s.readBlocks(structOf(f.Type))
		}
	}
	for _, m := range methods {
		s.choose(m)
	}
	s.checkMethods()
	return s
}

// structOf returns the type that t is or points to.
func structOf(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// findCompleters notes the methods that complete fields of the parameters of a function.
func (s *Service) findCompleters(fn reflect.Type) {
	for in := range fn.Ins() {
		if in = structOf(in); in.Kind() != reflect.Struct {
			continue
		}
		for _, f := range reflect.VisibleFields(in) {
			s.completes[f.Tag.Get("complete")] = true
		}
	}
}

// readBlocks reads the annotation blocks of the struct t: the service, or one that it includes.
func (s *Service) readBlocks(t reflect.Type) {
	if t.Kind() != reflect.Struct || s.blocks[t] != nil {
		return
	}
	s.blocks[t] = block{}
	for f := range t.Fields() {
		switch k := s.options.Markers[f.Type]; {
		case k == annotation.Info && t != s.typ: // of another service
		case k == annotation.Info:
			a := s.parse(s.typ.Name()+", field Info", k, f)
			s.About, s.Toolsets = a.About, a.Toolsets
		case f.Name == "_" && f.Type.Kind() == reflect.Struct && f.Type.Name() == "":
			s.readBlock(s.blocks[t], f.Type)
		case k != 0 || s.hasMarkers(f.Type):
			s.Faults.Addf(s.field(f.Name), "markers stand in a blank field of a struct without a name: "+
				"_ struct { Method mcpkit.Tool }")
		}
	}
}

// hasMarkers reports whether t looks like an annotation block.
func (s *Service) hasMarkers(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	for f := range t.Fields() {
		if k := s.options.Markers[f.Type]; k != 0 && k != annotation.Info {
			return true
		}
	}
	return false
}

func (s *Service) parse(site string, k annotation.Kind, f reflect.StructField) *annotation.Annotation {
	return annotation.Parse(&s.Faults, site, k, annotation.Split(&s.Faults, site, f.Tag), s.options.Extensions)
}

// readBlock reads an annotation block of type t into b.
func (s *Service) readBlock(b block, t reflect.Type) {
	for f := range t.Fields() {
		site := s.field(f.Name)
		m, exists := s.All[f.Name]
		if exists {
			site = s.site(m)
		}
		k := s.options.Markers[f.Type]
		if k == 0 || k == annotation.Info {
			s.Faults.Addf(site, "%s is not a marker; known are mcpkit.Tool, mcpkit.Resource, mcpkit.Prompt, mcpkit.Event, mcpkit.Skip", f.Type)
			continue
		}
		a := s.parse(site, k, f)
		switch {
		case !exists:
			hint := cmp.Or(naming.Hint(f.Name, slices.Sorted(maps.Keys(s.All))), "; export it, or drop the line")
			s.Faults.Addf(site, "%s has no exported method %q%s", s.typ.Name(), f.Name, hint)
		case b[f.Name] != nil:
			s.Faults.Addf(site, "the annotation block says it twice")
		default:
			b[f.Name] = a
			for _, method := range a.Complete {
				s.completes[method] = true
			}
		}
	}
}

// choose adds the method if it is to be registered: if a block mentions it, or if it is one of the
// service itself, its name means nothing to Go programs, and it completes no parameters. The blocks of
// included structs are for the methods that they promote, and the outermost counts.
func (s *Service) choose(m reflectx.Method) {
	a := s.blocks[s.typ][m.Name]
	isOut := func(f reflect.StructField) bool { return f.Tag.Get("mcpkit") != "include" }
	included := !slices.ContainsFunc(m.Embedded, isOut)
	if included {
		for _, f := range m.Embedded {
			a = cmp.Or(a, s.blocks[structOf(f.Type)][m.Name])
		}
	}
	switch want := lifecycle[m.Name]; {
	case a != nil && a.Kind == annotation.Skip:
	case a != nil:
		s.add(m, a)
	case !included || s.completes[m.Name]:
	case want != "" && m.Func.Type().String() != want:
		s.Faults.Addf(s.site(m), "it is %s, and would not be called, since the server calls a %s that is %s; "+
			"write that, or %[2]s mcpkit.Skip in the annotation block", m.Func.Type(), m.Name, want)
	case !s.options.OptIn && !slices.Contains(naming.GoMethods, m.Name):
		s.add(m, &annotation.Annotation{Kind: annotation.Tool})
	}
}

// lifecycle has the types of the methods that the server calls itself.
var lifecycle = map[string]string{"Start": "func(context.Context) error", "Close": "func() error"}

// checkMethods finds the mistake of a service that has nothing to register and nothing to start or close.
func (s *Service) checkMethods() {
	_, starts := s.All["Start"]
	_, closes := s.All["Close"]
	if s.Methods == nil && s.Faults == nil && !starts && !closes {
		s.Faults.Addf("", "mcpkit: %s has no method to register: export the methods that are to be tools "+
			`(Search, not search), tag the embedded field that has them mcpkit:"include", or with OptIn mention them in the annotation block; `+
			"for a server without services, pass nil", s.typ.Name())
	}
}

func (s *Service) add(m reflectx.Method, a *annotation.Annotation) {
	a.About.Name = cmp.Or(a.About.Name, reflectx.SnakeCase(m.Name))
	if a.Toolsets == nil {
		a.Toolsets = s.Toolsets
	}
	doc := describe(m.Name, s.options.Comments.Text(m.Owner, m.Name))
	s.Methods = append(s.Methods, Method{m, a, s.site(m), doc})
}

// notVerbs are words that end like verbs.
var notVerbs = []string{"is", "was", "has", "as", "its", "this", "does"}

// describe makes a description of a doc comment: it removes the method's name, which clients do not
// know, before a verb. Other comments, such as "Area of a shape", stay as they are.
func describe(method, doc string) string {
	rest, ok := strings.CutPrefix(doc, method+" ")
	verb := rest
	if i := strings.IndexFunc(rest, unicode.IsSpace); i >= 0 {
		verb = rest[:i]
	}
	verb = strings.TrimRight(verb, ".,;:!?")
	if !ok || !strings.HasSuffix(verb, "s") || slices.Contains(notVerbs, verb) {
		return doc
	}
	r, size := utf8.DecodeRuneInString(rest)
	return string(unicode.ToUpper(r)) + rest[size:]
}

// site returns for example "Notes.Search (notes.go:12)".
func (s *Service) site(m reflectx.Method) string {
	site := s.field(m.Name)
	if m.File != "" {
		site += " (" + filepath.Base(m.File) + ":" + strconv.Itoa(m.Line) + ")"
	}
	return site
}

// field returns the place of a field or of a method that does not exist.
func (s *Service) field(name string) string { return s.typ.Name() + "." + name }
