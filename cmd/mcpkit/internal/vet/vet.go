// Package vet checks the services of a package from their source: it registers them with package mcpkit, made of types
// that are rebuilt from the source, and so finds what a start of the server would, without running the program.
package vet

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/gen"
	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/services"
	"github.com/mcpkit/mcpkit-go/internal/rehearsal"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// A Diagnostic is one thing that is wrong.
type Diagnostic struct {
	Pos     token.Pos
	Message string
}

// A Cost is what the tools of a service cost a model before it has called one.
type Cost struct {
	Service string
	Tools   int
	// Bytes is the length of the tools' definitions as JSON.
	Bytes int
	// AtLeast says that there is more: what unions, types with schemas of their own and types that contain themselves have in
	// their schemas, the program alone knows.
	AtLeast bool
}

// Check looks at the services of p, in which services were looked for. The diagnostics are sorted by place.
func Check(p *services.Package) ([]Diagnostic, []Cost) {
	v := &checker{pkg: p}
	for _, s := range p.Services {
		if strings.HasSuffix(p.Fset.Position(s.Type.Obj().Pos()).Filename, "_test.go") {
			continue // tests have services with faults, on purpose
		}
		v.service(s)
	}
	for _, call := range p.Dropped {
		if !strings.HasSuffix(p.Fset.Position(call.Pos()).Filename, "_test.go") {
			v.report(call.Pos(), "%s tells in its error what is wrong with the service, and nobody looks; write if err := %[1]s; err != nil { log.Fatal(err) }",
				types.ExprString(call.Fun)+"(…)")
		}
	}
	slices.SortStableFunc(v.found, func(a, b Diagnostic) int {
		x, y := p.Fset.Position(a.Pos), p.Fset.Position(b.Pos)
		return cmp.Or(strings.Compare(x.Filename, y.Filename), x.Line-y.Line, strings.Compare(a.Message, b.Message))
	})
	return slices.Compact(v.found), v.costs
}

// Fresh reports what is wrong with the generated file of p, nil if nothing is: it has none, or one that is up to date.
func Fresh(p *services.Package) error {
	have, err := os.ReadFile(filepath.Join(p.Dir, services.GeneratedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	want, err := gen.File(p)
	if err != nil {
		return err
	}
	if !bytes.Equal(have, want) {
		return fmt.Errorf("%s: %s is stale; run go generate, or mcpkit gen %[1]s", p.Path, services.GeneratedFile)
	}
	return nil
}

type checker struct {
	pkg   *services.Package
	found []Diagnostic
	costs []Cost
}

func (v *checker) report(pos token.Pos, format string, args ...any) {
	v.found = append(v.found, Diagnostic{pos, fmt.Sprintf(format, args...)})
}

func (v *checker) service(s *services.Service) {
	if s.Type.TypeParams().Len() > 0 {
		return // which types it has, the program alone knows
	}
	name := s.Type.Obj().Name()
	c := newCast(v.pkg)
	in := rehearsal.Service{
		Name: name, Type: c.service(s), Prefix: s.Prefix, OptIn: s.OptIn, Words: newWords(v.pkg, c),
	}
	for _, t := range v.pkg.Provided {
		standIn := c.unique()
		c.given = append(c.given, providedType{t, standIn})
		in.Provided = append(in.Provided, standIn)
		c.spelt = append(c.spelt, spelling{standIn.String(), types.TypeString(t, func(p *types.Package) string { return p.Name() })})
	}
	for _, m := range s.Methods {
		in.Methods = append(in.Methods, c.method(m))
	}
	result := mcpkit.Rehearse(in)
	for _, fault := range result.Faults {
		if v.pkg.OwnRules && strings.Contains(fault.Msg, "unknown rule") {
			continue // one that the program teaches its validator
		}
		v.report(v.place(s, fault.Site), "%s", c.spell(fault.Error()))
	}
	v.words(s, in.Words)
	v.hints(s)
	if result.Faults == nil {
		var tools []json.RawMessage
		_ = json.Unmarshal(result.Tools, &tools) // what this program wrote itself
		v.costs = append(v.costs, Cost{Service: v.pkg.Path + "." + name, Tools: len(tools), Bytes: len(result.Tools), AtLeast: len(c.opaque) > 0 || c.ownSchemas})
	}
}

// place finds what a site, "Notes.Search (notes.go:12), field Limit", is in the source: the method, or else the entry of
// the block, or else the service.
func (v *checker) place(s *services.Service, site string) token.Pos {
	head, _, _ := strings.Cut(site, " ")
	head, _, _ = strings.Cut(head, ",")
	_, method, _ := strings.Cut(head, ".")
	for _, m := range s.Methods {
		if m.Func.Name() == method && m.Func.Pkg() == v.pkg.Types {
			return m.Func.Pos()
		}
	}
	if f := s.Entry(method); f != nil {
		return f.Pos()
	}
	return s.Type.Obj().Pos()
}

// service is the struct that mcpkit looks at: the fields that are blank, markers or embedded.
func (c *cast) service(s *services.Service) reflect.Type {
	st := s.Type.Underlying().(*types.Struct)
	return reflect.StructOf(c.serviceFields(st, map[*types.Struct]bool{}))
}

func (c *cast) serviceFields(st *types.Struct, above map[*types.Struct]bool) []reflect.StructField {
	above[st] = true
	defer delete(above, st)
	var fields []reflect.StructField
	for i := range st.NumFields() {
		f := st.Field(i)
		sf := reflect.StructField{Name: f.Name(), Tag: reflect.StructTag(st.Tag(i))}
		if !f.Exported() {
			sf.PkgPath = c.pkg.Path
		}
		switch {
		case f.Name() == "_" || services.Marker(f.Type()) != "":
			sf.Type = c.of(f.Type())
		case f.Embedded():
			t := f.Type()
			if ptr, ok := t.Underlying().(*types.Pointer); ok {
				t = ptr.Elem()
			}
			sf.Type = reflect.TypeFor[struct{}]()
			if in, ok := t.Underlying().(*types.Struct); ok && !above[in] {
				sf.Type = reflect.StructOf(c.serviceFields(in, above))
			}
		default:
			continue
		}
		fields = append(fields, sf)
	}
	return fields
}

// method is the method as mcpkit sees it; it does nothing.
func (c *cast) method(m services.Method) reflectx.Method {
	sig := m.Func.Signature()
	fn := reflect.MakeFunc(c.ofSignature(sig), func([]reflect.Value) []reflect.Value { return nil })
	owner := c.unique()
	if m.Owner != nil {
		c.played[owner] = m.Owner.Obj()
	}
	out := reflectx.Method{Name: m.Func.Name(), Func: fn, Owner: owner, Promoted: m.Path != nil, Path: m.Path}
	if pos := c.pkg.Fset.Position(m.Func.Pos()); pos.IsValid() {
		out.File, out.Line = pos.Filename, pos.Line
	}
	return out
}
