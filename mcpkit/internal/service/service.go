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

// A Method is a method that becomes a tool, prompt or resource.
type Method struct {
	reflectx.Method
	Annotation *annotation.Annotation // with a name and a title
	Site       string                 // for example "Notes.Search (notes.go:12)"
	Doc        string                 // the doc comment, without the method's name before a verb
}

// A Service is what was read of a service.
type Service struct {
	// Methods are the methods to register, sorted by name, but for those of [Service.Completes].
	Methods []Method
	// About are the tags of the Info field.
	About protocol.Implementation
	// Faults are what is wrong with the service.
	Faults reflectx.Errors

	options   Options
	typ       reflect.Type // the struct type
	methods   map[string]reflectx.Method
	block     map[string]*annotation.Annotation // by method
	completes map[string]bool                   // the methods that complete parameters of others
	included  map[string]bool                   // the paths of embedded fields with the tag mcpkit:"include"
}

// Read reads a service, a pointer to a struct.
func Read(service any, o Options) *Service {
	s := &Service{
		options: o, typ: reflect.TypeOf(service).Elem(),
		methods: map[string]reflectx.Method{}, block: map[string]*annotation.Annotation{}, completes: map[string]bool{},
		included: map[string]bool{},
	}
	for _, m := range reflectx.Methods(service) {
		s.methods[m.Name] = m
	}
	for f := range s.typ.Fields() {
		switch k := o.Markers[f.Type]; {
		case k == annotation.Info:
			s.About = annotation.Parse(&s.Faults, s.typ.Name()+", field Info", k, f.Tag, annotation.Extensions{}).About
		case isBlock(f):
			s.readBlock(f.Type, nil)
		case k != 0:
			s.Faults.Addf(s.field(f.Name), "a mcpkit.%s stands in a block: _ struct { Method mcpkit.%[1]s }", k)
		case s.hasMarkers(f.Type):
			s.Faults.Addf(s.field(f.Name), "the annotation block is a blank field of a struct without a name: _ struct { ... }")
		}
	}
	s.readIncluded(s.typ, nil)
	s.choose()
	return s
}

func isBlock(f reflect.StructField) bool {
	return f.Name == "_" && f.Type.Kind() == reflect.Struct && f.Type.Name() == ""
}

// readIncluded reads the annotation blocks of the structs that t embeds with the tag
// mcpkit:"include". path leads to t.
func (s *Service) readIncluded(t reflect.Type, path []string, above ...reflect.Type) {
	for f := range t.Fields() {
		in := f.Type
		if in.Kind() == reflect.Pointer {
			in = in.Elem()
		}
		tag, tagged := f.Tag.Lookup("mcpkit")
		switch {
		case tagged && tag != "include":
			s.Faults.Addf(s.field(f.Name), "tag mcpkit: %q is unknown; write mcpkit:\"include\"", tag)
		case tagged && !f.Anonymous:
			s.Faults.Addf(s.field(f.Name), "tag mcpkit: a field that is not embedded promotes no methods; embed it, or drop the tag")
		}
		if !f.Anonymous || tag != "include" {
			continue
		}
		to := append(slices.Clip(path), f.Name)
		s.included[strings.Join(to, ".")] = true
		if in.Kind() != reflect.Struct || slices.Contains(above, in) {
			continue
		}
		for b := range in.Fields() {
			if isBlock(b) {
				s.readBlock(b.Type, to)
			}
		}
		s.readIncluded(in, to, append(above, in)...)
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

// readBlock reads an annotation block. path leads to the embedded struct that has it. There, it is
// for methods that the struct promotes and that no block further out has.
func (s *Service) readBlock(block reflect.Type, path []string) {
	for i := range block.NumField() {
		f := block.Field(i)
		m, exists := s.methods[f.Name]
		if path != nil && (s.block[f.Name] != nil || exists && !slices.Equal(m.Path[:min(len(path), len(m.Path))], path)) {
			continue
		}
		site := s.field(f.Name)
		if exists {
			site = s.site(m)
		}
		k := s.options.Markers[f.Type]
		if k == 0 || k == annotation.Info {
			s.Faults.Addf(site, "%s is not a marker; known are mcpkit.Tool, mcpkit.Resource, mcpkit.Prompt, mcpkit.Skip", f.Type)
			continue
		}
		a := annotation.Parse(&s.Faults, site, k, f.Tag, s.options.Extensions)
		if !exists {
			hint := naming.Hint(f.Name, slices.Sorted(maps.Keys(s.methods)))
			s.Faults.Addf(site, "%s has no exported method %q%s", s.typ.Name(), f.Name, hint)
			continue
		}
		if s.block[f.Name] != nil {
			s.Faults.Addf(site, "the annotation block says it twice")
			continue
		}
		s.block[f.Name] = a
		for _, method := range a.Complete {
			s.completes[method] = true
		}
	}
}

// choose finds the methods to register: those that the block mentions, and those of the service itself
// whose names mean nothing to Go programs.
func (s *Service) choose() {
	for _, name := range slices.Sorted(maps.Keys(s.methods)) {
		m := s.methods[name]
		a, mentioned := s.block[name]
		switch want := lifecycle[name]; {
		case mentioned && a.Kind == annotation.Skip:
		case mentioned:
			s.add(m, a)
		case m.Path != nil && !s.included[strings.Join(m.Path, ".")]:
		case want != "" && m.Func.Type().String() != want:
			s.Faults.Addf(s.site(m), "it is %s, and would not be called, since the server calls a %s that is %s; "+
				"write that, or %[2]s mcpkit.Skip in the annotation block", m.Func.Type(), name, want)
		case !s.options.OptIn && !slices.Contains(naming.GoMethods, name):
			s.add(m, &annotation.Annotation{Kind: annotation.Tool})
		}
	}
	_, starts := s.methods["Start"]
	_, closes := s.methods["Close"]
	if s.Methods != nil || s.Faults != nil || starts || closes {
		return
	}
	how := `export the methods that are to be tools (Search, not search), or tag the embedded field that has them mcpkit:"include"; for a server without services, pass nil`
	if s.options.OptIn {
		how = "OptIn registers only what the annotation block mentions"
	}
	s.Faults.Addf("", "mcpkit: %s has no method to register: %s", s.typ.Name(), how)
}

// lifecycle has the types of the methods that the server calls itself.
var lifecycle = map[string]string{"Start": "func(context.Context) error", "Close": "func() error"}

func (s *Service) add(m reflectx.Method, a *annotation.Annotation) {
	a.About.Name = cmp.Or(a.About.Name, reflectx.SnakeCase(m.Name))
	a.About.Title = cmp.Or(a.About.Title, reflectx.Title(m.Name))
	doc := describe(m.Name, s.options.Comments.Text(m.Owner, m.Name))
	s.Methods = append(s.Methods, Method{Method: m, Annotation: a, Site: s.site(m), Doc: doc})
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
