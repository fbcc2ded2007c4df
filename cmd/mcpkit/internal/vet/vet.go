// Package vet checks the services of a package. [Check] reads their source and reports mistakes
// that are not startup errors. [Start] builds a program that registers the services, and reports
// its startup errors.
package vet

import (
	"cmp"
	"fmt"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/services"
	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A Diagnostic is one mistake, or a note on what may be meant.
type Diagnostic struct {
	Pos     token.Pos
	Message string
	Note    bool
}

// Listed are the tools of a service, as they are listed.
type Listed struct {
	Service string
	Tools   []*protocol.Tool
}

// Check checks the source of the services of p. Call [services.Package.Find] before.
func Check(p *services.Package) []Diagnostic {
	_, err := os.Stat(filepath.Join(p.Dir, services.GeneratedFile))
	v := &checker{pkg: p, source: newSourceDescriptions(p), generated: err == nil}
	for _, e := range p.ByValue {
		v.report(e.Pos(), "%s is no service, since a service is a pointer to a struct; write &%[1]s", types.ExprString(e))
	}
	for _, s := range p.Services {
		if !v.inTest(s.Type.Obj().Pos()) { // tests have services with mistakes on purpose
			v.service(s)
		}
	}
	return v.found
}

// Sort sorts diagnostics of p by position, and removes duplicates.
func Sort(p *services.Package, found []Diagnostic) []Diagnostic {
	slices.SortStableFunc(found, func(a, b Diagnostic) int {
		x, y := p.Fset.Position(a.Pos), p.Fset.Position(b.Pos)
		return cmp.Or(strings.Compare(x.Filename, y.Filename), x.Line-y.Line, strings.Compare(a.Message, b.Message))
	})
	return slices.Compact(found)
}

type checker struct {
	pkg       *services.Package
	source    *sourceDescriptions
	generated bool // the package has a generated file
	found     []Diagnostic
}

func (v *checker) inTest(pos token.Pos) bool {
	return strings.HasSuffix(v.pkg.Fset.Position(pos).Filename, "_test.go")
}

func (v *checker) report(pos token.Pos, format string, args ...any) {
	v.found = append(v.found, Diagnostic{Pos: pos, Message: fmt.Sprintf(format, args...)})
}

func (v *checker) service(s *services.Service) {
	if s.Type.TypeParams().Len() > 0 {
		return // only the program knows its type arguments
	}
	completers := s.Completers()
	for _, m := range s.Registered(naming.GoMethods) {
		if m.Marker == "" && (s.OptIn || slices.Contains(completers, m.Func.Name())) {
			continue
		}
		v.descriptions(s, m)
	}
}

// place returns the position of a site such as "Notes.Search (notes.go:12), field Limit": that of
// the method, or else of its entry in the annotation block, or else of the service.
func place(p *services.Package, s *services.Service, site string) token.Pos {
	head, _, _ := strings.Cut(site, " ")
	head, _, _ = strings.Cut(head, ",")
	_, method, _ := strings.Cut(head, ".")
	for _, m := range s.Methods {
		if m.Func.Name() == method && m.Func.Pkg() == p.Types {
			return m.Func.Pos()
		}
	}
	if f, _ := s.Entry(method); f != nil {
		return f.Pos()
	}
	return s.Type.Obj().Pos()
}
