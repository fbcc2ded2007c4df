// Package vet checks the services of a package. [Check] reads their source and reports mistakes
// that are not startup errors. [Start] builds a program that registers the services, and reports
// its startup errors.
package vet

import (
	"cmp"
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/gen"
	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/services"
	"github.com/mcpkit/mcpkit-go/internal/wellknown"
)

// A Diagnostic is one mistake.
type Diagnostic struct {
	Pos     token.Pos
	Message string
}

// A Cost is the size of the definitions of a service's tools, which each model reads.
type Cost struct {
	Service string
	Tools   int
	// Bytes is the length of the definitions as JSON.
	Bytes int
	// Refused are the names of tools that some clients refuse.
	Refused []string
}

// Check checks the source of the services of p. Call [services.Package.Find] before.
//
// The comment //lint:ignore mcpkit REASON silences the diagnostics of its own line and the next.
func Check(p *services.Package) []Diagnostic {
	v := &checker{pkg: p, source: newSourceDescriptions(p)}
	for _, s := range p.Services {
		if !v.inTest(s.Type.Obj().Pos()) { // tests have services with mistakes on purpose
			v.service(s)
		}
	}
	v.rounds()
	for _, call := range p.Dropped {
		if !v.inTest(call.Pos()) {
			v.report(call.Pos(), "the error of %s, which says what is wrong with the service, is dropped; write if err := %[1]s; err != nil { log.Fatal(err) }",
				types.ExprString(call.Fun)+"(…)")
		}
	}
	return v.withoutIgnored()
}

// ignore begins the comments that silence a diagnostic.
const ignore = "//lint:ignore mcpkit"

// withoutIgnored returns the diagnostics that are not silenced, and one for each comment without a
// reason.
func (v *checker) withoutIgnored() []Diagnostic {
	type line struct {
		file   string
		number int
	}
	ignored := map[line]bool{}
	var faults []Diagnostic
	for _, file := range v.pkg.Files {
		for _, group := range file.Comments {
			for _, comment := range group.List {
				reason, ok := strings.CutPrefix(comment.Text, ignore)
				if !ok {
					continue
				}
				if strings.TrimSpace(reason) == "" {
					faults = append(faults, Diagnostic{comment.Pos(), "a " + ignore + " comment needs a reason after \"mcpkit\""})
					continue
				}
				place := v.pkg.Fset.Position(comment.Pos())
				ignored[line{place.Filename, place.Line}] = true
				ignored[line{place.Filename, place.Line + 1}] = true
			}
		}
	}
	return append(slices.DeleteFunc(v.found, func(d Diagnostic) bool {
		place := v.pkg.Fset.Position(d.Pos)
		return ignored[line{place.Filename, place.Line}]
	}), faults...)
}

// Sort sorts diagnostics of p by position, and removes duplicates.
func Sort(p *services.Package, found []Diagnostic) []Diagnostic {
	slices.SortStableFunc(found, func(a, b Diagnostic) int {
		x, y := p.Fset.Position(a.Pos), p.Fset.Position(b.Pos)
		return cmp.Or(strings.Compare(x.Filename, y.Filename), x.Line-y.Line, strings.Compare(a.Message, b.Message))
	})
	return slices.Compact(found)
}

// Fresh returns an error if p has a generated file that is not up to date.
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
	if !gen.Same(have, want) {
		return fmt.Errorf("%s: %s is stale; run go generate, or mcpkit gen %[1]s", p.Path, services.GeneratedFile)
	}
	return nil
}

type checker struct {
	pkg    *services.Package
	source *sourceDescriptions
	found  []Diagnostic
}

func (v *checker) inTest(pos token.Pos) bool {
	return strings.HasSuffix(v.pkg.Fset.Position(pos).Filename, "_test.go")
}

func (v *checker) report(pos token.Pos, format string, args ...any) {
	v.found = append(v.found, Diagnostic{pos, fmt.Sprintf(format, args...)})
}

func (v *checker) service(s *services.Service) {
	if s.Type.TypeParams().Len() > 0 {
		return // only the program knows its type arguments
	}
	completers := s.Completers()
	for _, m := range s.Registered(wellknown.Methods) {
		if m.Marker == "" && (s.OptIn || slices.Contains(completers, m.Func.Name())) {
			continue
		}
		v.descriptions(s, m)
		v.hints(s, m)
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
