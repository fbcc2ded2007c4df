// Package vet checks the services of a package. [Check] reads their source and reports what a start
// of the server would not. [Start] builds a program that registers them, in the package itself, and
// reports what that says.
package vet

import (
	"bytes"
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
	// Refused are the names of tools that some clients refuse.
	Refused []string
}

// Check reads the source of the services of p, in which services were looked for.
//
// The comment //lint:ignore mcpkit REASON silences what Check reports for its own line and the
// next.
func Check(p *services.Package) []Diagnostic {
	v := &checker{pkg: p, source: newSourceDescriptions(p)}
	for _, s := range p.Services {
		if !v.inTest(s.Type.Obj().Pos()) { // tests have services with faults, on purpose
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

// withoutIgnored returns what was found and is not silenced, and the comments that silence without
// a reason.
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

// Sort sorts diagnostics of p by place, and drops those that are there twice.
func Sort(p *services.Package, found []Diagnostic) []Diagnostic {
	slices.SortStableFunc(found, func(a, b Diagnostic) int {
		x, y := p.Fset.Position(a.Pos), p.Fset.Position(b.Pos)
		return cmp.Or(strings.Compare(x.Filename, y.Filename), x.Line-y.Line, strings.Compare(a.Message, b.Message))
	})
	return slices.Compact(found)
}

// Fresh reports what is wrong with the generated file of p, nil if nothing is: it has none, or one
// that is up to date.
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
		return // which types it has, the program alone knows
	}
	v.descriptions(s)
	v.hints(s)
}

// place finds what a site, "Notes.Search (notes.go:12), field Limit", is in the source: the method,
// or else the entry of the block, or else the service.
func place(p *services.Package, s *services.Service, site string) token.Pos {
	head, _, _ := strings.Cut(site, " ")
	head, _, _ = strings.Cut(head, ",")
	_, method, _ := strings.Cut(head, ".")
	for _, m := range s.Methods {
		if m.Func.Name() == method && m.Func.Pkg() == p.Types {
			return m.Func.Pos()
		}
	}
	if f := s.Entry(method); f != nil {
		return f.Pos()
	}
	return s.Type.Obj().Pos()
}
