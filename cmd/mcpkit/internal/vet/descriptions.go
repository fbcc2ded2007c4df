package vet

import (
	"fmt"
	"go/types"
	"reflect"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/gen"
	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/services"
	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// sourceDescriptions has the doc comments of the types whose descriptions clients can see.
type sourceDescriptions struct {
	pkg     *services.Package
	reached *services.Reached
	read    map[string]map[string]string // by import path
}

func newSourceDescriptions(p *services.Package) *sourceDescriptions {
	return &sourceDescriptions{pkg: p, reached: p.Reach(naming.GoMethods), read: map[string]map[string]string{}}
}

// text returns the doc comment of the type, or of its member if member is not "".
func (w *sourceDescriptions) text(obj *types.TypeName, member string) string {
	if obj == nil || obj.Pkg() == nil {
		return ""
	}
	path := obj.Pkg().Path()
	descriptions, ok := w.read[path]
	if !ok {
		descriptions = gen.Descriptions(w.pkg, path, w.reached.Types[path])
		w.read[path] = descriptions
	}
	if member == "" {
		return descriptions[obj.Name()]
	}
	return descriptions[obj.Name()+"."+member]
}

// descriptions reports a method and fields of its inputs without a description.
func (v *checker) descriptions(s *services.Service, m services.Method) {
	name, method := s.Type.Obj().Name(), m.Func.Name()
	if m.Owner != nil && v.hasSource(m.Owner.Obj()) && s.EntryTag(method).Get("desc") == "" && v.source.text(m.Owner.Obj(), method) == "" {
		v.report(place(v.pkg, s, name+"."+method), "%s.%s: it has no description; write a doc comment, or a desc tag in the annotation block", name, method)
	}
	for param := range m.Func.Signature().Params().Variables() {
		v.fieldDescriptions(param.Type(), map[types.Type]bool{})
	}
}

// hasSource reports whether the source of the type's package is known.
func (v *checker) hasSource(obj *types.TypeName) bool {
	return obj.Pkg() != nil && v.pkg.Dirs[obj.Pkg().Path()] != ""
}

// fieldDescriptions reports fields without a description in t and in the types of its fields. The
// diagnostics do not name the tool, so that [Sort] removes those of a type that tools share.
func (v *checker) fieldDescriptions(t types.Type, seen map[types.Type]bool) {
	t = types.Unalias(t)
	if seen[t] || v.pkg.Injected(t) {
		return
	}
	seen[t] = true
	switch u := t.Underlying().(type) {
	case services.HasElem:
		v.fieldDescriptions(u.Elem(), seen)
	case *types.Struct:
		named, _ := t.(*types.Named)
		if named == nil || !v.hasSource(named.Obj()) || services.WritesItself(named) {
			return
		}
		for i := range u.NumFields() {
			f, tag := u.Field(i), reflect.StructTag(u.Tag(i))
			switch {
			case tag.Get("json") == "-" || !f.Exported() && !f.Embedded():
				continue
			case f.Embedded() && tag.Get("json") == "":
			case tag.Get("desc") == "" && !strings.Contains(tag.Get("jsonschema"), "description=") &&
				v.source.text(named.Obj(), f.Name()) == "" && !v.typeHasDescriptions(f.Type()):
				v.report(f.Pos(), "field %s of %s: it has no description; write a comment, or a desc tag", f.Name(), named.Obj().Name())
			}
			if f.Exported() && !f.Embedded() && tag.Get("json") == "" {
				v.found = append(v.found, Diagnostic{f.Pos(), fmt.Sprintf("field %s of %s: it has no json tag, so clients write %[1]q; for another name, write one such as json:%[3]q",
					f.Name(), named.Obj().Name(), reflectx.SnakeCase(f.Name())), true})
			}
			if rules := strings.Split(tag.Get("validate"), ","); slices.Contains(rules, "enum") && !v.generated {
				v.report(f.Pos(), "field %s of %s: a program that runs without its source does not know the values of %s; run mcpkit gen",
					f.Name(), named.Obj().Name(), types.TypeString(f.Type(), types.RelativeTo(v.pkg.Types)))
			}
			v.fieldDescriptions(f.Type(), seen)
		}
	}
}

func (v *checker) typeHasDescriptions(t types.Type) bool {
	named, ok := types.Unalias(services.Indirect(t)).(*types.Named)
	return ok && v.source.text(named.Obj(), "") != ""
}
